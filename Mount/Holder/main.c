// promisefs-holder MOUNTPOINT EXECUTABLE ARGUMENT...
//
// Starts the daemon (EXECUTABLE with its arguments, the first being its name) and keeps its mount alive: it holds the FUSE
// device, so that programs wait instead of failing when the daemon dies, and starts a successor, which goes on where the
// last one was (fs/fuse/dev.c, FUSE_NOTIFY_RESEND). One that says nothing any more it ends itself (watch.h). It does nothing
// else, touches no file, and ends with the daemon's exit status once the mount has ended in order.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "HolderProtocol.h"
#include "watch.h"

extern char **environ;

// Programs on the mount wait no longer than this for a daemon.
#define GIVE_UP_MILLISECONDS 60000
// One that served for as long has no trouble that comes back at once.
#define STEADY_MILLISECONDS 10000
// Before a successor, after each daemon that did serve, but not for long: programs wait meanwhile.
#define PAUSE_STEP_MILLISECONDS 10
#define PAUSE_MAX_MILLISECONDS 200
// And after one that did not serve at all; doubled for each further one. The first may be bad luck, as a second signal.
#define FAILURE_PAUSE_MIN_MILLISECONDS 25
#define FAILURE_PAUSE_MAX_MILLISECONDS 5000
// A daemon that was told to unmount and still serves after this could not: a program had files open, and works on.
#define ENDING_MILLISECONDS 15000
// Between the break of the line and the end of the process. One thread of it may wait in the kernel for what only the
// successor answers, so it is not waited for without a limit.
#define END_MILLISECONDS 100
// Between the end of its thread for this and the break of the line. A thread that waits for a disk
// that hangs, and that nothing ends, keeps the line whole; all others have ended by then.
#define STUCK_MILLISECONDS 200
// Between the signal that ends a silent one and its end: a large process takes its time.
#define KILL_MILLISECONDS 2000

struct daemon {
  pid_t process;
  int line, thread;
  int64_t started;
  bool is_serving, has_ended, wants_restart, was_silent;
  // It was told to end, and may never have heard of it: until it has said that it is alive so often
  // since then. The first time it may have said so before.
  unsigned asked;
  struct watch watch;
};

static const char *mount_point;
static int record = -1, device = -1, signals = -1;
static unsigned restarts;
static int last_status;
// Where systemd mounts when somebody looks (autofs(5)), only its own process group may touch the mount point meanwhile.
static bool stays_in_group;
// The number of the device's mount in /sys/fs/fuse/connections; 0 while it is not known.
static unsigned connection;
// When somebody has last wanted the mount to end.
static int64_t ending_since;

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static bool is_ending(void) { return now() - ending_since < ENDING_MILLISECONDS; }

// Above every number that a daemon is given.
static int moved_up(int descriptor) {
  int high = fcntl(descriptor, F_DUPFD_CLOEXEC, 64);
  close(descriptor);
  return high;
}

static bool start(struct daemon *daemon, char **command) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return false;
  *daemon = (struct daemon){.line = moved_up(ends[0]), .thread = -1, .started = now()};
  int theirs = moved_up(ends[1]);
  char text[96];
  snprintf(text, sizeof text, "%d %u %d %d", (int)getpid(), restarts, device >= 0, last_status);
  setenv(HOLDER_ENVIRONMENT, text, 1);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t none;
  sigemptyset(&none);
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  // A group of its own: Ctrl-C at a terminal reaches the daemon once, through the holder.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | (stays_in_group ? 0 : POSIX_SPAWN_SETPGROUP));
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawn_file_actions_adddup2(&actions, theirs, HOLDER_LINE);
  posix_spawn_file_actions_adddup2(&actions, record, HOLDER_RECORD);
  if (device >= 0) posix_spawn_file_actions_adddup2(&actions, device, HOLDER_DEVICE);
  posix_spawn_file_actions_addclosefrom_np(&actions, HOLDER_DEVICE + (device >= 0 ? 1 : 0));
  int problem = posix_spawn(&daemon->process, command[0], &actions, &attributes, command + 1, environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(theirs);
  if (problem == 0) return true;
  fprintf(stderr, "promisefs-holder: %s cannot be started: %s\n", command[0], strerror(problem));
  close(daemon->line);
  return false;
}

static void keep(int descriptor) {
  if (device >= 0) close(device);
  device = moved_up(descriptor);
  connection = 0;
}

// While the daemon serves, as nobody else can have mounted anything over it yet. Asks nobody but the kernel.
static void find_connection(void) {
  struct statx status;
  if (statx(AT_FDCWD, mount_point, AT_STATX_DONT_SYNC | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, 0, &status) == 0)
    connection = status.stx_dev_minor;
}

// One message of the daemon's; false when the line is broken.
static bool listen_to(struct daemon *daemon) {
  uint32_t message = 0;
  struct iovec part = {.iov_base = &message, .iov_len = sizeof message};
  union {
    struct cmsghdr header;
    char memory[CMSG_SPACE(sizeof(int))];
  } control = {0};
  struct msghdr header = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  ssize_t size = recvmsg(daemon->line, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (size < 0) return errno == EINTR || errno == EAGAIN;
  if (size == 0) return false;
  int descriptor = -1;
  if (CMSG_FIRSTHDR(&header) && control.header.cmsg_type == SCM_RIGHTS)
    memcpy(&descriptor, CMSG_DATA(&control.header), sizeof descriptor);
  switch (message) {
  case HOLDER_KEEP:
    if (descriptor >= 0) keep(descriptor);
    descriptor = -1;
    break;
  case HOLDER_SERVING:
    daemon->is_serving = true;
    if (connection == 0) find_connection();
    break;
  case HOLDER_ENDED: daemon->has_ended = true; break;
  case HOLDER_ALIVE:
    watch_heard(&daemon->watch, now());
    if (daemon->asked > 0) daemon->asked--;
    break;
  case HOLDER_THREAD:
    if (daemon->thread >= 0) break;
    daemon->thread = descriptor;
    descriptor = -1;
    break;
  case HOLDER_RESTART:
    daemon->wants_restart = true;
    ending_since = now() - ENDING_MILLISECONDS;
    break;
  default: break;
  }
  if (descriptor >= 0) close(descriptor);
  return true;
}

// Passes the signals on that mean the end to whoever lives.
static void take_signals(struct daemon *daemon) {
  struct signalfd_siginfo info;
  while (read(signals, &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGCHLD) continue;
    ending_since = now();
    if (!daemon || daemon->process <= 0) continue;
    daemon->asked = 2;
    kill(daemon->process, (int)info.ssi_signo);
  }
}

static int milliseconds_until(int64_t time) {
  int64_t left = time - now();
  return left > 0 ? (int)left : 0;
}

// The earlier one; 0 is never.
static int64_t earlier(int64_t left, int64_t right) {
  return left == 0 || (right != 0 && right < left) ? right : left;
}

// Until the daemon's line breaks, or what is left of it cannot end; one that does not serve by
// `limit` (0: none), or is silent for too long, is killed. Returns its wait status; for one that has not gone in time SIGKILL,
// or 0 when it had said that it ended in order.
static int serve(struct daemon *daemon, int64_t limit) {
  struct pollfd waits[] = {
      {.fd = daemon->line, .events = POLLIN},
      {.fd = signals, .events = POLLIN},
      {.fd = -1, .events = POLLIN}};
  // When what is left of it will count as stuck, from the end of its thread on.
  int64_t stuck = 0;
  while (true) {
    int64_t end = stuck ? stuck : daemon->is_serving ? 0 : limit;
    int64_t wake = stuck ? stuck : earlier(end, daemon->watch.next);
    waits[2].fd = stuck ? -1 : daemon->thread;
    int count = poll(waits, 3, wake == 0 ? -1 : milliseconds_until(wake));
    if (count < 0 && errno != EINTR) break;
    if (count == 0 && end != 0 && now() >= end) {
      if (!stuck) kill(daemon->process, SIGKILL);
      break;
    }
    if (count > 0 && waits[1].revents) take_signals(daemon);
    if (count > 0 && waits[0].revents && !listen_to(daemon)) break;
    if (count > 0 && waits[2].revents) stuck = now() + STUCK_MILLISECONDS;
    // Only when nothing is left to be heard.
    if (count != 0 || stuck || daemon->watch.next == 0 || now() < daemon->watch.next) continue;
    if (!watch_look(&daemon->watch, daemon->process, now())) continue;
    daemon->was_silent = true;
    kill(daemon->process, SIGKILL);
    stuck = now() + KILL_MILLISECONDS;
  }
  if (daemon->thread >= 0) close(daemon->thread);
  bool is_stuck = stuck && now() >= stuck;
  close(daemon->line);
  int status = 0;
  // In order: then all of it has come to its end, or all but what nothing ends.
  bool is_certain = daemon->has_ended && !is_stuck;
  for (int64_t limit = now() + END_MILLISECONDS; is_certain || now() < limit;) {
    pid_t result = waitpid(daemon->process, &status, is_certain ? 0 : WNOHANG);
    if (result == daemon->process) return status;
    if (result < 0 && errno != EINTR) break;
    if (!is_certain) poll(NULL, 0, 1);
  }
  return daemon->has_ended ? 0 : SIGKILL;
}

// A pause that a signal ends; false when it has. Daemons that took their time to end are reaped.
static bool pause_for(int64_t milliseconds) {
  struct pollfd wait = {.fd = signals, .events = POLLIN};
  while (waitpid(-1, NULL, WNOHANG) > 0) {}
  for (int64_t end = now() + milliseconds, left; !is_ending() && (left = end - now()) > 0;) {
    if (poll(&wait, 1, (int)left) > 0) take_signals(NULL);
    while (waitpid(-1, NULL, WNOHANG) > 0) {}
  }
  return !is_ending();
}

// False once somebody has unmounted it: what lies at the mount point then is not ours.
static bool is_connected(void) {
  struct pollfd look = {.fd = device, .events = POLLIN};
  return poll(&look, 1, 0) <= 0 || !(look.revents & POLLERR);
}

static void describe(int status, const char *next) {
  if (WIFSIGNALED(status))
    fprintf(stderr, "promisefs-holder: the daemon was ended by signal %d; %s\n", WTERMSIG(status), next);
  else
    fprintf(stderr, "promisefs-holder: the daemon ended with status %d; %s\n", WEXITSTATUS(status), next);
}

// Whoever waits gets an error, even if a thread of a dead daemon that waits in the kernel still has the device. The file
// belongs to the mount's user (fs/fuse/control.c).
static void abort_connection(void) {
  char path[64];
  snprintf(path, sizeof path, "/sys/fs/fuse/connections/%u/abort", connection);
  int file = connection ? open(path, O_WRONLY | O_CLOEXEC) : -1;
  if (file < 0) return;
  ssize_t written = write(file, "1", 1);
  // Where it cannot be had, the mount ends with its last descriptor.
  (void)written;
  close(file);
}

// Whoever waits on the mount gets an error. It goes where somebody wanted its end, or where it was never served; else it stays,
// dead: the folder below would be taken for what is mounted, and for empty, by a backup say. `promisefs mount` replaces it.
static void abandon(bool stays) {
  if (device < 0 || !is_connected()) return;
  abort_connection();
  if (!stays && (geteuid() != 0 || umount2(mount_point, MNT_FORCE | MNT_DETACH | UMOUNT_NOFOLLOW) != 0)) {
    char *const arguments[] = {"fusermount3", "-u", "-q", "-z", "--", (char *)mount_point, NULL};
    pid_t process;
    if (posix_spawnp(&process, arguments[0], NULL, NULL, arguments, environ) == 0) waitpid(process, NULL, 0);
  }
  close(device);
}

// Before the next daemon. `pause`: what came before the last one that served; `failures`: how many have not served since.
static int64_t next_pause(int64_t pause, unsigned failures, const struct daemon *daemon) {
  if (failures > 0) {
    int64_t doubled = FAILURE_PAUSE_MIN_MILLISECONDS << (failures < 10 ? failures - 1 : 9);
    return doubled < FAILURE_PAUSE_MAX_MILLISECONDS ? doubled : FAILURE_PAUSE_MAX_MILLISECONDS;
  }
  if (daemon->wants_restart || now() - daemon->started >= STEADY_MILLISECONDS) return 0;
  return pause + PAUSE_STEP_MILLISECONDS < PAUSE_MAX_MILLISECONDS ? pause + PAUSE_STEP_MILLISECONDS : PAUSE_MAX_MILLISECONDS;
}

// Somebody wanted the end of a daemon that could not end in order yet.
static void note_request(int status) {
  if (!WIFSIGNALED(status)) return;
  int number = WTERMSIG(status);
  if (number == SIGTERM || number == SIGINT || number == SIGHUP) ending_since = now();
}

static int exit_status(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

static int run(char **command) {
  int64_t pause = 0, without = now();
  unsigned failures = 0;
  while (true) {
    struct daemon daemon = {.line = -1, .thread = -1};
    bool is_first = restarts == 0, is_started = start(&daemon, command);
    // What the first one is told to write to is closed for its successors: somebody waits for its end.
    if (is_first) close(STDERR_FILENO + 1);
    if (!is_started && is_first) return 127;
    // An executable that is just being replaced cannot be started for a moment.
    last_status = is_started ? serve(&daemon, is_first ? 0 : without + GIVE_UP_MILLISECONDS) : 127 << 8;
    if (daemon.is_serving) without = now();
    note_request(last_status);
    // Longer ago than anybody waits for an end: nobody says it again.
    if (daemon.was_silent && daemon.asked > 0) ending_since = now();
    if (daemon.was_silent) last_status |= HOLDER_SILENT;
    if (daemon.has_ended) return exit_status(last_status);
    // One that has never served says itself why, to whoever started it.
    if (is_first && !daemon.is_serving) {
      abandon(false);
      return exit_status(last_status);
    }
    if (device >= 0 && !is_connected()) return exit_status(last_status);
    bool is_over = is_ending() || now() - without >= GIVE_UP_MILLISECONDS;
    failures = daemon.is_serving ? 0 : failures + 1;
    int64_t wait = next_pause(pause, failures, &daemon);
    if (failures == 0) pause = wait;
    char next[64];
    snprintf(next, sizeof next, "starting its successor after %d ms", (int)wait);
    if (!daemon.wants_restart) describe(last_status, is_over ? "its mount is given up" : next);
    restarts++;
    if (is_over || !pause_for(wait)) {
      abandon(!is_ending());
      return exit_status(last_status);
    }
  }
}

int main(int count, char **arguments) {
  if (count < 4) {
    fprintf(stderr, "usage: promisefs-holder MOUNTPOINT EXECUTABLE NAME [ARGUMENT]...\n");
    return 2;
  }
  mount_point = arguments[1];
  stays_in_group = getenv("PROMISEFS_STAY_IN_GROUP") != NULL;
  unsetenv("PROMISEFS_STAY_IN_GROUP");
  ending_since = now() - ENDING_MILLISECONDS;
  sigset_t taken;
  sigemptyset(&taken);
  sigaddset(&taken, SIGCHLD);
  sigaddset(&taken, SIGTERM);
  sigaddset(&taken, SIGINT);
  sigaddset(&taken, SIGHUP);
  sigprocmask(SIG_BLOCK, &taken, NULL);
  signals = moved_up(signalfd(-1, &taken, SFD_NONBLOCK));
  record = moved_up(memfd_create("promisefs-record", 0));
  if (signals < 0 || record < 0) {
    fprintf(stderr, "promisefs-holder: no memory for the record: %s\n", strerror(errno));
    return 1;
  }
  // Nothing below it should be kept from being unmounted.
  if (chdir("/") != 0) return 1;
  return run(arguments + 2);
}
