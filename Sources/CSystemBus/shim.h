// The bus, by libsystemd, and extended attributes, which the Glibc module does not show.
#pragma once
#include <signal.h>
#include <sys/prctl.h>
#include <sys/xattr.h>
#include <systemd/sd-bus.h>

/// prctl(2), which has a variable number of arguments: this process is ended when its parent ends.
static inline int promise_end_with_parent(void) { return prctl(PR_SET_PDEATHSIG, SIGTERM); }
