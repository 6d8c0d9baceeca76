#define _GNU_SOURCE
#include "CSimulatedDisk.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Thread_local void (*observer)(int descriptor);

void csd_observe_syncs(void (*look)(int descriptor)) { observer = look; }

int csd_fork(void) { return (int)fork(); }

static int synchronize(int descriptor, long call) {
  if (observer == NULL) return (int)syscall(call, descriptor);
  observer(descriptor);
  return 0;
}

// The linker takes these for the C library's, here and in the libraries of this program.
int fsync(int descriptor) { return synchronize(descriptor, SYS_fsync); }
int fdatasync(int descriptor) { return synchronize(descriptor, SYS_fdatasync); }

// What has been written and waited for is on the disk with the flush of another file, which is what comes next.
int sync_file_range(int descriptor, off_t offset, off_t count, unsigned int flags) {
  if (observer == NULL) return (int)syscall(SYS_sync_file_range, descriptor, offset, count, flags);
  if (flags & SYNC_FILE_RANGE_WAIT_AFTER) observer(descriptor);
  return 0;
}
