#include "CPromiseSystem.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// Between fork and exec: system calls only. Never returns.
static void become(
    const char *program, char *const *arguments, char *const *environment, int input, int output, int report, pid_t parent) {
  int failure;
  sigset_t none;
  setsid();
  // Before anything of the program runs; and the parent may have died before the call.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent) _exit(127);
  for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  umask(022);
  // The numbers that are kept are copied out of the way first.
  report = fcntl(report, F_DUPFD_CLOEXEC, 10);
  if (dup2(input, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0 || report < 0) _exit(127);
  if (dup3(report, 3, O_CLOEXEC) < 0 || close_range(4, ~0U, 0) < 0) _exit(127);
  execve(program, arguments, environment);
  failure = errno;
  if (write(3, &failure, sizeof failure) < 0) _exit(127);
  _exit(127);
}

int cps_start_bound(
    const char *program, char *const *arguments, char *const *environment, int input, int output) {
  int line[2], failure = 0;
  pid_t parent = getpid();
  if (pipe2(line, O_CLOEXEC) < 0) return -1;
  pid_t process = fork();
  if (process == 0) become(program, arguments, environment, input, output, line[1], parent);
  int problem = errno;
  close(line[1]);
  if (process < 0) {
    close(line[0]);
    errno = problem;
    return -1;
  }
  // Nothing comes when the program runs: exec closes the other end.
  ssize_t size;
  do size = read(line[0], &failure, sizeof failure);
  while (size < 0 && errno == EINTR);
  close(line[0]);
  if (size == sizeof failure) errno = failure;
  return size == sizeof failure ? -process : process;
}

int cps_process_descriptor(int process) { return (int)syscall(SYS_pidfd_open, process, 0); }
