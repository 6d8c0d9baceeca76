// promisefs-view: mounts an application's view of a domain in a user and mount namespace of its own, hands the device to the
// daemon, and runs the command that is to see it (keeper.c).
//
// The mount has no path outside: with allow_other the kernel lets in only who is in the mounter's user namespace or below it
// (fuse_allow_current_process in fs/fuse/dir.c), and it ends with the last process of the namespace. No privilege and no
// fusermount3 is needed. Started by root it becomes `nobody`: user 0 could write to what belongs to the machine.
//
//   promisefs-view [--with DESCRIPTOR] HANDOVER PLACE SOCKET [+ HANDOVER SOCKET]... COMMAND [ARGUMENT]...
//   promisefs-view --here HANDOVER PLACE PROCESS        (here.c)
//
// HANDOVER is where the daemon waits for the device of this launch. PLACE is an existing
// folder, in which the new namespace has `view0` and `socket0`: the second is SOCKET, the application's own, or nothing for "-". What
// follows a + is another domain's, with `view1` and `socket1`, and so on. Of whoever calls it COMMAND has the standard streams and
// DESCRIPTOR, and nothing else: a connection of the owner's would make the application the owner. Exits with 1 and a sentence when that fails, with 127 when
// there is no such command.
#include "view.h"

#include <ctype.h>
#include <grp.h>
#include <limits.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#define NOBODY 65534
// Of one launch.
#define DOMAINS_MAX 16

struct domain {
  const char *handover, *socket;
  int line, device;
};

void fail(const char *what) {
  fprintf(stderr, "promisefs-view: %s: %s\n", what, strerror(errno));
  exit(1);
}

int reach(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    fail("the daemon's socket");
  }
  strcpy(address.sun_path, path);
  int line = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (line < 0 || connect(line, (struct sockaddr *)&address, sizeof address) < 0) fail("the daemon's socket");
  return line;
}

static void write_text(const char *path, const char *text) {
  int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0 || write(file, text, strlen(text)) != (ssize_t)strlen(text)) fail(path);
  close(file);
}

static void become_nobody(void) {
  if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0)
    fail("becoming an ordinary user");
}

// Only somebody outside may give a namespace more users than his own: root and nobody, as root alone may open the device on some
// machines.
static void map_by_child(int line[2]) {
  char path[64], byte;
  close(line[1]);
  if (read(line[0], &byte, 1) != 1) _exit(1);
  snprintf(path, sizeof path, "/proc/%d/uid_map", getppid());
  write_text(path, "0 0 1\n65534 65534 1\n");
  snprintf(path, sizeof path, "/proc/%d/gid_map", getppid());
  write_text(path, "0 0 1\n65534 65534 1\n");
  _exit(0);
}

static void unshare_namespaces(void) {
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0) return;
  fail("a user namespace (this machine may forbid them to ordinary users: sysctl user.max_user_namespaces, "
       "kernel.unprivileged_userns_clone)");
}

static void enter_as_root(void) {
  int line[2], status;
  if (pipe2(line, O_CLOEXEC) < 0) fail("a pipe");
  pid_t child = fork();
  if (child < 0) fail("a process");
  if (child == 0) map_by_child(line);
  unshare_namespaces();
  if (write(line[1], "", 1) != 1 || waitpid(child, &status, 0) != child || status != 0) {
    fprintf(stderr, "promisefs-view: the users of the namespace could not be set\n");
    exit(1);
  }
  close(line[0]);
  close(line[1]);
}

// The user and the group keep their numbers, and are the only ones.
void enter_as_user(void) {
  char text[64];
  unsigned user = getuid(), group = getgid();
  unshare_namespaces();
  write_text("/proc/self/setgroups", "deny");
  snprintf(text, sizeof text, "%u %u 1", user, user);
  write_text("/proc/self/uid_map", text);
  snprintf(text, sizeof text, "%u %u 1", group, group);
  write_text("/proc/self/gid_map", text);
}

static void make_folder(const char *folder) {
  if (mount("tmpfs", folder, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=256k") < 0) fail(folder);
}

// The device must be opened in the namespace in which it is mounted (fuse_get_tree in fs/fuse/inode.c).
static int mount_view(const char *folder, int number, unsigned user, unsigned group) {
  char options[160], place[PATH_MAX];
  snprintf(place, sizeof place, "%s/view%d", folder, number);
  if (mkdir(place, 0755) < 0) fail(place);
  int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (device < 0) fail("/dev/fuse");
  snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=%u,group_id=%u,default_permissions,allow_other", device,
           user, group);
  if (mount("promisefs-view", place, "fuse.promisefs-view", MS_NOSUID | MS_NODEV, options) < 0) fail(place);
  return device;
}

// The socket's folder is the owner's, and shut to others; who is at its other end is what the daemon goes by.
static void show_socket(const char *folder, int number, const char *socket) {
  char place[PATH_MAX];
  if (strcmp(socket, "-") == 0) return;
  snprintf(place, sizeof place, "%s/socket%d", folder, number);
  int file = open(place, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) fail(place);
  close(file);
  if (mount(socket, place, NULL, MS_BIND, NULL) < 0) fail(socket);
}

void hand_over(int line, int device, unsigned user, unsigned group, const char *place) {
  union {
    struct cmsghdr header;
    char space[CMSG_SPACE(sizeof(int))];
  } control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
  memcpy(CMSG_DATA(&control.header), &device, sizeof device);
  struct statx status = {0};
  // Nobody serves it yet, so nothing is asked of it.
  if (place) statx(AT_FDCWD, place, AT_STATX_DONT_SYNC, 0, &status);
  unsigned numbers[4] = {user, group, status.stx_dev_major, status.stx_dev_minor};
  struct iovec part = {numbers, sizeof numbers};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  if (sendmsg(line, &message, MSG_NOSIGNAL) < 0) fail("handing the view to the daemon");
  char answer[512];
  ssize_t size = recv(line, answer, sizeof answer - 1, 0);
  if (size == 2 && memcmp(answer, "ok", 2) == 0) return;
  answer[size > 0 ? size : 0] = 0;
  fprintf(stderr, "promisefs-view: %s\n", size > 0 ? answer : "the daemon did not take the view");
  exit(1);
}

// Without close_range(2), before Linux 5.9, one by one.
static void close_from_to(unsigned first, unsigned last) {
  if (first > last || close_range(first, last, 0) == 0) return;
  long limit = sysconf(_SC_OPEN_MAX);
  for (unsigned number = first; number <= last && (long)number < limit; number++) close((int)number);
}

static void close_all_but(unsigned kept) {
  close_from_to(STDERR_FILENO + 1, kept - 1);
  close_from_to(kept + 1, ~0U);
}

// The words after it.
static char **take_descriptor(char **words, unsigned *kept) {
  if (!words[1] || strcmp(words[1], "--with") != 0 || !words[2]) return words;
  for (const char *digit = words[2]; *digit; digit++)
    if (!isdigit((unsigned char)*digit)) return words;
  unsigned long number = strtoul(words[2], NULL, 10);
  if (number > STDERR_FILENO && number < INT_MAX) *kept = (unsigned)number;
  return words + 2;
}

int main(int count, char **words) {
  pid_t caller = getppid();
  unsigned kept = STDERR_FILENO;
  char **rest = take_descriptor(words, &kept);
  count -= (int)(rest - words);
  words = rest;
  close_all_but(kept);
  if (count == 5 && strcmp(words[1], "--here") == 0) return mount_here(words + 2);
  if (count < 5) {
    fprintf(stderr, "usage: promisefs-view [--with DESCRIPTOR] HANDOVER PLACE SOCKET [+ HANDOVER SOCKET]... COMMAND [ARGUMENT]...\n");
    return 2;
  }
  struct domain domains[DOMAINS_MAX] = {{.handover = words[1], .socket = words[3]}};
  int domain_count = 1;
  char **command = words + 4;
  while (command[0] && strcmp(command[0], "+") == 0 && command[1] && command[2] && command[3]) {
    if (domain_count == DOMAINS_MAX) {
      fprintf(stderr, "promisefs-view: a launch has views of up to %d domains\n", DOMAINS_MAX);
      return 1;
    }
    domains[domain_count++] = (struct domain){.handover = command[1], .socket = command[2]};
    command += 3;
  }
  for (int number = 0; number < domain_count; number++) domains[number].line = reach(domains[number].handover);
  bool is_root = geteuid() == 0;
  unsigned user = is_root ? NOBODY : getuid(), group = is_root ? NOBODY : getgid();
  if (is_root) enter_as_root();
  else enter_as_user();
  make_folder(words[2]);
  for (int number = 0; number < domain_count; number++) {
    domains[number].device = mount_view(words[2], number, user, group);
    show_socket(words[2], number, domains[number].socket);
  }
  if (is_root) become_nobody();
  // No program that it starts gets more than it has.
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) fail("giving up privileges");
  for (int number = 0; number < domain_count; number++) {
    char place[PATH_MAX];
    snprintf(place, sizeof place, "%s/view%d", words[2], number);
    hand_over(domains[number].line, domains[number].device, user, group, place);
    close(domains[number].device);
    close(domains[number].line);
  }
  return keep(caller, command);
}
