#pragma once
// What Swift cannot import from glibc: variadic calls, macros, and calls that need _GNU_SOURCE.
// No logic lives here. Every function returns what the system call returns and leaves errno as it set it.
// Only <stdint.h> and <stddef.h>: a header of glibc's included here would belong to this module instead of Glibc.
#include <stddef.h>
#include <stdint.h>

#include "HolderProtocol.h"
#include "MountRecord.h"

// Removable when Swift imports variadic functions.
int cps_open_at(int folder, const char *_Nonnull path, int flags, unsigned mode);
// openat2(2), which glibc has not, of what is there below `folder`: follows no link, no way up and
// into no other mount. ELOOP says that there is a link, EXDEV that the way leads out.
int cps_open_beneath(int folder, const char *_Nonnull path, int flags);

// Removable when the Glibc module exports the calls and flags behind _GNU_SOURCE.
int cps_open_nameless(const char *_Nonnull folder, unsigned mode);
int cps_rename_at(int from_folder, const char *_Nonnull from, int to_folder, const char *_Nonnull to, unsigned flags);
// pwritev2(2) with RWF_APPEND.
int64_t cps_append(int descriptor, const void *_Nonnull bytes, size_t count);
int64_t cps_copy_file_range(int from, int64_t from_offset, int to, int64_t to_offset, size_t count);
int cps_fallocate(int descriptor, int mode, int64_t offset, int64_t count);
int cps_punch_hole(int descriptor, int64_t offset, int64_t count);
int cps_clone(int from, int to);
int cps_sync_file_system(int descriptor);
// sync_file_range(2) of the whole file with SYNC_FILE_RANGE_WRITE: writing begins and is not waited for.
int cps_begin_writing(int descriptor);
// The same, and waits until all is written. Flushes no cache of the disk.
int cps_finish_writing(int descriptor);
// Whether anybody but this read-only descriptor may write to its file, through a mapping too: a read lease (F_SETLEASE,
// fcntl(2)) is refused then, and given back at once otherwise. 1, 0, or -1 where the file system has no leases.
int cps_has_writers(int descriptor);
void cps_set_thread_name(const char *_Nonnull name);

struct cps_file_status {
  uint64_t inode, device, mount, size, blocks, device_number; // mount: as in mountinfo; 0 when unknown
  uint32_t mode, links, owner, group;
  int64_t access_time, modification_time, change_time, birth_time; // nanoseconds; birth_time 0 when unknown
};
// statx(2) without following links; `path` may be "" to ask for the descriptor itself.
int cps_status_at(int folder, const char *_Nonnull path, struct cps_file_status *_Nonnull status);

// name_to_handle_at(2): the file system's own stable name of a file, which survives renames and is not given to
// another file when the inode number is. `size` is the room in `handle`; returns the length or -1.
int cps_file_handle_at(int folder, const char *_Nonnull path, uint8_t *_Nonnull handle, unsigned size, int *_Nonnull type);

enum { CPS_RENAME_NOREPLACE = 1, CPS_RENAME_EXCHANGE = 2 };

// Removable when the Glibc module exports <sys/xattr.h>, <sys/statfs.h> and <sys/eventfd.h>.
// Copies what programs noted of a file (`user.` attributes, but for the virtual ones of a mount) to another open file.
int cps_copy_attributes(int from, int to);
// Whether a symbolic link in a mount is to stay on this machine, and that it is. lgetxattr(2), lsetxattr(2).
int cps_link_stays(const char *_Nonnull path);
int cps_keep_link(const char *_Nonnull path);
// Gives an open file the access control lists of another one, or none as that has none. 1: it can have none.
int cps_copy_access(int from, int to, int is_folder);
// getxattrat(2) of an entry of a folder, not following a link; through /proc/self/fd before Linux 6.13. And fsetxattr(2).
int64_t cps_get_attribute_at(
    int folder, const char *_Nonnull path, const char *_Nonnull name, void *_Nonnull value, size_t size);
int cps_set_attribute(int descriptor, const char *_Nonnull name, const void *_Nonnull value, size_t size);
// fstatfs(2): the magic number of the file system's type and its own identity (0 where it has none).
int cps_file_system(int descriptor, int64_t *_Nonnull type, uint64_t *_Nonnull identity);
// eventfd(2), close-on-exec and non-blocking.
int cps_event_descriptor(void);

// Removable when the Glibc module exports <malloc.h>.
// mallopt(3): one arena for all threads but the first.
void cps_share_arenas(void);
// malloc_trim(3).
void cps_give_memory_back(void);

// Removable when glibc has ioprio_get(2): 1 when the process has the idle I/O class.
int cps_is_idle(int process);

// fork(2) and execve(2) of a program in a session of its own that is killed when the calling *thread* ends (PR_SET_PDEATHSIG,
// prctl(2)), which posix_spawn(3) cannot ask for. `input` becomes its standard input, `output` the other two; it inherits
// nothing else. Returns the process; its number negated when the program could not be run (it must be waited for, and errno
// says why); or -1.
int cps_start_bound(
    const char *_Nonnull program, char *_Nullable const *_Nonnull arguments, char *_Nullable const *_Nonnull environment,
    int input, int output);
// fork(2) and execvp(3) of a command that has this process's streams and group and no signal blocked. Between the two is a
// process that ends as the command does, and that ends the command with everything below it when the calling *thread* ends
// (PR_SET_PDEATHSIG, prctl(2)). Returns that one, to be waited for, and in `command` the command; or -1 with errno.
int cps_start_tied(char *_Nullable const *_Nonnull arguments, int *_Nonnull command);
// Signals that a process sends to this one go to `process` instead; those of the terminal come to both anyway. 0: as
// before the first call. The signals are SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT and SIGWINCH, but for
// those that are ignored. By one thread.
void cps_pass_signals_on(int process);
// From now on SIGHUP, SIGINT, SIGQUIT and SIGTERM end nothing: each writes its number, one byte, to `descriptor`, but for those
// that are ignored. `with_stops`: SIGTSTP and SIGCONT, too. -1: as before the first call. By one thread.
void cps_write_signals_to(int descriptor, int with_stops);
// The same of `count` signals, ignored or not, and for good.
void cps_write_these_signals_to(int descriptor, const int *_Nonnull numbers, int count);
// Opens a folder, with `flags` of open(2), in a process of its own that is left behind when it has
// not come back within `milliseconds`: not even the end of this process waits for it. Returns the
// length of the path without links, which goes into `resolved`; or -1 with errno, which is
// ETIMEDOUT then.
int cps_look_at_folder(
    const char *_Nonnull path, int flags, int milliseconds, char *_Nonnull resolved, unsigned size);
// pidfd_open(2): readable when the process has ended. Removable when the Glibc module exports <sys/pidfd.h>.
int cps_process_descriptor(int process);
// posix_spawn_file_actions_addclosefrom_np(3) of a posix_spawn_file_actions_t, which the Glibc module does not show.
int cps_close_others_from(void *_Nonnull actions, int first);
// pidfd_send_signal(2).
int cps_signal_process(int descriptor, int signal);
