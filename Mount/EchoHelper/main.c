// promisefs-echo: lets programs that watch a mount by inotify(7) hear of what the provider changed.
//
// The kernel raises those events for calls of programs only, not for what the daemon tells it. So this program makes the call that
// the change would have been, on the mount, and the daemon, which knows this process, answers it without doing anything: the index
// has the change already. A process of its own and not a thread of the daemon's: a call on the mount waits for the daemon, and a
// daemon that dies could not end, nor have a successor, while one of its own threads waits for it.
//
// The daemon starts it with a SOCK_SEQPACKET socket as standard input. Each message is one call: a letter, then texts that each
// end with NUL; the answer is an errno, 4 bytes. Nothing is ever done outside the mount: the folder of a name is opened first, and
// it must be the one that the daemon means (device and inode number). It ends when the socket is closed.
//
//   M FOLDER NAME MODE TARGET        makes a file, folder or link, by the type in MODE (octal)
//   R FOLDER NAME                    removes a file or link
//   D FOLDER NAME                    removes a folder
//   V FOLDER NAME FOLDER NAME        renames
//   T FOLDER NAME SECONDS NANOSECONDS    the modification time alone: IN_MODIFY
//   A FOLDER NAME SECONDS NANOSECONDS    both times: IN_ATTRIB
//   W FOLDER NAME                    opens for writing and closes: IN_CLOSE_WRITE
//   N PROCESS                        goes where that process sees a mount that nobody outside sees, an application's view: into
//                                    its user and mount namespace, and ends with it
//
// FOLDER is four texts: the major and minor number of the device, the inode number, and an absolute path.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define LINE 0

// What is left of a message.
struct texts {
  char *next, *end;
};

static const char *take(struct texts *texts) {
  if (texts->next >= texts->end) return NULL;
  char *text = texts->next;
  texts->next += strlen(text) + 1;
  return text;
}

static bool take_number(struct texts *texts, int base, uint64_t *number) {
  const char *text = take(texts);
  if (!text || !*text) return false;
  char *rest;
  errno = 0;
  *number = strtoull(text, &rest, base);
  return errno == 0 && !*rest;
}

// Opens the folder that is meant, or none; sets errno.
static int take_folder(struct texts *texts) {
  uint64_t major, minor, inode;
  const char *path = NULL;
  bool is_whole = take_number(texts, 10, &major) && take_number(texts, 10, &minor) && take_number(texts, 10, &inode) &&
                  (path = take(texts));
  if (!is_whole) {
    errno = EINVAL;
    return -1;
  }
  int folder = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return -1;
  struct stat status;
  int problem = fstat(folder, &status) == 0 ? 0 : errno;
  // Moved meanwhile, or another mount is on top.
  if (problem == 0 && (status.st_dev != makedev(major, minor) || status.st_ino != inode)) problem = ESTALE;
  if (problem == 0) return folder;
  close(folder);
  errno = problem;
  return -1;
}

static int make(int folder, const char *name, struct texts *texts) {
  uint64_t mode;
  const char *target;
  if (!take_number(texts, 8, &mode) || !(target = take(texts))) return EINVAL;
  int result = S_ISDIR(mode)   ? mkdirat(folder, name, mode & 07777)
               : S_ISLNK(mode) ? symlinkat(target, folder, name)
                               : mknodat(folder, name, S_IFREG | (mode & 07777), 0);
  return result == 0 ? 0 : errno;
}

static int move(int folder, const char *name, struct texts *texts) {
  int new_folder = take_folder(texts);
  if (new_folder < 0) return errno;
  const char *new_name = take(texts);
  int problem = !new_name ? EINVAL : renameat(folder, name, new_folder, new_name) == 0 ? 0 : errno;
  close(new_folder);
  return problem;
}

static int touch(int folder, const char *name, struct texts *texts, bool both) {
  uint64_t seconds, nanoseconds;
  if (!take_number(texts, 10, &seconds) || !take_number(texts, 10, &nanoseconds)) return EINVAL;
  struct timespec time = {.tv_sec = (time_t)seconds, .tv_nsec = (long)nanoseconds};
  struct timespec times[2] = {both ? time : (struct timespec){.tv_nsec = UTIME_OMIT}, time};
  return utimensat(folder, name, times, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : errno;
}

static int open_and_close(int folder, const char *name) {
  int file = openat(folder, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return errno;
  return close(file) == 0 ? 0 : errno;
}

// The process whose namespaces these are; -1: those of the daemon.
static int host = -1;

// While this is in them the namespaces stay, and what is mounted there: `wait_for_message` looks for its end.
static int enter(struct texts *texts) {
  uint64_t process;
  if (host >= 0 || !take_number(texts, 10, &process)) return EINVAL;
  host = (int)syscall(SYS_pidfd_open, (pid_t)process, 0);
  if (host < 0 || setns(host, CLONE_NEWUSER | CLONE_NEWNS) != 0) return errno;
  // The kernel may have forgotten it with the change.
  return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 ? 0 : errno;
}

static int carry_out(char *message, size_t size) {
  if (size < 2 || message[size - 1] != 0) return EINVAL;
  struct texts texts = {.next = message + 1, .end = message + size};
  if (message[0] == 'N') return enter(&texts);
  int folder = take_folder(&texts);
  if (folder < 0) return errno;
  const char *name = take(&texts);
  int problem = EINVAL;
  if (name && *name) {
    switch (message[0]) {
    case 'M': problem = make(folder, name, &texts); break;
    case 'R': problem = unlinkat(folder, name, 0) == 0 ? 0 : errno; break;
    case 'D': problem = unlinkat(folder, name, AT_REMOVEDIR) == 0 ? 0 : errno; break;
    case 'V': problem = move(folder, name, &texts); break;
    case 'T': problem = touch(folder, name, &texts, false); break;
    case 'A': problem = touch(folder, name, &texts, true); break;
    case 'W': problem = open_and_close(folder, name); break;
    }
  }
  close(folder);
  return problem;
}

static bool wait_for_message(void) {
  struct pollfd watched[] = {{.fd = LINE, .events = POLLIN}, {.fd = host, .events = POLLIN}};
  while (poll(watched, 2, -1) < 0) {
    if (errno != EINTR) return false;
  }
  return watched[1].revents == 0;
}

int main(void) {
  static char message[32768];
  int type = 0;
  socklen_t size_of_type = sizeof type;
  if (getsockopt(LINE, SOL_SOCKET, SO_TYPE, &type, &size_of_type) != 0 || type != SOCK_SEQPACKET) {
    fprintf(stderr, "promisefs-echo is started by the promisefs daemon\n");
    return 2;
  }
  umask(0);
  if (chdir("/") != 0) return 1;
  while (wait_for_message()) {
    ssize_t size = recv(LINE, message, sizeof message, 0);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return 0;
    int32_t problem = carry_out(message, (size_t)size);
    if (send(LINE, &problem, sizeof problem, MSG_NOSIGNAL) < 0) return 0;
  }
  return 0;
}
