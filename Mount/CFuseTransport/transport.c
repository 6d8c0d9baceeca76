#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

// The replies below are the kernel's structures, some newer than the installed header: a layout that differs must not build.
_Static_assert(sizeof(struct fuse_init_out) == CT_INIT_REPLY_SIZE, "fuse_init_out has 64 bytes");
_Static_assert(offsetof(struct fuse_init_out, flags) == 12, "flags are the fourth word of fuse_init_out");
_Static_assert(offsetof(struct fuse_init_out, flags2) == 32, "flags2 is the ninth word of fuse_init_out");
_Static_assert(sizeof(struct fuse_entry_out) == 128, "fuse_entry_out has 128 bytes");
_Static_assert(sizeof(struct fuse_attr) == 88, "fuse_attr has 88 bytes");
_Static_assert(sizeof(struct fuse_open_out) == 16, "fuse_open_out has 16 bytes");
_Static_assert(CT_INIT_EXT == FUSE_INIT_EXT, "FUSE_INIT_EXT is bit 30");
_Static_assert(CT_PARALLEL_DIROPS == FUSE_PARALLEL_DIROPS, "FUSE_PARALLEL_DIROPS is bit 18");
_Static_assert(CT_WRITEBACK_CACHE == FUSE_WRITEBACK_CACHE, "FUSE_WRITEBACK_CACHE is bit 16");
_Static_assert(CT_SETXATTR_EXT == FUSE_SETXATTR_EXT, "FUSE_SETXATTR_EXT is bit 29");
_Static_assert(CT_HANDLE_KILLPRIV_V2 == FUSE_HANDLE_KILLPRIV_V2, "FUSE_HANDLE_KILLPRIV_V2 is bit 28");
_Static_assert(CT_OPEN_DIRECT_IO == FOPEN_DIRECT_IO, "FOPEN_DIRECT_IO is bit 0");
_Static_assert(CT_OPEN_KEEP_CACHE == FOPEN_KEEP_CACHE, "FOPEN_KEEP_CACHE is bit 1");
_Static_assert(CT_OPEN_CACHE_FOLDER == FOPEN_CACHE_DIR, "FOPEN_CACHE_DIR is bit 3");

// Linux 6.9's fuse_init_out.max_stack_depth; the installed header calls it unused.
#define MAX_STACK_DEPTH_OFFSET 36
_Static_assert(offsetof(struct fuse_init_out, unused) == MAX_STACK_DEPTH_OFFSET, "the stack depth follows flags2");

// Linux 6.9: set in the number of a request that comes again, and to be set in its reply.
#define UNIQUE_RESEND (UINT64_C(1) << 63)

// Linux 6.9's fuse_open_out, where backing_id was padding, and the registration of backing files.
struct open_reply {
  uint64_t handle;
  uint32_t flags;
  int32_t backing;
};
_Static_assert(sizeof(struct open_reply) == sizeof(struct fuse_open_out), "backing_id takes the place of padding");
_Static_assert(offsetof(struct open_reply, flags) == offsetof(struct fuse_open_out, open_flags), "flags stay where they were");

struct backing_map {
  int32_t descriptor;
  uint32_t flags;
  uint64_t padding;
};
_Static_assert(sizeof(struct backing_map) == 16, "fuse_backing_map has 16 bytes");
#define BACKING_OPEN _IOW(FUSE_DEV_IOC_MAGIC, 1, struct backing_map)
#define BACKING_CLOSE _IOW(FUSE_DEV_IOC_MAGIC, 2, uint32_t)

struct ct_buffer {
  struct fuse_buf memory;
};

static _Thread_local struct ct_request current;
static _Thread_local int notification_error;

struct ct_transport *ct_create(void *owner, bool wants_passthrough, bool wants_rings) {
  struct ct_transport *transport = calloc(1, sizeof *transport);
  if (!transport) return NULL;
  transport->owner = owner;
  transport->wants_passthrough = wants_passthrough;
  transport->wants_rings = wants_rings;
  return transport;
}

void ct_want_direct_mappings(struct ct_transport *transport) { transport->wants_direct_mappings = true; }

void ct_destroy(struct ct_transport *transport) {
  if (transport->rings) rings_destroy(transport->rings);
  free(transport);
}

void *ct_owner(const struct ct_transport *transport) { return transport->owner; }

struct ct_negotiation ct_negotiated(const struct ct_transport *transport) { return transport->negotiation; }

uint64_t ct_request_count(const struct ct_transport *transport, uint32_t opcode) {
  return opcode < CT_OPCODE_COUNT ? atomic_load_explicit(&transport->requests[opcode], memory_order_relaxed) : 0;
}

void ct_on_requests(struct ct_transport *transport, uint32_t every, void (*hook)(void *owner)) {
  transport->hook_every = every;
  transport->hook = hook;
}

uint32_t ct_ring_count(const struct ct_transport *transport) {
  return transport->negotiation.accepted & CT_OVER_IO_URING ? rings_lane_count(transport->rings) : 0;
}

int ct_ring_problem(const struct ct_transport *transport) {
  return transport->rings ? rings_problem(transport->rings) : transport->rings_problem;
}

uint64_t ct_edit_init_reply(uint8_t *reply, size_t size, uint64_t offered, bool wants_passthrough, bool wants_rings) {
  if (size < CT_INIT_REPLY_SIZE) return 0;
  struct fuse_init_out out;
  memcpy(&out, reply, sizeof out);
  uint64_t flags = out.flags;
  if (flags & CT_INIT_EXT) flags |= (uint64_t)out.flags2 << 32;
  flags &= ~CT_WRITEBACK_CACHE;
  // libfuse 3.14 asks for PARALLEL_DIROPS in `want` and then forgets to put it into the reply.
  flags |= offered & (CT_HANDLE_KILLPRIV_V2 | CT_PARALLEL_DIROPS | CT_SETXATTR_EXT);
  if (offered & CT_INIT_EXT) flags |= offered & (CT_HAS_RESEND | CT_INIT_EXT);
  uint32_t stack_depth = 0;
  if (wants_passthrough && (offered & CT_PASSTHROUGH) && (offered & CT_INIT_EXT)) {
    flags |= CT_PASSTHROUGH | CT_INIT_EXT;
    // The content store lies on a plain file system: one layer, ours.
    stack_depth = 1;
  }
  // libfuse 3.18 serves rings itself: where that is the oldest supported, rings.c and lane.c can go and this flag is its own.
  if (wants_rings && (offered & CT_OVER_IO_URING) && (offered & CT_INIT_EXT)) flags |= CT_OVER_IO_URING | CT_INIT_EXT;
  out.flags = (uint32_t)flags;
  out.flags2 = (uint32_t)(flags >> 32);
  memcpy(reply, &out, sizeof out);
  memcpy(reply + MAX_STACK_DEPTH_OFFSET, &stack_depth, sizeof stack_depth);
  return flags;
}

static ssize_t total_size(const struct iovec *parts, int count) {
  size_t size = 0;
  for (int i = 0; i < count; i++) size += parts[i].iov_len;
  return (ssize_t)size;
}

static ssize_t receive(int descriptor, void *memory, size_t size, void *transport) {
  (void)transport;
  return read(descriptor, memory, size);
}

static void allow_direct_mappings(struct ct_transport *transport, const struct iovec *reply) {
  uint64_t needed = CT_DIRECT_IO_ALLOW_MMAP | CT_INIT_EXT;
  if ((transport->negotiation.offered & needed) != needed || !(transport->negotiation.accepted & CT_INIT_EXT)) return;
  struct fuse_init_out *out = reply->iov_base;
  out->flags2 |= (uint32_t)(CT_DIRECT_IO_ALLOW_MMAP >> 32);
  transport->negotiation.accepted |= CT_DIRECT_IO_ALLOW_MMAP;
}

static void answer_init(struct ct_transport *transport, const struct iovec *reply) {
  struct ct_negotiation *negotiation = &transport->negotiation;
  negotiation->accepted = ct_edit_init_reply(
      reply->iov_base, reply->iov_len, negotiation->offered, transport->wants_passthrough, transport->rings != NULL);
  if (transport->wants_direct_mappings) allow_direct_mappings(transport, reply);
  if (negotiation->accepted & CT_OVER_IO_URING) rings_negotiated(transport->rings, reply->iov_base);
  negotiation->is_done = true;
  transport_note_negotiation(transport);
}

// The one place where a reply or a notification is written.
static ssize_t send_message(int descriptor, struct iovec *parts, int count, void *user_data) {
  struct ct_transport *transport = user_data;
  const struct fuse_out_header *header = parts[0].iov_base;
  if (!transport->negotiation.is_done && header->unique == transport->init_request && header->error == 0 && count == 2)
    answer_init(transport, &parts[1]);
  // The kernel has had this reply from the daemon before.
  if (transport->is_resuming) return total_size(parts, count);
  bool is_notification = header->unique == 0;
  if (is_notification) notification_error = 0;
  if (!is_notification && transport->rings && rings_reply(transport->rings, parts, count)) return total_size(parts, count);
  ssize_t result = writev(descriptor, parts, count);
  if (result >= 0) return result;
  if (is_notification) {
    // Most often the kernel does not know the node. The caller asks; libfuse would print it.
    notification_error = errno;
    return total_size(parts, count);
  }
  int code = errno;
  // An interruption that is given back, of a request that the kernel did not send by the device.
  if (code == ENOENT && (header->unique & 1) && transport->rings)
    rings_keep_interruption(transport->rings, transport->session, header->unique & ~UINT64_C(1));
  // The caller is gone, or the whole mount: there is nobody to tell, and libfuse would print it.
  if (code == ENOENT || code == ENODEV) return total_size(parts, count);
  errno = code;
  return -1;
}

static ssize_t send_spliced(
    int from, off_t *from_offset, int to, off_t *to_offset, size_t size, unsigned flags, void *transport) {
  (void)transport;
  ssize_t result = splice(from, from_offset, to, to_offset, size, flags);
  if (result >= 0 || (errno != ENOENT && errno != ENODEV)) return result;
  // As above; but the pipe serves the next reply, so what nobody wants is taken out of it.
  char waste[4096];
  size_t left = size;
  while (left > 0) {
    ssize_t count = read(from, waste, left < sizeof waste ? left : sizeof waste);
    if (count <= 0) return -1;
    left -= (size_t)count;
  }
  return (ssize_t)size;
}

int ct_attach(struct ct_transport *transport, struct fuse_session *session) {
  transport->session = session;
  // No splice_receive: metadata would take two system calls instead of one, and the flags of a WRITE would be out of sight.
  const struct fuse_custom_io hooks = {.writev = send_message, .read = receive, .splice_send = send_spliced};
  return fuse_session_custom_io(session, &hooks, fuse_session_fd(session));
}

struct ct_buffer *ct_buffer_create(void) { return calloc(1, sizeof(struct ct_buffer)); }

void ct_buffer_destroy(struct ct_buffer *buffer) {
  free(buffer->memory.mem);
  free(buffer);
}

static void note_init(struct ct_transport *transport, const struct fuse_in_header *header, const void *body, size_t size) {
  struct fuse_init_in in = {0};
  transport_note_request(transport, header, sizeof *header + size);
  memcpy(&in, body, size < sizeof in ? size : sizeof in);
  transport->init_request = header->unique;
  transport->negotiation.offered = in.flags;
  if (in.flags & CT_INIT_EXT) transport->negotiation.offered |= (uint64_t)in.flags2 << 32;
  transport->negotiation.protocol_major = in.major;
  transport->negotiation.protocol_minor = in.minor;
  if (!transport->wants_rings || !(transport->negotiation.offered & CT_OVER_IO_URING)) return;
  // Before the reply: once the kernel has been told of rings it waits for them.
  transport->rings = rings_create(transport);
  if (!transport->rings) transport->rings_problem = errno;
}

// libfuse 3.14 knows the SETXATTR of before Linux 5.13: the two words that came after its first two are taken out. Returns
// FUSE_SETXATTR_ACL_KILL_SGID.
static bool take_out_attribute_flags(struct fuse_buf *memory) {
  struct fuse_in_header *header = memory->mem;
  char *body = (char *)(header + 1);
  size_t size = memory->size - sizeof *header;
  struct fuse_setxattr_in in;
  if (size < sizeof in) return false;
  memcpy(&in, body, sizeof in);
  memmove(body + FUSE_COMPAT_SETXATTR_IN_SIZE, body + sizeof in, size - sizeof in);
  size_t taken = sizeof in - FUSE_COMPAT_SETXATTR_IN_SIZE;
  memory->size -= taken;
  header->len -= (uint32_t)taken;
  return (in.setxattr_flags & FUSE_SETXATTR_ACL_KILL_SGID) != 0;
}

// What libfuse 3.14 drops of a request: read before it is handed over.
static struct ct_request look_at(struct ct_transport *transport, struct fuse_buf *memory) {
  struct fuse_in_header *header = memory->mem;
  const void *body = header + 1;
  size_t size = memory->size - sizeof *header;
  struct ct_request request = {
      .unique = header->unique & ~UNIQUE_RESEND, .is_serving = true, .is_resent = (header->unique & UNIQUE_RESEND) != 0};
  uint32_t opcode = header->opcode < CT_OPCODE_COUNT ? header->opcode : CT_OPCODE_COUNT - 1;
  atomic_fetch_add_explicit(&transport->requests[opcode], 1, memory_order_relaxed);
  if (header->opcode == FUSE_TMPFILE) {
    // Linux 6.2's O_TMPFILE: request and reply are those of CREATE, and its name means nothing. libfuse has no call for it.
    request.is_nameless = true;
    header->opcode = FUSE_CREATE;
  }
  switch (header->opcode) {
  case FUSE_INIT:
    note_init(transport, header, body, size);
    break;
  case FUSE_OPEN:
    if (size >= sizeof(struct fuse_open_in))
      request.clears_setid = (((const struct fuse_open_in *)body)->open_flags & FUSE_OPEN_KILL_SUIDGID) != 0;
    break;
  case FUSE_CREATE:
    if (size >= sizeof(struct fuse_create_in))
      request.clears_setid = (((const struct fuse_create_in *)body)->open_flags & FUSE_OPEN_KILL_SUIDGID) != 0;
    break;
  case FUSE_WRITE:
    if (size >= sizeof(struct fuse_write_in)) {
      uint32_t flags = ((const struct fuse_write_in *)body)->write_flags;
      request.clears_setid = (flags & FUSE_WRITE_KILL_SUIDGID) != 0;
      request.is_page_write = (flags & FUSE_WRITE_CACHE) != 0;
    }
    break;
  case FUSE_SETXATTR:
    if (transport->negotiation.accepted & CT_SETXATTR_EXT) request.clears_setid = take_out_attribute_flags(memory);
    break;
  default:
    break;
  }
  return request;
}

void transport_process(struct ct_transport *transport, struct fuse_session *session, struct fuse_buf *memory) {
  current = look_at(transport, memory);
  if (transport->hook &&
      (atomic_fetch_add_explicit(&transport->hook_count, 1, memory_order_relaxed) + 1) % transport->hook_every == 0)
    transport->hook(transport->owner);
  fuse_session_process_buf(session, memory);
  current = (struct ct_request){0};
}

int ct_receive(struct fuse_session *session, struct ct_buffer *buffer) {
  int result = fuse_session_receive_buf(session, &buffer->memory);
  return result > 0 ? 1 : result;
}

void ct_process(struct ct_transport *transport, struct fuse_session *session, struct ct_buffer *buffer) {
  transport_process(transport, session, &buffer->memory);
}

struct ct_request ct_current_request(void) { return current; }

int ct_reply_open(struct fuse_req *request, uint64_t handle, uint32_t flags, int32_t backing) {
  struct open_reply out = {.handle = handle, .flags = flags, .backing = backing};
  return fuse_reply_buf(request, (const char *)&out, sizeof out);
}

static uint64_t whole_seconds(double seconds) {
  return seconds <= 0 ? 0 : seconds >= 4e9 ? UINT64_C(4000000000) : (uint64_t)seconds;
}

static uint32_t nanoseconds(double seconds) {
  double rest = seconds - (double)whole_seconds(seconds);
  return rest <= 0 ? 0 : rest >= 1 ? 999999999 : (uint32_t)(rest * 1e9);
}

static void fill_attributes(struct fuse_attr *out, const struct stat *from) {
  *out = (struct fuse_attr){
      .ino = from->st_ino, .size = (uint64_t)from->st_size, .blocks = (uint64_t)from->st_blocks,
      .atime = (uint64_t)from->st_atim.tv_sec, .mtime = (uint64_t)from->st_mtim.tv_sec,
      .ctime = (uint64_t)from->st_ctim.tv_sec, .atimensec = (uint32_t)from->st_atim.tv_nsec,
      .mtimensec = (uint32_t)from->st_mtim.tv_nsec, .ctimensec = (uint32_t)from->st_ctim.tv_nsec,
      .mode = from->st_mode, .nlink = (uint32_t)from->st_nlink, .uid = from->st_uid, .gid = from->st_gid,
      .rdev = (uint32_t)from->st_rdev, .blksize = (uint32_t)from->st_blksize};
}

int ct_reply_create(
    struct fuse_req *request, const struct fuse_entry_param *entry, uint64_t handle, uint32_t flags, int32_t backing) {
  struct {
    struct fuse_entry_out entry;
    struct open_reply opened;
  } out = {
      .entry = {
          .nodeid = entry->ino, .generation = entry->generation, .entry_valid = whole_seconds(entry->entry_timeout),
          .attr_valid = whole_seconds(entry->attr_timeout), .entry_valid_nsec = nanoseconds(entry->entry_timeout),
          .attr_valid_nsec = nanoseconds(entry->attr_timeout)},
      .opened = {.handle = handle, .flags = flags, .backing = backing}};
  _Static_assert(sizeof out == 144, "a CREATE reply is an entry and an open, without padding");
  fill_attributes(&out.entry.attr, &entry->attr);
  return fuse_reply_buf(request, (const char *)&out, sizeof out);
}

// Into the memory that the kernel reads the reply from.
static int reply_in_place(struct fuse_req *request, char *payload, int descriptor, int64_t offset, size_t size) {
  size_t done = 0;
  while (done < size) {
    ssize_t count = pread(descriptor, payload + done, size - done, offset + (off_t)done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fuse_reply_err(request, errno);
    if (count == 0) break;
    done += (size_t)count;
  }
  return fuse_reply_buf(request, payload, done);
}

int ct_reply_data(
    struct ct_transport *transport, struct fuse_req *request, uint64_t unique, int descriptor, int64_t offset, size_t size) {
  char *payload = transport->rings ? rings_payload(transport->rings, unique, size) : NULL;
  if (payload) return reply_in_place(request, payload, descriptor, offset, size);
  struct fuse_bufvec source = FUSE_BUFVEC_INIT(size);
  source.buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK;
  source.buf[0].fd = descriptor;
  source.buf[0].pos = offset;
  // Never FUSE_BUF_SPLICE_MOVE: it would take the pages away from the content file's own cache.
  return fuse_reply_data(request, &source, current.is_serving ? 0 : FUSE_BUF_NO_SPLICE);
}

static void terminate(char *name, const uint8_t *bytes, size_t size) {
  memcpy(name, bytes, size);
  name[size] = 0;
}

size_t ct_add_entry(
    struct fuse_req *request, char *buffer, size_t room, const uint8_t *name, size_t name_size, uint64_t node, uint32_t mode,
    uint64_t cookie) {
  char terminated[256];
  if (name_size >= sizeof terminated) abort();
  terminate(terminated, name, name_size);
  struct stat status = {.st_ino = node, .st_mode = mode};
  return fuse_add_direntry(request, buffer, room, terminated, &status, (off_t)cookie);
}

size_t ct_add_entry_plus(
    struct fuse_req *request, char *buffer, size_t room, const uint8_t *name, size_t name_size,
    const struct fuse_entry_param *entry, uint64_t cookie) {
  char terminated[256];
  if (name_size >= sizeof terminated) abort();
  terminate(terminated, name, name_size);
  return fuse_add_direntry_plus(request, buffer, room, terminated, entry, (off_t)cookie);
}

int32_t ct_backing_open(int fuse_descriptor, int descriptor) {
  struct backing_map map = {.descriptor = descriptor};
  int result = ioctl(fuse_descriptor, BACKING_OPEN, &map);
  return result < 0 ? -errno : result;
}

int ct_backing_close(int fuse_descriptor, int32_t backing) {
  uint32_t number = (uint32_t)backing;
  return ioctl(fuse_descriptor, BACKING_CLOSE, &number) < 0 ? -errno : 0;
}

uint64_t ct_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int ct_timer_create(void) {
  int descriptor = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  return descriptor < 0 ? -errno : descriptor;
}

static struct timespec duration(uint64_t nanoseconds) {
  return (struct timespec){.tv_sec = (time_t)(nanoseconds / 1000000000), .tv_nsec = (long)(nanoseconds % 1000000000)};
}

void ct_timer_set(int timer, uint64_t after, uint64_t every) {
  struct itimerspec setting = {.it_value = duration(after), .it_interval = duration(every)};
  timerfd_settime(timer, 0, &setting, NULL);
}

int ct_event_create(void) {
  int descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  return descriptor < 0 ? -errno : descriptor;
}

int ct_probe_file(void) {
  int descriptor = memfd_create("promisefs-probe", MFD_CLOEXEC);
  return descriptor < 0 ? -errno : descriptor;
}

int ct_notification_error(void) { return notification_error; }
