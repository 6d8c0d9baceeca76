#define _GNU_SOURCE
#include "CSimulatedDisk.h"

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
