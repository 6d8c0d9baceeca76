#include "CPromiseSystem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
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

// What comes from the start of a tied command: its number, or why it could not be run.
struct tied_word {
  int is_problem;
  int value;
};

enum { family_count_max = 1024, patience_milliseconds = 5000, pause_milliseconds = 50 };

// Adds what a process has started to a list of `count` processes. System calls only.
static int add_children(pid_t process, pid_t *list, int count) {
  char path[64], text[4096];
  snprintf(path, sizeof path, "/proc/%d/task/%d/children", process, process);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return count;
  pid_t number = 0;
  ssize_t size;
  while ((size = read(file, text, sizeof text)) > 0) {
    for (ssize_t position = 0; position < size; position++) {
      if (text[position] >= '0' && text[position] <= '9') {
        number = number * 10 + (text[position] - '0');
      } else {
        if (number > 0 && count < family_count_max) list[count++] = number;
        number = 0;
      }
    }
  }
  close(file);
  return count;
}

// Everything below this process is asked to end, each of it once, and what is left after a while is killed. Whoever loses its
// parent is this one's child, so that nothing is overlooked.
static void end_family(void) {
  static pid_t asked[family_count_max];
  int asked_count = 0;
  struct timespec pause = {.tv_nsec = pause_milliseconds * 1000000L};
  for (int waited = 0; waited < 2 * patience_milliseconds; waited += pause_milliseconds) {
    static pid_t family[family_count_max];
    while (waitpid(-1, NULL, WNOHANG) > 0) {}
    int count = add_children(getpid(), family, 0);
    if (count == 0) return;
    for (int position = 0; position < count; position++) count = add_children(family[position], family, count);
    for (int position = 0; position < count; position++) {
      if (waited >= patience_milliseconds) {
        kill(family[position], SIGKILL);
        continue;
      }
      int known = 0;
      while (known < asked_count && asked[known] != family[position]) known++;
      if (known < asked_count || asked_count == family_count_max) continue;
      asked[asked_count++] = family[position];
      kill(family[position], SIGTERM);
    }
    nanosleep(&pause, NULL);
  }
}

// Waits for the command and ends as it did, or ends it when the caller has gone. Never returns.
static void keep(pid_t command, pid_t parent) {
  sigset_t wanted;
  int status;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGCHLD);
  sigaddset(&wanted, SIGRTMAX);
  while (1) {
    pid_t ended = waitpid(-1, &status, WNOHANG);
    if (ended == command) break;
    if (ended > 0) continue;
    int number = sigwaitinfo(&wanted, NULL);
    if (number != SIGRTMAX && getppid() == parent) continue;
    end_family();
    _exit(127);
  }
  if (WIFSIGNALED(status)) {
    struct rlimit none = {0, 0};
    sigset_t own;
    setrlimit(RLIMIT_CORE, &none);
    signal(WTERMSIG(status), SIG_DFL);
    sigemptyset(&own);
    sigaddset(&own, WTERMSIG(status));
    raise(WTERMSIG(status));
    sigprocmask(SIG_UNBLOCK, &own, NULL);
  }
  _exit(WEXITSTATUS(status));
}

static void become_command(char *const *arguments, int report, pid_t keeper) {
  sigset_t none;
  if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != keeper) _exit(127);
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  execvp(arguments[0], arguments);
  struct tied_word word = {1, errno};
  if (write(report, &word, sizeof word) < 0) _exit(127);
  _exit(127);
}

// Between the caller and the command: takes no signal but those, and holds nothing open but the streams. Never returns.
static void become_keeper(char *const *arguments, int report, pid_t parent) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, NULL);
  signal(SIGCHLD, SIG_DFL);
  // The parent may have died before the call.
  if (prctl(PR_SET_PDEATHSIG, SIGRTMAX) < 0 || getppid() != parent) _exit(127);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  pid_t keeper = getpid(), command = fork();
  if (command == 0) become_command(arguments, report, keeper);
  struct tied_word word = {command < 0, command < 0 ? errno : command};
  if (write(report, &word, sizeof word) < 0 || command < 0) _exit(127);
  close_range(3, ~0U, 0);
  keep(command, parent);
}

int cps_start_tied(char *const *arguments, int *command) {
  int line[2], failure = 0;
  pid_t parent = getpid();
  if (pipe2(line, O_CLOEXEC) < 0) return -1;
  pid_t process = fork();
  if (process == 0) become_keeper(arguments, line[1], parent);
  int problem = errno;
  close(line[1]);
  *command = 0;
  // Both ends of the others are closed when the command runs, or has failed to.
  while (process > 0) {
    struct tied_word word;
    ssize_t size = read(line[0], &word, sizeof word);
    if (size < 0 && errno == EINTR) continue;
    if (size != sizeof word) break;
    if (word.is_problem) failure = word.value; else *command = word.value;
  }
  close(line[0]);
  if (process > 0 && *command == 0 && failure == 0) failure = ECHILD;
  if (process > 0 && failure != 0) waitpid(process, NULL, 0);
  errno = process < 0 ? problem : failure;
  return process < 0 || failure != 0 ? -1 : process;
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

void cps_write_signals_to(int descriptor, int with_stops) {
  static const int numbers[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGCONT};
  static struct sigaction before[sizeof numbers / sizeof *numbers];
  static size_t noted;
  size_t count = noted;
  if (noted == 0 && descriptor >= 0) count = sizeof numbers / sizeof *numbers - (with_stops ? 0 : 2);
  signal_descriptor = descriptor;
  for (size_t number = 0; number < count; number++) {
    struct sigaction action = {.sa_handler = note_signal, .sa_flags = SA_RESTART};
    if (descriptor >= 0) {
      if (noted == 0) sigaction(numbers[number], NULL, &before[number]);
      if (before[number].sa_handler != SIG_IGN) sigaction(numbers[number], &action, NULL);
    } else {
      sigaction(numbers[number], &before[number], NULL);
    }
  }
  noted = descriptor >= 0 ? count : 0;
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
