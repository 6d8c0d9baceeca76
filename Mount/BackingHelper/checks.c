#include "checks.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "protocol.h"

// What the kernel registers it opens again with this program's rights for whoever opens the file of the mount, and asks for no
// permission then (backing_file_open in fs/backing-file.c). So the descriptor has to show that its owner may do all of that.
static bool is_open_for_all(int descriptor) {
  int flags = fcntl(descriptor, F_GETFL);
  return flags >= 0 && (flags & O_ACCMODE) == O_RDWR && !(flags & (O_PATH | O_APPEND));
}

static bool path_of(int descriptor, char *path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  ssize_t size = readlink(link, path, PATH_MAX - 1);
  if (size <= 0) return false;
  path[size] = 0;
  return true;
}

static bool is_status(int descriptor, struct statx *status) {
  unsigned wanted = STATX_BASIC_STATS | STATX_MNT_ID;
  return statx(descriptor, "", AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, wanted, status) == 0;
}

static bool is_same(const struct statx *left, const struct statx *right) {
  return left->stx_ino == right->stx_ino && left->stx_dev_major == right->stx_dev_major &&
         left->stx_dev_minor == right->stx_dev_minor && left->stx_mnt_id == right->stx_mnt_id;
}

int check_store(int folder) {
  struct statx status;
  if (!is_status(folder, &status)) return -errno;
  if (!S_ISDIR(status.stx_mode)) return -ENOTDIR;
  // One that others may write to is nobody's store, and one without a name is none any more.
  if (status.stx_uid != getuid() || status.stx_mode & (S_IWGRP | S_IWOTH) || status.stx_nlink == 0) return -EACCES;
  return 0;
}

// The file has a name below the store that no link, no other mount and no way up leads to.
static bool is_inside(int store, int file, const struct statx *wanted) {
  char base[PATH_MAX], path[PATH_MAX];
  if (!path_of(store, base) || !path_of(file, path)) return false;
  size_t length = strlen(base);
  if (strncmp(path, base, length) != 0 || path[length] != '/') return false;
  // The text says where to look, and no more.
  struct open_how how = {
      .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
      .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV};
  int found = (int)syscall(SYS_openat2, store, path + length + 1, &how, sizeof how);
  if (found < 0) return false;
  struct statx status;
  bool is_it = is_status(found, &status) && is_same(&status, wanted);
  close(found);
  return is_it;
}

int check_content(int store, int file) {
  struct statx status;
  if (!is_open_for_all(file)) return -EACCES;
  if (!is_status(file, &status)) return -errno;
  // A second name could be anywhere.
  if (!S_ISREG(status.stx_mode) || status.stx_uid != getuid() || status.stx_nlink != 1) return -EACCES;
  if (status.stx_mode & (S_ISUID | S_ISGID)) return -EACCES;
  if (status.stx_attributes & (STATX_ATTR_APPEND | STATX_ATTR_IMMUTABLE | STATX_ATTR_VERITY)) return -EPERM;
  int problem = check_store(store);
  if (problem != 0) return problem;
  return is_inside(store, file, &status) ? 0 : -EACCES;
}
