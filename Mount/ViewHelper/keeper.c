// Starts the application, and keeps it from outliving its launch.
//
// bubblewrap ties what it starts to its own life by PR_SET_PDEATHSIG, which each process sets for itself. Whoever is killed before
// that leaves a program that nobody ends. So a keeper stands between: what loses its parent below it becomes its child
// (PR_SET_CHILD_SUBREAPER), and when the launch or bubblewrap has gone it kills all of these, until there is none.
#include "view.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

// A child that is killed leaves its own children to the keeper, which are looked for again after so many milliseconds.
#define PAUSE 10

static void become(pid_t keeper, pid_t group, const sigset_t *mask, char **command) {
  // What the terminal sends to the launch is for it, too.
  setpgid(0, group);
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != keeper) _exit(1);
  sigprocmask(SIG_SETMASK, mask, NULL);
  // What is inside reads /proc/1/environ, bubblewrap's: the words of the caller are none of its business.
  char *nothing[] = {NULL};
  execvpe(command[0], command, nothing);
  int problem = errno;
  fprintf(stderr, "promisefs-view: %s: %s\n", command[0], strerror(problem));
  _exit(problem == ENOENT ? 127 : 126);
}

// proc(5): /proc/PID/task/TID/children.
static void kill_children(void) {
  int child;
  FILE *children = fopen("/proc/thread-self/children", "re");
  if (!children) return;
  while (fscanf(children, "%d", &child) == 1) kill(child, SIGKILL);
  fclose(children);
}

// Returns when no child is left.
static int keep_until_the_end(int launch, int news, pid_t first) {
  struct signalfd_siginfo signal;
  struct pollfd watched[] = {{.fd = launch}, {.fd = news, .events = POLLIN}};
  int code = 128 + SIGKILL;
  bool has_ended = false, is_first_there = true;
  for (;;) {
    int status;
    pid_t gone;
    while ((gone = waitpid(-1, &status, WNOHANG)) > 0) {
      if (gone != first) continue;
      code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      has_ended = true;
      is_first_there = false;
    }
    if (gone < 0 && errno == ECHILD) return code;
    if (has_ended) kill_children();
    // Also where the kernel lists no children (CONFIG_PROC_CHILDREN): the rest goes as bubblewrap has tied it.
    if (has_ended && is_first_there) kill(first, SIGKILL);
    if (poll(watched, 2, has_ended ? PAUSE : -1) < 0) continue;
    if (watched[0].revents) {
      watched[0].fd = -1;
      has_ended = true;
    }
    if (watched[1].revents && read(news, &signal, sizeof signal) < 0) continue;
  }
}

static void be_the_keeper(int launch, char **command) {
  sigset_t children, mask;
  pid_t keeper = getpid(), group = getpgrp();
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 || setpgid(0, 0) < 0) fail("the keeper of a launch");
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  sigprocmask(SIG_BLOCK, &children, &mask);
  int news = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
  if (news < 0) fail("a signal's descriptor");
  pid_t first = fork();
  if (first < 0) fail("a process");
  if (first == 0) become(keeper, group, &mask, command);
  _exit(keep_until_the_end(launch, news, first));
}

int keep(pid_t caller, char **command) {
  int line[2], status;
  // As bubblewrap does: a shell that is killed leaves no application.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != caller) return 128 + SIGKILL;
  if (pipe2(line, O_CLOEXEC) < 0) fail("a pipe");
  pid_t keeper = fork();
  if (keeper < 0) fail("a process");
  if (keeper == 0) {
    close(line[1]);
    be_the_keeper(line[0], command);
  }
  // The other end stays open as long as this process lives, whatever ends it.
  close(line[0]);
  while (waitpid(keeper, &status, 0) < 0 && errno == EINTR) {}
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
