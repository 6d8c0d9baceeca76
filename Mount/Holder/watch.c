#include "watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "HolderProtocol.h"

// A word of /proc/PID/status (proc(5)) behind its name; empty when it is not there.
static void find(pid_t process, const char *name, char *value, size_t size) {
  char line[256];
  snprintf(line, sizeof line, "/proc/%d/status", (int)process);
  value[0] = 0;
  FILE *file = fopen(line, "re");
  while (file && fgets(line, sizeof line, file)) {
    size_t length = strlen(name);
    if (strncmp(line, name, length) != 0 || line[length] != ':') continue;
    snprintf(value, size, "%.*s", (int)strcspn(line + length + 2, " \n"), line + length + 2);
    break;
  }
  if (file) fclose(file);
}

// A debugger's daemon stands still as long as whoever debugs it wants.
static bool is_traced(pid_t process) {
  char tracer[16];
  find(process, "TracerPid", tracer, sizeof tracer);
  return atoi(tracer) > 0;
}

static bool is_stopped(pid_t process) {
  char state[16];
  find(process, "State", state, sizeof state);
  return state[0] == 'T';
}

void watch_heard(struct watch *watch, int64_t now) {
  if (watch->has_warned) fprintf(stderr, "promisefs-holder: the daemon serves again\n");
  int interval = cps_holder_patience() / WATCH_LOOKS;
  *watch = (struct watch){.is_armed = interval > 0, .next = interval > 0 ? now + 2 * interval : 0};
}

bool watch_look(struct watch *watch, pid_t process, int64_t now) {
  int patience = cps_holder_patience(), interval = patience / WATCH_LOOKS;
  watch->next = now + interval;
  if (is_traced(process)) {
    watch->missed = 0;
    return false;
  }
  watch->missed++;
  const char *what = is_stopped(process) ? "is stopped (SIGCONT has it go on)" : "serves nothing";
  if (watch->missed >= WATCH_LOOKS) {
    fprintf(stderr, "promisefs-holder: the daemon %s since %d s and is ended for a successor\n", what, patience / 1000);
    return true;
  }
  if (watch->missed == WATCH_LOOKS_BEFORE_WARNING) {
    watch->has_warned = true;
    fprintf(stderr, "promisefs-holder: the daemon %s; it is replaced when that has lasted %d s\n", what, patience / 1000);
  }
  return false;
}
