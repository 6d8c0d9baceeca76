// Extended attributes, for PromiseKit. Removable when the Glibc module exports <sys/xattr.h>.
#include <sys/xattr.h>
// The exchange of a file package with its new version. Removable when that module exports renameat2(2). Declared here: the
// headers that declare these would make types of Glibc this module's.
#include <asm/unistd.h>

long syscall(long number, ...);

static inline int attributes_exchange(const char *one, const char *other) {
  const int current_folder = -100, exchange = 2;
  return (int)syscall(__NR_renameat2, current_folder, one, current_folder, other, exchange);
}

// The kernel asks a file system like ours anew what it knows of a file, whatever it remembers: statx(2) with
// AT_STATX_FORCE_SYNC and AT_SYMLINK_NOFOLLOW. What stat(2) says next is that.
static inline int attributes_refresh(const char *path) {
  const int current_folder = -100, flags = 0x2000 | 0x100, basic = 0x7ff;
  char status[256];
  return (int)syscall(__NR_statx, current_folder, path, flags, basic, status);
}

// pipe2(2) with O_CLOEXEC, which that module does not export either: a program that another thread
// starts at this moment has neither end.
static inline int attributes_pipe(int *ends) {
  const int close_on_exec = 02000000;
  return (int)syscall(__NR_pipe2, ends, close_on_exec);
}
