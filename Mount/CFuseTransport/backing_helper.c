// The daemon's side of the backing helper: starts it and asks it, one request at a time. Callers hold a lock.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../BackingHelper/protocol.h"
#include "include/BackingHelper.h"

// The helper makes one system call; one that takes longer than this is given up.
#define ANSWER_SECONDS 2

struct ct_helper {
  int socket;
  pid_t process;
};

static int ask(struct ct_helper *helper, enum backing_operation operation, int32_t backing, const int *descriptors, int count) {
  struct backing_request request = {.operation = operation, .backing = backing};
  struct backing_answer answer;
  struct iovec part = {.iov_base = &request, .iov_len = sizeof request};
  union {
    struct cmsghdr header;
    char memory[CMSG_SPACE(sizeof(int) * 2)];
  } control = {0};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (count > 0) {
    message.msg_control = &control;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)count);
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof(int) * (size_t)count);
    memcpy(CMSG_DATA(&control.header), descriptors, sizeof(int) * (size_t)count);
  }
  ssize_t size;
  do size = sendmsg(helper->socket, &message, MSG_NOSIGNAL);
  while (size < 0 && errno == EINTR);
  if (size < 0) return -errno;
  do size = recv(helper->socket, &answer, sizeof answer, 0);
  while (size < 0 && errno == EINTR);
  if (size < 0) return errno == EAGAIN ? -ETIMEDOUT : -errno;
  return size == sizeof answer ? answer.result : -EPIPE;
}

static int spawn(const char *path, int socket, pid_t *process) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  char *const arguments[] = {"promisefs-backing", NULL}, *const environment[] = {NULL};
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  // A group of its own: Ctrl-C at a daemon in the foreground is not meant for the helper, which ends with the socket.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  // dup2 of a number to itself would leave close-on-exec set; posix_spawn clears it in that case.
  posix_spawn_file_actions_adddup2(&actions, socket, BACKING_HELPER_SOCKET);
  posix_spawn_file_actions_addclosefrom_np(&actions, BACKING_HELPER_SOCKET + 1);
  int problem = posix_spawn(process, path, &actions, &attributes, arguments, environment);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return -problem;
}

int ct_helper_start(const char *path, int fuse_descriptor, int store_descriptor, struct ct_helper **result) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return -errno;
  struct ct_helper *helper = calloc(1, sizeof *helper);
  int problem = helper ? spawn(path, ends[1], &helper->process) : -ENOMEM;
  close(ends[1]);
  if (problem != 0) {
    close(ends[0]);
    free(helper);
    return problem;
  }
  helper->socket = ends[0];
  struct timeval limit = {.tv_sec = ANSWER_SECONDS};
  setsockopt(helper->socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  const int descriptors[] = {fuse_descriptor, store_descriptor};
  problem = ask(helper, BACKING_BEGIN, 0, descriptors, 2);
  if (problem != 0) {
    ct_helper_stop(helper);
    return problem;
  }
  *result = helper;
  return 0;
}

int32_t ct_helper_open(struct ct_helper *helper, int descriptor) { return ask(helper, BACKING_OPEN, 0, &descriptor, 1); }

int ct_helper_close(struct ct_helper *helper, int32_t backing) { return ask(helper, BACKING_CLOSE, backing, NULL, 0); }

void ct_helper_stop(struct ct_helper *helper) {
  close(helper->socket);
  // One that is stopped does not end by itself, and whoever opens a file waits here.
  kill(helper->process, SIGKILL);
  while (waitpid(helper->process, NULL, 0) < 0 && errno == EINTR) {}
  free(helper);
}
