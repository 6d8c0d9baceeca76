#include "include/HolderProtocol.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PATIENCE_SECONDS 60
#define PATIENCE_MAX_SECONDS 86400

int cps_holder_patience(void) {
  const char *text = getenv("PROMISEFS_PATIENCE");
  char *end = NULL;
  long seconds = text ? strtol(text, &end, 10) : PATIENCE_SECONDS;
  if (text && (end == text || *end != 0 || seconds < 0 || seconds > PATIENCE_MAX_SECONDS)) seconds = PATIENCE_SECONDS;
  return (int)seconds * 1000;
}

int cps_holder_tell(int line, enum holder_message message, int descriptor) {
  uint32_t word = message;
  struct iovec part = {.iov_base = &word, .iov_len = sizeof word};
  union {
    struct cmsghdr header;
    char memory[CMSG_SPACE(sizeof(int))];
  } control = {0};
  struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
  if (descriptor >= 0) {
    header.msg_control = &control;
    header.msg_controllen = sizeof control;
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof descriptor);
    memcpy(CMSG_DATA(&control.header), &descriptor, sizeof descriptor);
  }
  ssize_t size;
  do size = sendmsg(line, &header, MSG_NOSIGNAL);
  while (size < 0 && errno == EINTR);
  return size < 0 ? -1 : 0;
}

void cps_holder_tell_thread(int line) {
  // PIDFD_THREAD, which older headers do not have.
  int thread = (int)syscall(SYS_pidfd_open, syscall(SYS_gettid), O_EXCL);
  if (thread < 0) return;
  cps_holder_tell(line, HOLDER_THREAD, thread);
  close(thread);
}

int cps_receive_descriptor(int line, uint32_t *numbers, int count) {
  struct iovec part = {.iov_base = numbers, .iov_len = sizeof *numbers * (size_t)count};
  union {
    struct cmsghdr header;
    char memory[CMSG_SPACE(sizeof(int))];
  } control = {0};
  struct msghdr header = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  ssize_t size;
  do size = recvmsg(line, &header, MSG_CMSG_CLOEXEC);
  while (size < 0 && errno == EINTR);
  if (size < 0) return -1;
  int descriptor = -1;
  const struct cmsghdr *first = CMSG_FIRSTHDR(&header);
  if (first && first->cmsg_level == SOL_SOCKET && first->cmsg_type == SCM_RIGHTS &&
      first->cmsg_len == CMSG_LEN(sizeof descriptor))
    memcpy(&descriptor, CMSG_DATA(first), sizeof descriptor);
  if (descriptor >= 0 && size == (ssize_t)part.iov_len) return descriptor;
  if (descriptor >= 0) close(descriptor);
  errno = EPROTO;
  return -1;
}
