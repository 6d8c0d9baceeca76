#pragma once
// Notices a daemon that says nothing any more: one that is stopped, or whose threads all hang.
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

// Looks in this time; a daemon says HOLDER_ALIVE once in each, and so many missed ones end it.
#define WATCH_LOOKS 6
// Of those, before it is said that one is silent.
#define WATCH_LOOKS_BEFORE_WARNING 2

struct watch {
  // From its first HOLDER_ALIVE on: one that is older than this program says none.
  bool is_armed;
  bool has_warned;
  unsigned missed;
  int64_t next; // when to look (CLOCK_MONOTONIC, milliseconds); 0: never
};

// It has said that it serves.
void watch_heard(struct watch *watch, int64_t now);

// To be called when `next` has come. True: it has been silent for too long. Looks are counted, not time: where this process
// got no processor, or the machine slept, the daemon may not have had any either.
bool watch_look(struct watch *watch, pid_t process, int64_t now);
