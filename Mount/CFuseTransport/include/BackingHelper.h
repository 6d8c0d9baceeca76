#pragma once
// Asking the backing helper (Mount/BackingHelper), the program that registers backing files for an ordinary user.
// Not thread-safe: callers hold a lock. A request takes two switches of context, about 20 microseconds.
#include <stdint.h>

struct ct_helper;

// Starts the program at `path` for one mount. 0, or a negative errno: what starting it said, or -EPIPE when it ended at
// once, as it does without its capability.
int ct_helper_start(
    const char *_Nonnull path, int fuse_descriptor, int store_descriptor, struct ct_helper *_Nullable *_Nonnull result);

// A backing id above 0 for a regular file in the store, or a negative errno; -ETIMEDOUT or -EPIPE: the helper is no use
// any more, and what was registered stays registered until the mount ends.
int32_t ct_helper_open(struct ct_helper *_Nonnull helper, int descriptor);
int ct_helper_close(struct ct_helper *_Nonnull helper, int32_t backing);

// Ends the helper and waits for it.
void ct_helper_stop(struct ct_helper *_Nonnull helper);
