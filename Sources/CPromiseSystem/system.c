#include "CPromiseSystem.h"

#include <signal.h>
#include <malloc.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

int cps_open_at(int folder, const char *path, int flags, unsigned mode) { return openat(folder, path, flags, mode); }

int cps_open_beneath(int folder, const char *path, int flags) {
  struct open_how how = {
      .flags = (unsigned)flags,
      .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV};
  return (int)syscall(SYS_openat2, folder, path, &how, sizeof how);
}

int cps_open_nameless(const char *folder, unsigned mode) { return open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, mode); }

int cps_rename_at(int from_folder, const char *from, int to_folder, const char *to, unsigned flags) {
  return renameat2(from_folder, from, to_folder, to, flags);
}

int64_t cps_append(int descriptor, const void *bytes, size_t count) {
  struct iovec part = {(void *)bytes, count};
  return pwritev2(descriptor, &part, 1, 0, RWF_APPEND);
}

int64_t cps_copy_file_range(int from, int64_t from_offset, int to, int64_t to_offset, size_t count) {
  off64_t in = from_offset, out = to_offset;
  return copy_file_range(from, &in, to, &out, count, 0);
}

int cps_sync_file_system(int descriptor) { return syncfs(descriptor); }

int cps_begin_writing(int descriptor) { return sync_file_range(descriptor, 0, 0, SYNC_FILE_RANGE_WRITE); }

int cps_finish_writing(int descriptor) {
  return sync_file_range(
      descriptor, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
}

int cps_fallocate(int descriptor, int mode, int64_t offset, int64_t count) {
  return fallocate(descriptor, mode, offset, count);
}

int cps_punch_hole(int descriptor, int64_t offset, int64_t count) {
  return fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, count);
}

int cps_clone(int from, int to) { return ioctl(to, FICLONE, from); }

void cps_set_thread_name(const char *name) { pthread_setname_np(pthread_self(), name); }

// Saturates: file systems have times that 64 bits of nanoseconds have not.
static int64_t nanoseconds(struct statx_timestamp t) {
  __int128 result = (__int128)t.tv_sec * 1000000000 + t.tv_nsec;
  return result > INT64_MAX ? INT64_MAX : result < INT64_MIN ? INT64_MIN : (int64_t)result;
}

int cps_status_at(int folder, const char *path, struct cps_file_status *status) {
  struct statx s;
  int r = statx(folder, path, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | AT_NO_AUTOMOUNT, STATX_BASIC_STATS | STATX_BTIME | STATX_MNT_ID, &s);
  if (r < 0) return r;
  status->inode = s.stx_ino;
  status->device = makedev(s.stx_dev_major, s.stx_dev_minor);
  status->mount = s.stx_mask & STATX_MNT_ID ? s.stx_mnt_id : 0;
  status->size = s.stx_size;
  status->blocks = s.stx_blocks;
  status->device_number = makedev(s.stx_rdev_major, s.stx_rdev_minor);
  status->mode = s.stx_mode;
  status->links = s.stx_nlink;
  status->owner = s.stx_uid;
  status->group = s.stx_gid;
  status->access_time = nanoseconds(s.stx_atime);
  status->modification_time = nanoseconds(s.stx_mtime);
  status->change_time = nanoseconds(s.stx_ctime);
  status->birth_time = s.stx_mask & STATX_BTIME ? nanoseconds(s.stx_btime) : 0;
  return 0;
}

int cps_file_handle_at(int folder, const char *path, uint8_t *handle, unsigned size, int *type) {
  union {
    struct file_handle head;
    char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
  } buffer;
  buffer.head.handle_bytes = MAX_HANDLE_SZ;
  int mount = 0;
  if (name_to_handle_at(folder, path, &buffer.head, &mount, *path ? 0 : AT_EMPTY_PATH) < 0) return -1;
  if (buffer.head.handle_bytes > size) { errno = EOVERFLOW; return -1; }
  memcpy(handle, buffer.head.f_handle, buffer.head.handle_bytes);
  *type = buffer.head.handle_type;
  return (int)buffer.head.handle_bytes;
}

int64_t cps_get_attribute_at(int folder, const char *path, const char *name, void *value, size_t size) {
  // struct xattr_args of <linux/xattr.h>, which the headers here may not have yet; 464 on every architecture.
  struct { uint64_t value; uint32_t size, flags; } arguments = {(uint64_t)(uintptr_t)value, (uint32_t)size, 0};
  int64_t r = syscall(464, folder, path, AT_SYMLINK_NOFOLLOW, name, &arguments, sizeof arguments);
  if (r >= 0 || errno != ENOSYS) return r;
  char place[64 + NAME_MAX];
  if (snprintf(place, sizeof place, "/proc/self/fd/%d/%s", folder, path) >= (int)sizeof place) { errno = ENAMETOOLONG; return -1; }
  return lgetxattr(place, name, value, size);
}

int cps_set_attribute(int descriptor, const char *name, const void *value, size_t size) {
  return fsetxattr(descriptor, name, value, size, 0);
}

int cps_file_system(int descriptor, int64_t *type, uint64_t *identity) {
  struct statfs s;
  int r = fstatfs(descriptor, &s);
  if (r < 0) return r;
  *type = (int64_t)s.f_type;
  memcpy(identity, &s.f_fsid, sizeof *identity);
  return 0;
}

int cps_event_descriptor(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

int cps_has_writers(int descriptor) {
  // Whoever opens it for writing in between waits until it is given back, and this process is told by a signal: by one that
  // does nothing, as SIGIO would end it.
  if (fcntl(descriptor, F_SETSIG, SIGURG) < 0) return -1;
  if (fcntl(descriptor, F_SETLEASE, F_RDLCK) < 0) return errno == EAGAIN ? 1 : -1;
  return fcntl(descriptor, F_SETLEASE, F_UNLCK);
}

void cps_share_arenas(void) { mallopt(M_ARENA_MAX, 2); }

void cps_give_memory_back(void) { malloc_trim(0); }

int cps_is_idle(int process) {
  // ioprio_get(2): IOPRIO_WHO_PROCESS is 1, the class is above bit 13, IOPRIO_CLASS_IDLE is 3. glibc has no wrapper.
  long priority = syscall(SYS_ioprio_get, 1, process);
  return priority >= 0 && (priority >> 13) == 3;
}

// The others of a mount say what is true of a file there alone.
static const char staying_mark[] = "user.promisefs.excluded", staying_mark_of_links[] = "system.promisefs.excluded";

static int is_copied(const char *name) {
  return strncmp(name, "user.", 5) == 0 && (strncmp(name, "user.promisefs.", 15) != 0 || strcmp(name, staying_mark) == 0);
}

int cps_copy_attributes(int from, int to) {
  static const size_t most = 1 << 16;
  char *names = malloc(most), *value = malloc(most);
  int result = names != NULL && value != NULL ? 0 : -1;
  ssize_t count = result == 0 ? flistxattr(from, names, most) : 0;
  if (count < 0) {
    result = errno == ENOTSUP ? 0 : -1;
    count = 0;
  }
  for (char *name = names; result == 0 && name < names + count; name += strlen(name) + 1) {
    if (!is_copied(name)) continue;
    int is_mark = strcmp(name, staying_mark) == 0;
    ssize_t size = fgetxattr(from, name, value, most);
    // An ordinary disk takes any value, and a mount refuses what is no mark.
    if (is_mark && size >= 0 && (size != 4 || memcmp(value, "true", 4) != 0)) continue;
    if (size < 0 ? errno != ENODATA : fsetxattr(to, name, value, (size_t)size, 0) != 0) result = -1;
    // Nothing is sent from where no attributes are kept.
    if (result != 0 && errno == ENOTSUP && is_mark) result = 0;
  }
  int problem = errno;
  free(names);
  free(value);
  errno = problem;
  return result;
}

int cps_link_stays(const char *path) {
  char value[16];
  if (lgetxattr(path, staying_mark_of_links, value, sizeof value) >= 0) return 1;
  return errno == ENODATA || errno == ENOTSUP || errno == EINVAL ? 0 : -1;
}

int cps_keep_link(const char *path) {
  // Nothing is sent from where links have no such attribute.
  return lsetxattr(path, staying_mark_of_links, "true", 4, 0) == 0 || errno == ENOTSUP ? 0 : -1;
}

// Of a file system without access control lists: 0, as if there were none.
static int copy_list(int from, int to, const char *name) {
  // What the kernel has of one attribute at most: 8,191 entries.
  static const size_t most = 1 << 16;
  char *value = malloc(most), none[1];
  if (value == NULL) return -1;
  ssize_t size = fgetxattr(from, name, value, most);
  int result = size < 0 ? -1 : fsetxattr(to, name, value, (size_t)size, 0) == 0 ? 0 : errno == ENOTSUP ? 1 : -1;
  int problem = errno;
  free(value);
  errno = problem;
  if (size >= 0) return result;
  if (errno != ENODATA && errno != ENOTSUP) return -1;
  // A new file may have got one from its folder.
  if (fgetxattr(to, name, none, 0) <= 0) return 0;
  return fremovexattr(to, name) == 0 || errno == ENODATA || errno == ENOTSUP ? 0 : -1;
}

int cps_copy_access(int from, int to, int is_folder) {
  int result = copy_list(from, to, "system.posix_acl_access");
  return result == 0 && is_folder ? copy_list(from, to, "system.posix_acl_default") : result;
}
