#include "CPromiseSystem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
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

int cps_start_tied(char *const *arguments) {
  int line[2], failure = 0;
  pid_t parent = getpid();
  if (pipe2(line, O_CLOEXEC) < 0) return -1;
  pid_t process = fork();
  if (process == 0) {
    sigset_t none;
    // The parent may have died before the call.
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent) _exit(127);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execvp(arguments[0], arguments);
    failure = errno;
    if (write(line[1], &failure, sizeof failure) < 0) _exit(127);
    _exit(127);
  }
  int problem = errno;
  close(line[1]);
  ssize_t size = -1;
  if (process > 0) {
    // Nothing comes when the program runs: exec closes the other end.
    do size = read(line[0], &failure, sizeof failure);
    while (size < 0 && errno == EINTR);
  }
  close(line[0]);
  if (size == sizeof failure) waitpid(process, NULL, 0);
  errno = process < 0 ? problem : failure;
  return size == sizeof failure || process < 0 ? -1 : process;
}

static _Atomic int followed_process;

// What the terminal sends goes to the whole group, and so to the command as well.
static void pass_on(int number, siginfo_t *information, void *context) {
  int process = followed_process;
  (void)context;
  if (process > 0 && information->si_code <= 0) kill(process, number);
}

void cps_pass_signals_on(int process) {
  static const int numbers[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH};
  static struct sigaction before[sizeof numbers / sizeof *numbers];
  static int is_passing;
  followed_process = process;
  for (size_t number = 0; number < sizeof numbers / sizeof *numbers; number++) {
    struct sigaction action = {.sa_sigaction = pass_on, .sa_flags = SA_RESTART | SA_SIGINFO};
    if (process > 0) {
      if (!is_passing) sigaction(numbers[number], NULL, &before[number]);
      // What nohup(1) ignores, the command ignores by itself.
      if (before[number].sa_handler != SIG_IGN) sigaction(numbers[number], &action, NULL);
    } else if (is_passing) {
      sigaction(numbers[number], &before[number], NULL);
    }
  }
  is_passing = process > 0;
}

static _Atomic int signal_descriptor = -1;

static void note_signal(int number) {
  int problem = errno;
  unsigned char byte = (unsigned char)number;
  if (signal_descriptor >= 0 && write(signal_descriptor, &byte, 1) < 0) errno = problem;
  errno = problem;
}

void cps_write_signals_to(int descriptor) {
  static const int numbers[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
  static struct sigaction before[sizeof numbers / sizeof *numbers];
  static int is_noting;
  signal_descriptor = descriptor;
  for (size_t number = 0; number < sizeof numbers / sizeof *numbers; number++) {
    struct sigaction action = {.sa_handler = note_signal, .sa_flags = SA_RESTART};
    if (descriptor >= 0) {
      if (!is_noting) sigaction(numbers[number], NULL, &before[number]);
      if (before[number].sa_handler != SIG_IGN) sigaction(numbers[number], &action, NULL);
    } else if (is_noting) {
      sigaction(numbers[number], &before[number], NULL);
    }
  }
  is_noting = descriptor >= 0;
}

void cps_write_these_signals_to(int descriptor, const int *numbers, int count) {
  struct sigaction action = {.sa_handler = note_signal, .sa_flags = SA_RESTART};
  signal_descriptor = descriptor;
  for (int number = 0; number < count; number++) sigaction(numbers[number], &action, NULL);
}

// In a process of its own: system calls only. The answer is errno and then the path, in one write,
// which a pipe keeps whole.
static void look(const char *path, int flags, int report) {
  struct {
    int problem;
    char path[PIPE_BUF - sizeof(int)];
  } answer = {0};
  char name[32];
  ssize_t length = 0;
  // Whoever waits for the end of what this process has inherited would wait for it.
  if (dup2(report, 0) < 0 || close_range(1, ~0U, 0) < 0) _exit(1);
  int folder = open(path, flags | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    snprintf(name, sizeof name, "/proc/self/fd/%d", folder);
    length = readlink(name, answer.path, sizeof answer.path);
  }
  if (folder < 0 || length < 0) answer.problem = errno;
  if (write(0, &answer, sizeof answer.problem + (length > 0 ? (size_t)length : 0)) < 0) _exit(1);
  _exit(0);
}

int cps_look_at_folder(
    const char *path, int flags, int milliseconds, char *resolved, unsigned size) {
  int line[2], problem = ETIMEDOUT;
  if (pipe2(line, O_CLOEXEC) < 0) return -1;
  pid_t process = fork();
  if (process == 0) look(path, flags, line[1]);
  if (process < 0) problem = errno;
  close(line[1]);
  struct pollfd wait = {.fd = line[0], .events = POLLIN};
  ssize_t length = -1;
  int count;
  do count = process < 0 ? 0 : poll(&wait, 1, milliseconds);
  while (count < 0 && errno == EINTR);
  if (count > 0 && read(line[0], &problem, sizeof problem) == sizeof problem && problem == 0) {
    length = read(line[0], resolved, size);
    if (length < 0) problem = errno;
  }
  close(line[0]);
  if (process > 0) {
    // One that has answered ends by itself; one that has not may not hear this, and then is init's
    // when we have gone.
    if (count <= 0) kill(process, SIGKILL);
    waitpid(process, NULL, count > 0 ? 0 : WNOHANG);
  }
  errno = problem;
  return (int)length;
}

int cps_signal_process(int descriptor, int signal) {
  return (int)syscall(SYS_pidfd_send_signal, descriptor, signal, NULL, 0);
}

int cps_process_descriptor(int process) { return (int)syscall(SYS_pidfd_open, process, 0); }

int cps_close_others_from(void *actions, int first) {
  return posix_spawn_file_actions_addclosefrom_np(actions, first);
}
