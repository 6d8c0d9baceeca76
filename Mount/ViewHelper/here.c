// promisefs-view --here HANDOVER PLACE PROCESS: the view is mounted at the folder PLACE of the namespace that this runs in, until
// PROCESS, the view or its daemon has ended. For an application that others keep in a sandbox, and that reaches its documents by
// a program of its user (xdg-document-portal).
//
// Whoever hands a view over is taken for the application, by the namespaces that he is in: here that is a child in some of its own,
// which nobody else is in, and which lives as long as the view.
#include "view.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static pid_t start(char *const words[], int kept) {
  pid_t child = fork();
  if (child != 0) return child;
  if (kept >= 0) fcntl(kept, F_SETFD, 0);
  execvp(words[0], words);
  _exit(127);
}

static int receive_device(int line) {
  char byte;
  union {
    struct cmsghdr header;
    char space[CMSG_SPACE(sizeof(int))];
  } control;
  struct iovec part = {&byte, 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  int device = -1;
  if (recvmsg(line, &message, MSG_CMSG_CLOEXEC) <= 0) return -1;
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
    memcpy(&device, CMSG_DATA(header), sizeof device);
  return device;
}

// Only root may mount in a namespace that is not his own: fusermount3(1) does it for others.
static int mount_by_helper(char *place) {
  int line[2], status;
  char number[16];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line) < 0) fail("a socket");
  snprintf(number, sizeof number, "%d", line[1]);
  if (setenv("_FUSE_COMMFD", number, 1) < 0) fail("the environment");
  char options[] = "fsname=promisefs-view,subtype=promisefs-view,default_permissions,nosuid,nodev";
  char *words[] = {"fusermount3", "-o", options, "--", place, NULL};
  pid_t child = start(words, line[1]);
  close(line[1]);
  int device = child < 0 ? -1 : receive_device(line[0]);
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0 || device < 0) {
    fprintf(stderr, "promisefs-view: fusermount3 did not mount %s\n", place);
    exit(1);
  }
  close(line[0]);
  return device;
}

static int mount_as_root(const char *place) {
  char options[96];
  int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (device < 0) fail("/dev/fuse");
  snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0,default_permissions", device);
  if (mount("promisefs-view", place, "fuse.promisefs-view", MS_NOSUID | MS_NODEV, options) < 0) fail(place);
  return device;
}

static void unmount_view(char *place) {
  if (geteuid() == 0) {
    umount2(place, MNT_DETACH);
  } else {
    char *words[] = {"fusermount3", "-u", "-z", "-q", "--", place, NULL};
    pid_t child = start(words, -1);
    if (child > 0) waitpid(child, NULL, 0);
  }
  rmdir(place);
}

// A namespace has copies of all mounts, which would keep them from being unmounted.
static void leave_mounts(void) {
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) fail("/");
  if (mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=4k") < 0 || chdir("/tmp") < 0) fail("/tmp");
  if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0) fail("an empty root");
}

// The process that is taken for the application. Its line is shut when the view has ended, or the daemon.
static void stand_for_the_application(const char *handover, int device, int ready) {
  unsigned user = getuid(), group = getgid();
  char byte;
  // Where it is asked for is in no mount that is left then. Who hands over is looked at when he does.
  int line = reach(handover);
  enter_as_user();
  leave_mounts();
  hand_over(line, device, user, group, NULL);
  close(device);
  if (write(ready, "", 1) != 1) _exit(1);
  close(ready);
  while (recv(line, &byte, 1, 0) < 0 && errno == EINTR) {}
  _exit(0);
}

int mount_here(char **words) {
  char *place = words[1], byte;
  int ready[2];
  pid_t owner = (pid_t)atoi(words[2]);
  int alive = (int)syscall(SYS_pidfd_open, owner, 0);
  if (alive < 0) fail("the process that it is for");
  int device = geteuid() == 0 ? mount_as_root(place) : mount_by_helper(place);
  if (pipe2(ready, O_CLOEXEC) < 0) fail("a pipe");
  pid_t child = fork();
  if (child < 0) fail("a process");
  if (child == 0) {
    close(ready[0]);
    stand_for_the_application(words[0], device, ready[1]);
  }
  // Or the mount would outlive the daemon, and hold up whoever looks at it.
  close(device);
  close(ready[1]);
  bool is_ready = read(ready[0], &byte, 1) == 1;
  if (is_ready && write(STDOUT_FILENO, "ok", 2) == 2) {
    close(STDOUT_FILENO);
    struct pollfd watched[] = {{.fd = alive, .events = POLLIN}, {.fd = (int)syscall(SYS_pidfd_open, child, 0), .events = POLLIN}};
    while (poll(watched, 2, -1) < 0 && errno == EINTR) {}
  }
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  unmount_view(place);
  return is_ready ? 0 : 1;
}
