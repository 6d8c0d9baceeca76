#pragma once
// The way of a request from the kernel to libfuse and of its reply back, where libfuse 3.14 (2023, protocol 7.38) is older
// than the kernel: it changes the INIT reply, registers backing files, serves the rings of FUSE over io_uring, and reads from
// the requests what libfuse leaves out.
// No policy lives here. State belongs to one session; what is per thread says so.
//
// Removable where libfuse 3.17 or newer is the oldest supported: it negotiates passthrough, has fuse_passthrough_open and
// fuse_file_info.backing_id; 3.18 has rings of its own. What it still hides (the kill flags of OPEN, CREATE and WRITE) stays.
//
// libfuse's own types are named only: a header of libfuse's included here would belong to two modules.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "BackingHelper.h"

struct fuse_entry_param;
struct fuse_req;
struct fuse_session;

// The flags of INIT as one word, `flags2` in the upper half. Names of the kernel's; those after 6.1 are not in
// <linux/fuse.h> of Debian 12 and can be dropped when they are.
#define CT_PARALLEL_DIROPS (UINT64_C(1) << 18)
#define CT_WRITEBACK_CACHE (UINT64_C(1) << 16)
#define CT_HANDLE_KILLPRIV_V2 (UINT64_C(1) << 28) // Linux 5.11
#define CT_SETXATTR_EXT (UINT64_C(1) << 29) // Linux 5.13
#define CT_INIT_EXT (UINT64_C(1) << 30)
#define CT_DIRECT_IO_ALLOW_MMAP (UINT64_C(1) << 36) // Linux 6.6
#define CT_PASSTHROUGH (UINT64_C(1) << 37) // Linux 6.9
#define CT_HAS_RESEND (UINT64_C(1) << 39) // Linux 6.9
#define CT_OVER_IO_URING (UINT64_C(1) << 41) // Linux 6.14

// Flags of an OPEN reply.
#define CT_OPEN_DIRECT_IO (UINT32_C(1) << 0)
#define CT_OPEN_KEEP_CACHE (UINT32_C(1) << 1)
#define CT_OPEN_CACHE_FOLDER (UINT32_C(1) << 3)
#define CT_OPEN_PASSTHROUGH (UINT32_C(1) << 7) // Linux 6.9

// The size of an INIT reply since Linux 3.15.
#define CT_INIT_REPLY_SIZE 64

// What INIT settled. `offered` and `accepted` are flag words as above.
struct ct_negotiation {
  uint64_t offered, accepted;
  uint32_t protocol_major, protocol_minor;
  bool is_done;
};

// The state of one session: libfuse's user data, so that its hooks find it. `owner` is the caller's own context.
struct ct_transport;
struct ct_transport *_Nullable ct_create(void *_Nonnull owner, bool wants_passthrough, bool wants_rings);
// Files that are opened without pages (CT_OPEN_DIRECT_IO) may be mapped for sharing all the same. Before INIT is answered.
void ct_want_direct_mappings(struct ct_transport *_Nonnull transport);
void ct_destroy(struct ct_transport *_Nonnull transport);
void *_Nonnull ct_owner(const struct ct_transport *_Nonnull transport);
// Before serving by several threads, or when INIT was answered.
struct ct_negotiation ct_negotiated(const struct ct_transport *_Nonnull transport);

// How many requests with an opcode have been received, from any thread; the last opcode stands for all that are unknown.
#define CT_OPCODE_COUNT 64
uint64_t ct_request_count(const struct ct_transport *_Nonnull transport, uint32_t opcode);
// Has `hook` called with the owner after every so many requests, on the thread that serves the last of them and before it
// does. Before the first request.
void ct_on_requests(struct ct_transport *_Nonnull transport, uint32_t every, void (*_Nonnull hook)(void *_Nonnull owner));

struct ct_mount_options {
    const char *_Nonnull source;
    const char *_Nonnull subtype;
    bool allows_others;
    bool is_read_only;
    // MOUNT_ATTR_… of fsmount(2).
    uint32_t attributes;
};
// Makes a FUSE mount and puts it beneath the one that is on `point` (MOVE_MOUNT_BENEATH, Linux 6.5), so that it shows when that
// one is taken away and the folder below shows never. Returns the device, or -errno. Blocking, root only.
int ct_mount_beneath(const char *_Nonnull point, const struct ct_mount_options *_Nonnull options);

// Takes over reading and writing of a session that is mounted. Returns 0 or -errno.
int ct_attach(struct ct_transport *_Nonnull transport, struct fuse_session *_Nonnull session);

// Sets in an INIT reply of `size` bytes (CT_INIT_REPLY_SIZE or more) what the kernel offered and libfuse does not know:
// HANDLE_KILLPRIV_V2, SETXATTR_EXT, PARALLEL_DIROPS, HAS_RESEND and, when wanted, PASSTHROUGH with a stack depth of one and OVER_IO_URING; clears
// WRITEBACK_CACHE. Returns the flags in force.
uint64_t ct_edit_init_reply(
    uint8_t *_Nonnull reply, size_t size, uint64_t offered, bool wants_passthrough, bool wants_rings);

// A page that outlives this process, for a successor to go on with the session: to be called before INIT is answered.
#define CT_SESSION_RECORD_SIZE 4096
void ct_use_record(struct ct_transport *_Nonnull transport, void *_Nonnull memory);
// Whether a successor can: not with rings, and not before Linux 6.9.
bool ct_may_be_resumed(const struct ct_transport *_Nonnull transport);
// In place of answering INIT: settles what the record says was settled, and has the kernel send again what the daemon before
// has received and not answered. 0 or -errno: -EPROTO when this program would have settled something else.
int ct_resume(struct ct_transport *_Nonnull transport, struct fuse_session *_Nonnull session);

// Gives this thread a table of descriptors of its own with the first three and this one. A thread that waits in the kernel for
// an answer of this mount's keeps a killed process from ending, and would keep its sockets and locks with it. Where it is not
// permitted nothing changes.
void ct_keep_only(int descriptor);

// The memory that one thread receives requests in.
struct ct_buffer;
struct ct_buffer *_Nullable ct_buffer_create(void);
void ct_buffer_destroy(struct ct_buffer *_Nonnull buffer);

// Waits for one request of the device. Returns 1, 0 when the session has ended, or -errno.
// Several threads may serve one session, each with its own buffer.
int ct_receive(struct fuse_session *_Nonnull session, struct ct_buffer *_Nonnull buffer);
// Has libfuse call the operation of the request that was received.
void ct_process(
    struct ct_transport *_Nonnull transport, struct fuse_session *_Nonnull session, struct ct_buffer *_Nonnull buffer);

// The rings, when INIT settled that there are any: how many threads must serve them, 0 for none. The device is read all the
// same: FORGET, INTERRUPT and what comes before the rings are registered arrive there.
uint32_t ct_ring_count(const struct ct_transport *_Nonnull transport);
// Serves one ring, 0 to count - 1, until the connection ends or ct_stop_rings is called; each by a thread of its own, once.
// `stays`: on the processor whose requests it serves, which is best where another one would have to be woken from sleep. Where
// processors are kept awake it costs: a RELEASE, which nobody waits for, would be served before its caller goes on.
// Returns 0 or -errno.
int ct_serve_ring(
    struct ct_transport *_Nonnull transport, struct fuse_session *_Nonnull session, uint32_t index, bool stays);
// Has all serving threads leave. From any thread.
void ct_stop_rings(struct ct_transport *_Nonnull transport);
// The errno of making or registering the rings, from any thread; 0 when all is well. Then the kernel uses the device.
int ct_ring_problem(const struct ct_transport *_Nonnull transport);

// What libfuse does not tell an operation of the request that this thread is serving; zero on other threads.
struct ct_request {
  uint64_t unique;
  bool is_resent;    // the daemon before has received it, and may have carried it out
  bool is_serving;   // this thread is inside ct_process or ct_serve_ring
  bool clears_setid; // FUSE_OPEN_KILL_SUIDGID, FUSE_WRITE_KILL_SUIDGID or FUSE_SETXATTR_ACL_KILL_SGID
  bool is_page_write; // FUSE_WRITE_CACHE
  bool is_nameless; // FUSE_TMPFILE, which libfuse is shown as a CREATE
};
struct ct_request ct_current_request(void);

// fuse_reply_open and fuse_reply_create with open flags and a backing id (0: none). Return what libfuse returns.
int ct_reply_open(struct fuse_req *_Nonnull request, uint64_t handle, uint32_t flags, int32_t backing);
int ct_reply_create(
    struct fuse_req *_Nonnull request, const struct fuse_entry_param *_Nonnull entry, uint64_t handle, uint32_t flags,
    int32_t backing);
// An open file's bytes, for the request with the number `unique`. By a ring they are read to where the kernel takes them
// from. By the device they are spliced on a serving thread, and go through memory elsewhere, because libfuse keeps a pipe for
// each thread that splices and frees it only when that thread ends before the session.
int ct_reply_data(
    struct ct_transport *_Nonnull transport, struct fuse_req *_Nonnull request, uint64_t unique, int descriptor,
    int64_t offset, size_t size);

// One line of a listing with a name that is not terminated. Returns the bytes it takes: more than `room`, and nothing was
// written.
size_t ct_add_entry(
    struct fuse_req *_Nonnull request, char *_Nonnull buffer, size_t room, const uint8_t *_Nonnull name, size_t name_size,
    uint64_t node, uint32_t mode, uint64_t cookie);
// The same with attributes; an `entry` whose ino is 0 gives none and counts as no lookup.
size_t ct_add_entry_plus(
    struct fuse_req *_Nonnull request, char *_Nonnull buffer, size_t room, const uint8_t *_Nonnull name, size_t name_size,
    const struct fuse_entry_param *_Nonnull entry, uint64_t cookie);

// FUSE_DEV_IOC_BACKING_OPEN and _CLOSE on the FUSE descriptor. Return the id (above 0) or -errno; 0 or -errno.
int32_t ct_backing_open(int fuse_descriptor, int descriptor);
int ct_backing_close(int fuse_descriptor, int32_t backing);
// Nanoseconds of CLOCK_MONOTONIC.
uint64_t ct_now(void);
// timerfd(2): a descriptor or -errno; it is read to wait. `after` and `every` are nanoseconds; `every` 0: once.
int ct_timer_create(void);
void ct_timer_set(int timer, uint64_t after, uint64_t every);

// eventfd(2), close-on-exec and non-blocking: a descriptor or -errno.
int ct_event_create(void);

// An empty regular file that only this process sees, to try a registration with. A descriptor or -errno.
int ct_probe_file(void);

// The errno of the notification that this thread has sent last, 0 when the kernel took it.
int ct_notification_error(void);

// libfuse's messages go to `sink` (priority as in <syslog.h>), for the whole process.
void ct_set_log_sink(void (*_Nonnull sink)(int priority, const char *_Nonnull text));
// The last error message of libfuse on this thread, "" when there was none; ct_clear_message forgets it.
const char *_Nonnull ct_last_message(void);
void ct_clear_message(void);
