// promisefs-backing: lets the daemon of an ordinary user have kernel passthrough.
//
// Registering a backing file (FUSE_DEV_IOC_BACKING_OPEN, Linux 6.9) takes CAP_SYS_ADMIN, because such a file stays open
// without being seen in any process. This program has that one capability (setcap cap_sys_admin+ep), is started by the
// daemon with a socket as descriptor 3, registers content files of its own user on that user's FUSE device (checks.h says which,
// shares.h how many), and does nothing else. It ends when the socket is closed. See protocol.h and docs/OPERATIONS.md.
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "checks.h"
#include "protocol.h"
#include "shares.h"

// <linux/fuse.h> of Debian 12 is older than these.
struct backing_map {
  int32_t descriptor;
  uint32_t flags;
  uint64_t padding;
};
#define FUSE_MAGIC 229
#define FUSE_BACKING_OPEN _IOW(FUSE_MAGIC, 1, struct backing_map)
#define FUSE_BACKING_CLOSE _IOW(FUSE_MAGIC, 2, uint32_t)
#define DESCRIPTORS_MAX 2

static int device = -1, store = -1;
// The backing ids that were registered here: those count for this process.
static int32_t *registered;
static unsigned count_registered, room;

// CAP_SYS_ADMIN and no other, in a process that is the caller's in every other way, started by whatever means.
static bool drop_privileges(void) {
  if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0) return false;
  if (setresgid(getgid(), getgid(), getgid()) != 0 || setresuid(getuid(), getuid(), getuid()) != 0) return false;
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct data[2] = {{0}};
  data[CAP_TO_INDEX(CAP_SYS_ADMIN)].permitted = data[CAP_TO_INDEX(CAP_SYS_ADMIN)].effective = CAP_TO_MASK(CAP_SYS_ADMIN);
  if (syscall(SYS_capset, &header, data) != 0) return false;
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0;
}

static bool is_trusted_socket(void) {
  int type = 0;
  struct ucred peer;
  socklen_t type_size = sizeof type, peer_size = sizeof peer;
  return getsockopt(BACKING_HELPER_SOCKET, SOL_SOCKET, SO_TYPE, &type, &type_size) == 0 && type == SOCK_SEQPACKET &&
         getsockopt(BACKING_HELPER_SOCKET, SOL_SOCKET, SO_PEERCRED, &peer, &peer_size) == 0 && peer.uid == getuid();
}

static int begin(const int *descriptors, int count) {
  if (device >= 0 || count != 2) return -EINVAL;
  struct stat status;
  if (fstat(descriptors[0], &status) != 0) return -errno;
  if (!S_ISCHR(status.st_mode) || status.st_rdev != makedev(10, 229)) return -EINVAL;
  int problem = check_store(descriptors[1]);
  if (problem != 0) return problem;
  int own_store = fcntl(descriptors[1], F_DUPFD_CLOEXEC, 0);
  int own_device = fcntl(descriptors[0], F_DUPFD_CLOEXEC, 0);
  if (own_store < 0 || own_device < 0) return -EMFILE;
  store = own_store;
  device = own_device;
  return 0;
}

static bool has_room(void) {
  if (count_registered < room) return true;
  unsigned wanted = room == 0 ? 64 : room * 2;
  int32_t *larger = realloc(registered, wanted * sizeof *larger);
  if (!larger) return false;
  registered = larger;
  room = wanted;
  return true;
}

static int open_backing(const int *descriptors, int count) {
  if (device < 0 || count != 1) return -EINVAL;
  int problem = check_content(store, descriptors[0]);
  if (problem != 0) return problem;
  if (!has_room() || !share_more()) return -ENFILE;
  struct backing_map map = {.descriptor = descriptors[0]};
  int result = ioctl(device, FUSE_BACKING_OPEN, &map);
  if (result < 0) {
    result = -errno;
    share_less();
    return result;
  }
  registered[count_registered++] = result;
  return result;
}

static int close_backing(int32_t backing) {
  if (device < 0) return -EINVAL;
  uint32_t number = (uint32_t)backing;
  if (ioctl(device, FUSE_BACKING_CLOSE, &number) < 0) return -errno;
  // One that a helper before this one has registered counted for that, as long as it lived. The newest go first.
  for (unsigned position = count_registered; position-- > 0;) {
    if (registered[position] != backing) continue;
    registered[position] = registered[--count_registered];
    share_less();
    break;
  }
  return 0;
}

// The descriptors of one message; returns how many, or -1 when the daemon has gone.
static int receive(struct backing_request *request, int *descriptors) {
  union {
    struct cmsghdr header;
    char memory[CMSG_SPACE(sizeof(int) * DESCRIPTORS_MAX)];
  } control;
  struct iovec part = {.iov_base = request, .iov_len = sizeof *request};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  ssize_t size;
  do size = recvmsg(BACKING_HELPER_SOCKET, &message, MSG_CMSG_CLOEXEC);
  while (size < 0 && errno == EINTR);
  if (size <= 0) return -1;
  int count = 0;
  for (struct cmsghdr *each = CMSG_FIRSTHDR(&message); each; each = CMSG_NXTHDR(&message, each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
    count = (int)((each->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    memcpy(descriptors, CMSG_DATA(each), (size_t)count * sizeof(int));
  }
  // Nor one with more descriptors than there is room for.
  if ((size_t)size != sizeof *request || message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) request->operation = 0;
  return count;
}

int main(void) {
  if (!is_trusted_socket()) {
    fprintf(stderr, "promisefs-backing is started by the promisefs daemon\n");
    return 64;
  }
  if (!drop_privileges()) {
    fprintf(stderr, "promisefs-backing has no CAP_SYS_ADMIN: as root, run setcap cap_sys_admin+ep on it\n");
    return 77;
  }
  for (;;) {
    struct backing_request request;
    int descriptors[DESCRIPTORS_MAX];
    int count = receive(&request, descriptors);
    if (count < 0) return 0;
    struct backing_answer answer = {.result = -EINVAL};
    switch (request.operation) {
    case BACKING_BEGIN: answer.result = begin(descriptors, count); break;
    case BACKING_OPEN: answer.result = open_backing(descriptors, count); break;
    case BACKING_CLOSE: answer.result = close_backing(request.backing); break;
    default: break;
    }
    for (int i = 0; i < count; i++) close(descriptors[i]);
    if (send(BACKING_HELPER_SOCKET, &answer, sizeof answer, MSG_NOSIGNAL) < 0) return 0;
  }
}
