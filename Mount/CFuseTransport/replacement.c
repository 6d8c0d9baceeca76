#include "CFuseTransport.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#ifndef MOVE_MOUNT_BENEATH
#define MOVE_MOUNT_BENEATH 0x00000200
#endif

// fsconfig(2) says what was wrong by errno alone; what is said in the descriptor's log is for fsopen's users who read it.
static int configure(int context, int device, const struct ct_mount_options *options)
{
    char number[16];
    if (fsconfig(context, FSCONFIG_SET_STRING, "source", options->source, 0) != 0) return -errno;
    if (fsconfig(context, FSCONFIG_SET_STRING, "subtype", options->subtype, 0) != 0) return -errno;
    snprintf(number, sizeof number, "%d", device);
    if (fsconfig(context, FSCONFIG_SET_STRING, "fd", number, 0) != 0) return -errno;
    if (fsconfig(context, FSCONFIG_SET_STRING, "rootmode", "40000", 0) != 0) return -errno;
    snprintf(number, sizeof number, "%u", getuid());
    if (fsconfig(context, FSCONFIG_SET_STRING, "user_id", number, 0) != 0) return -errno;
    snprintf(number, sizeof number, "%u", getgid());
    if (fsconfig(context, FSCONFIG_SET_STRING, "group_id", number, 0) != 0) return -errno;
    if (fsconfig(context, FSCONFIG_SET_FLAG, "default_permissions", NULL, 0) != 0) return -errno;
    if (options->allows_others && fsconfig(context, FSCONFIG_SET_FLAG, "allow_other", NULL, 0) != 0) return -errno;
    if (options->is_read_only && fsconfig(context, FSCONFIG_SET_FLAG, "ro", NULL, 0) != 0) return -errno;
    return fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) != 0 ? -errno : 0;
}

int ct_mount_beneath(const char *point, const struct ct_mount_options *options)
{
    int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (device < 0) return -errno;
    int problem = 0, made = -1;
    int context = fsopen("fuse", FSOPEN_CLOEXEC);
    if (context < 0) problem = -errno;
    if (problem == 0) problem = configure(context, device, options);
    if (problem == 0 && (made = fsmount(context, FSMOUNT_CLOEXEC, options->attributes)) < 0) problem = -errno;
    if (problem == 0
        && move_mount(made, "", AT_FDCWD, point, MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_BENEATH) != 0) {
        problem = -errno;
    }
    if (made >= 0) close(made);
    if (context >= 0) close(context);
    if (problem != 0) {
        close(device);
        return problem;
    }
    return device;
}
