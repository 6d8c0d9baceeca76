// What the two ways of mounting a view share.
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

// Ends the process with a sentence.
void fail(const char *what);
// The daemon's end of a handover.
int reach(const char *path);
// Returns when the daemon serves the view. `place`: where it is mounted, in this process's namespace; NULL: nowhere.
void hand_over(int line, int device, unsigned user, unsigned group, const char *place);
// Into a user and a mount namespace of its own, with the caller's user and group.
void enter_as_user(void);
// Runs the command: its exit status. Nothing that it starts outlives this process, nor this its caller.
int keep(pid_t caller, char **command);
// HANDOVER, PLACE, PROCESS.
int mount_here(char **words);
