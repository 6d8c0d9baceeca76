// A look at what this program asks to be on the disk.
#pragma once

// From now on fsync(2) and fdatasync(2) on this thread, also those of libraries such as SQLite, call `look` with
// the descriptor in place of waiting for the disk. NULL ends it.
void csd_observe_syncs(void (*look)(int descriptor));

// fork(2), which Swift does not have: in the child, which goes on in this thread only, it is 0.
int csd_fork(void);
