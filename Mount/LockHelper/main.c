// promisefs-locks: takes locks on files of a mount for programs that see these files in views.
//
// Each mount's kernel has locks of its own, and an application's view is a mount of its own. So what a program locks in a view is
// locked on the owner's mount as well, by this process, and the kernel of that mount decides between all: programs on the mount do
// not notice. A process of its own for the reason that promisefs-echo is one: its calls on the mount wait for the daemon.
//
// An open file description stands for each owner of locks (fcntl(2), "open file description locks"; flock(2)), so that the kernel
// merges and splits ranges as it would for the owner itself. Whoever waits has a thread.
//
// The daemon starts it with a SOCK_SEQPACKET socket as standard input. Each message is a `struct request`, with a path behind it;
// all but C and E are answered by a `struct answer`, in any order. It ends when the socket is closed, and the locks with it.
//
//   S  sets a lock, or takes it away (F_UNLCK)
//   G  asks which lock is in the way of one
//   C  the request with this number need not wait any more: it is answered with EINTR, unless it has its lock
//   D  drops what an owner has
//   E  drops what a view has
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <poll.h>
#include <unistd.h>

#define LINE 0
// Of one view, so that no application takes what all have together.
#define HOLDERS_MAX 1024
#define WAITERS_MAX 128
// Between two tries to wake a thread that need not wait: the signal may come just before it waits.
#define WAKING_MILLISECONDS 5

struct request {
  uint64_t number, node, owner;
  int64_t start, end; // both inclusive
  uint32_t major, minor; // of the mount
  int32_t process;
  uint16_t view;
  uint8_t call;
  uint8_t kind; // 'R': ranges of fcntl(2); 'F': flock(2)
  uint8_t type; // F_RDLCK, F_WRLCK or F_UNLCK
  uint8_t waits;
  uint8_t is_writable;
  uint8_t padding[5];
  char path[];
};
_Static_assert(offsetof(struct request, path) == 64, "as LockProcess.swift writes it");

struct answer {
  uint64_t number;
  int64_t start, end;
  int32_t problem; // an errno, or 0
  int32_t type, process, padding;
};

// What one owner has on one file.
struct holder {
  struct holder *next;
  uint64_t node, owner;
  int32_t process;
  uint16_t view;
  uint8_t kind;
  bool is_dropped;
  int file, waiting;
};

struct waiter {
  struct waiter *next;
  struct holder *holder;
  pthread_t thread;
  atomic_bool is_cancelled;
  struct request request; // without its path; last, for the path has no size
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct holder *holders;
static struct waiter *waiters;

static void answer(const struct request *request, int problem, const struct flock *found, int32_t process) {
  struct answer answer = {.number = request->number, .problem = problem, .type = F_UNLCK, .process = process};
  if (found) {
    answer.type = found->l_type;
    answer.start = found->l_start;
    answer.end = found->l_len == 0 ? INT64_MAX : found->l_start + found->l_len - 1;
  }
  while (send(LINE, &answer, sizeof answer, MSG_NOSIGNAL) < 0 && errno == EINTR) {}
}

static struct flock range(const struct request *request) {
  int64_t length = request->end == INT64_MAX ? 0 : request->end - request->start + 1;
  return (struct flock){.l_type = request->type, .l_whence = SEEK_SET, .l_start = request->start, .l_len = length};
}

static int apply(int file, const struct request *request) {
  int result;
  if (request->kind == 'F') {
    int operation = request->type == F_UNLCK ? LOCK_UN : request->type == F_RDLCK ? LOCK_SH : LOCK_EX;
    result = flock(file, operation | (request->waits ? 0 : LOCK_NB));
  } else {
    struct flock wanted = range(request);
    result = fcntl(file, request->waits ? F_OFD_SETLKW : F_OFD_SETLK, &wanted);
  }
  if (result == 0) return 0;
  // EBADF: the owner may not write to it, or no more than before.
  return errno == EWOULDBLOCK ? EAGAIN : errno == EBADF ? ENOLCK : errno;
}

// MARK: - Files

static int open_path(const char *path, bool is_writable) {
  int flags = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  int file = open(path, (is_writable ? O_RDWR : O_RDONLY) | flags);
  if (file < 0 && is_writable && (errno == EACCES || errno == EROFS || errno == EPERM)) return open(path, O_RDONLY | flags);
  return file;
}

// A file without a name is open here already, or is locked in views alone.
static int open_file(const struct request *request) {
  char path[64];
  for (struct holder *holder = holders; holder; holder = holder->next) {
    if (holder->node != request->node) continue;
    snprintf(path, sizeof path, "/proc/self/fd/%d", holder->file);
    return open(path, (request->is_writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
  }
  if (!*request->path) return memfd_create("lock", MFD_CLOEXEC);
  int file = open_path(request->path, request->is_writable);
  if (file < 0) return -1;
  struct stat status;
  int problem = fstat(file, &status) == 0 ? 0 : errno;
  // Moved meanwhile, or another mount is on top.
  if (problem == 0 && (status.st_dev != makedev(request->major, request->minor) || status.st_ino != request->node))
    problem = ESTALE;
  if (problem == 0) return file;
  close(file);
  errno = problem;
  return -1;
}

// MARK: - Holders, under the lock

static bool is_of(const struct holder *holder, const struct request *request) {
  return holder->node == request->node && holder->owner == request->owner && holder->view == request->view &&
         holder->kind == request->kind;
}

static struct holder *find(const struct request *request) {
  struct holder *holder = holders;
  while (holder && !is_of(holder, request)) holder = holder->next;
  return holder;
}

static struct holder *make(const struct request *request, int *problem) {
  int count = 0;
  for (struct holder *holder = holders; holder; holder = holder->next) count += holder->view == request->view;
  *problem = ENOLCK;
  if (count >= HOLDERS_MAX) return NULL;
  int file = open_file(request);
  if (file < 0) {
    *problem = errno == ENOENT || errno == ESTALE ? ESTALE : ENOLCK;
    return NULL;
  }
  struct holder *holder = calloc(1, sizeof *holder);
  if (!holder) {
    close(file);
    return NULL;
  }
  *holder = (struct holder){.next = holders, .node = request->node, .owner = request->owner, .process = request->process,
                            .view = request->view, .kind = request->kind, .file = file};
  return holders = holder;
}

static void unlock(const struct holder *holder) {
  struct request all = {.kind = holder->kind, .type = F_UNLCK, .start = 0, .end = INT64_MAX};
  apply(holder->file, &all);
}

static void drop(struct holder *holder) {
  unlock(holder);
  // Another thread of its owner waits for a lock.
  if (holder->waiting > 0) return;
  struct holder **place = &holders;
  while (*place != holder) place = &(*place)->next;
  *place = holder->next;
  close(holder->file);
  free(holder);
}

// MARK: - Waiting

static void *wait_for_lock(void *argument) {
  struct waiter *waiter = argument;
  int problem;
  do problem = apply(waiter->holder->file, &waiter->request);
  while (problem == EINTR && !atomic_load(&waiter->is_cancelled));
  pthread_mutex_lock(&lock);
  struct waiter **place = &waiters;
  while (*place != waiter) place = &(*place)->next;
  *place = waiter->next;
  waiter->holder->waiting--;
  if (waiter->holder->is_dropped) drop(waiter->holder);
  pthread_mutex_unlock(&lock);
  answer(&waiter->request, problem, NULL, 0);
  free(waiter);
  return NULL;
}

static int start_waiting(struct holder *holder, const struct request *request) {
  int count = 0;
  for (struct waiter *waiter = waiters; waiter; waiter = waiter->next) count += waiter->request.view == request->view;
  struct waiter *waiter = count < WAITERS_MAX ? calloc(1, sizeof *waiter) : NULL;
  if (!waiter) return ENOLCK;
  waiter->next = waiters;
  waiter->holder = holder;
  waiter->request = *request;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN + 16384);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  int problem = pthread_create(&waiter->thread, &attributes, wait_for_lock, waiter);
  pthread_attr_destroy(&attributes);
  if (problem != 0) {
    free(waiter);
    return ENOLCK;
  }
  waiters = waiter;
  holder->waiting++;
  return 0;
}

static void wake(int signal) { (void)signal; }

// True while there is one that may not have heard of it.
static bool wake_cancelled(void) {
  bool is_one = false;
  for (struct waiter *waiter = waiters; waiter; waiter = waiter->next) {
    if (!atomic_load(&waiter->is_cancelled)) continue;
    pthread_kill(waiter->thread, SIGUSR1);
    is_one = true;
  }
  return is_one;
}

// MARK: - Calls, under the lock

static void set(const struct request *request) {
  int problem = 0;
  struct holder *holder = find(request);
  if (!holder && request->type == F_UNLCK) return answer(request, 0, NULL, 0);
  if (!holder && !(holder = make(request, &problem))) return answer(request, problem, NULL, 0);
  holder->process = request->process;
  struct request at_once = *request;
  at_once.waits = false;
  problem = apply(holder->file, &at_once);
  if (problem == EAGAIN && request->waits) {
    problem = start_waiting(holder, request);
    if (problem == 0) return;
  }
  answer(request, problem, NULL, 0);
}

// Of a lock that a program in the same view has: the kernel knows it as this process's. Its owner is who is not kept from it.
static int32_t process_of(const struct request *request, const struct flock *found) {
  for (struct holder *holder = holders; holder; holder = holder->next) {
    struct flock again = *found;
    again.l_type = F_WRLCK;
    again.l_pid = 0;
    if (holder->node != request->node || holder->view != request->view || holder->kind != 'R' || is_of(holder, request)) continue;
    if (fcntl(holder->file, F_OFD_GETLK, &again) == 0 && again.l_type == F_UNLCK) return holder->process;
  }
  return 0;
}

static void get(const struct request *request) {
  int problem = 0;
  struct holder *holder = find(request), *known = holder;
  if (!holder && !(holder = make(request, &problem))) return answer(request, problem, NULL, 0);
  struct flock found = range(request);
  problem = fcntl(holder->file, F_OFD_GETLK, &found) == 0 ? 0 : errno;
  int32_t process = problem != 0 || found.l_type == F_UNLCK ? 0 : found.l_pid > 0 ? found.l_pid : process_of(request, &found);
  answer(request, problem, problem == 0 ? &found : NULL, process);
  if (!known) drop(holder);
}

static void end_view(uint16_t view) {
  for (struct waiter *waiter = waiters; waiter; waiter = waiter->next)
    if (waiter->request.view == view) atomic_store(&waiter->is_cancelled, true);
  for (struct holder *holder = holders, *next; holder; holder = next) {
    next = holder->next;
    if (holder->view != view) continue;
    holder->is_dropped = true;
    drop(holder);
  }
}

static void carry_out(const struct request *request) {
  struct holder *holder;
  switch (request->call) {
  case 'S': set(request); break;
  case 'G': get(request); break;
  case 'D':
    if ((holder = find(request))) drop(holder);
    answer(request, 0, NULL, 0);
    break;
  case 'C':
    for (struct waiter *waiter = waiters; waiter; waiter = waiter->next)
      if (waiter->request.number == request->number) atomic_store(&waiter->is_cancelled, true);
    break;
  case 'E': end_view(request->view); break;
  }
}

int main(void) {
  static _Alignas(struct request) char message[sizeof(struct request) + PATH_MAX + 1];
  int type = 0;
  socklen_t size_of_type = sizeof type;
  if (getsockopt(LINE, SOL_SOCKET, SO_TYPE, &type, &size_of_type) != 0 || type != SOCK_SEQPACKET) {
    fprintf(stderr, "promisefs-locks is started by the promisefs daemon\n");
    return 2;
  }
  struct rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  struct sigaction waking = {.sa_handler = wake};
  sigaction(SIGUSR1, &waking, NULL);
  if (chdir("/") != 0) return 1;
  for (;;) {
    pthread_mutex_lock(&lock);
    bool is_waking = wake_cancelled();
    pthread_mutex_unlock(&lock);
    struct pollfd line = {.fd = LINE, .events = POLLIN};
    if (poll(&line, 1, is_waking ? WAKING_MILLISECONDS : -1) <= 0) continue;
    ssize_t size = recv(LINE, message, sizeof message - 1, 0);
    if (size < 0 && errno == EINTR) continue;
    if (size < (ssize_t)sizeof(struct request)) return 0;
    message[size] = 0;
    pthread_mutex_lock(&lock);
    carry_out((const struct request *)message);
    pthread_mutex_unlock(&lock);
  }
}
