// A thread that serves a session by its ring. See rings.h.
#include "rings.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

_Thread_local struct lane *current_lane;

// MARK: - Submitting

static struct io_uring_sqe *next_submission(struct lane *lane) {
  struct io_uring_sqe *submission = io_uring_get_sqe(&lane->ring);
  while (!submission) {
    io_uring_submit(&lane->ring);
    submission = io_uring_get_sqe(&lane->ring);
  }
  // With SQE128 a submission has twice its size, of which the declaration knows nothing.
  memset(submission, 0, 2 * sizeof *submission);
  return submission;
}

static void submit(struct entry *entry, uint32_t operation, uint64_t commit) {
  struct lane *lane = entry->lane;
  struct io_uring_sqe *submission = next_submission(lane);
  submission->opcode = IORING_OP_URING_CMD;
  submission->fd = lane->descriptor;
  submission->cmd_op = operation;
  submission->user_data = (uint64_t)(uintptr_t)entry;
  if (operation == COMMAND_REGISTER) {
    submission->addr = (uint64_t)(uintptr_t)entry->parts;
    submission->len = 2;
  }
  struct command command = {.commit = commit, .queue = lane->queues[entry->place]};
  memcpy(submission->cmd, &command, sizeof command);
  lane->waiting[entry->place]++;
}

static void await_wakeup(struct lane *lane) {
  struct io_uring_sqe *submission = next_submission(lane);
  io_uring_prep_read(submission, lane->wakeup, &lane->wakeup_count, sizeof lane->wakeup_count, 0);
  submission->user_data = 0;
}

// False without memory: the other entries go on, and the next request that parks tries again.
static bool add_entry(struct lane *lane, uint32_t place) {
  size_t payload_size = lane->rings->payload_size;
  // Not reserved: only what is touched becomes memory, and that is a page or two as a rule.
  uint8_t *memory = mmap(
      NULL, HEADER_ROOM + payload_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  struct entry *entry = (struct entry *)memory;
  entry->lane = lane;
  entry->place = place;
  entry->parts[0] = (struct iovec){&entry->header, sizeof entry->header};
  entry->parts[1] = (struct iovec){memory + HEADER_ROOM, payload_size};
  entry->owned = lane->entries;
  lane->entries = entry;
  submit(entry, COMMAND_REGISTER, 0);
  return true;
}

void lane_commit(struct entry *entry) {
  struct lane *lane = entry->lane;
  if (entry->header.payload_size > LARGE_PAYLOAD && lane->waiting[entry->place] >= WAITING_MANY) {
    entry->is_large = true;
    entry->round = lane->round;
    if (!entry->is_listed) {
      entry->is_listed = true;
      entry->next_large = lane->large;
      lane->large = entry;
    }
  }
  submit(entry, COMMAND_COMMIT_AND_FETCH, entry->header.commit);
}

// Gives back the memory of large replies. Called when every completion has been taken: an entry whose reply was committed
// before the last wait and which did not come back has been read by the kernel, and will be written inside a wait only.
static void trim(struct lane *lane) {
  struct entry *entry = lane->large;
  lane->large = NULL;
  while (entry) {
    struct entry *next = entry->next_large;
    bool is_early = entry->is_large && entry->round == lane->round;
    if (entry->is_large && !is_early) madvise(entry->parts[1].iov_base, entry->parts[1].iov_len, MADV_DONTNEED);
    entry->is_listed = is_early;
    if (is_early) {
      entry->next_large = lane->large;
      lane->large = entry;
    } else {
      entry->is_large = false;
    }
    entry = next;
  }
}

// MARK: - Serving

static void run_on(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  // Where it is not permitted the thread goes on where it is.
  sched_setaffinity(0, sizeof set, &set);
}

static bool is_of_open_file(uint32_t opcode) {
  return opcode == FUSE_OPEN || opcode == FUSE_READ || opcode == FUSE_WRITE || opcode == FUSE_RELEASE || opcode == FUSE_FSYNC;
}

// Has the kernel send a request by a queue: FUSE_NOTIFY_REPLY with no pages of a file. It takes no lock that a request may
// hold. The queue is that of the CPU that this runs on. False when the kernel knows no such file.
static bool poke(struct lane *lane, uint32_t place) {
  uint64_t file = atomic_load_explicit(&lane->rings->file, memory_order_relaxed);
  if (file == 0) return false;
  cpu_set_t before;
  int queue = lane->queues[place];
  bool moves = lane->cpu != queue && sched_getaffinity(0, sizeof before, &before) == 0;
  if (moves) run_on(queue);
  struct {
    struct fuse_out_header header;
    struct fuse_notify_retrieve_out body;
  } message = {
      .header = {.len = sizeof message, .error = FUSE_NOTIFY_RETRIEVE},
      // Beyond any number of the kernel's, and even as they are.
      .body = {.notify_unique = POKE_MARK | (atomic_fetch_add(&lane->rings->pokes, 1) << 1), .nodeid = file}};
  bool is_sent = write(lane->descriptor, &message, sizeof message) >= 0;
  if (moves) sched_setaffinity(0, sizeof before, &before);
  return is_sent;
}

static void answer_poke(struct entry *entry) {
  entry->header.reply = (struct fuse_out_header){.len = sizeof(struct fuse_out_header), .unique = entry->header.commit};
  entry->header.payload_size = 0;
  lane_commit(entry);
}

static void answer_forget(struct rings *rings, uint64_t unique) {
  struct fuse_out_header reply = {.len = sizeof reply, .unique = unique};
  struct iovec part = {&reply, sizeof reply};
  rings_reply(rings, &part, 1);
}

static uint64_t field(const char *status, const char *name) {
  const char *place = strstr(status, name);
  return place ? strtoull(place + strlen(name), NULL, 16) : 0;
}

// Whether a thread has a signal to take: proc_pid_status(5). The kernel sends no interruption of a request by a ring when the
// signal comes before the request has reached the lane (fuse_uring_prepare_send does not look at FR_INTERRUPTED); when it comes
// later it does.
static bool has_signal(uint32_t thread) {
  // 0: the kernel itself, or somebody in another pid namespace.
  if (thread == 0) return false;
  char path[64], status[4096];
  snprintf(path, sizeof path, "/proc/%u/status", thread);
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  ssize_t size = read(descriptor, status, sizeof status - 1);
  close(descriptor);
  if (size <= 0) return false;
  status[size] = 0;
  uint64_t pending = field(status, "\nSigPnd:") | field(status, "\nShdPnd:");
  return (pending & ~field(status, "\nSigBlk:")) != 0;
}

static void serve(struct lane *lane, struct fuse_session *session, struct entry *entry) {
  const struct entry_header *header = &entry->header;
  struct fuse_in_header request = header->request;
  if (request.opcode == FUSE_NOTIFY_REPLY) {
    answer_poke(entry);
    return;
  }
  size_t arguments = request.len - sizeof request - header->payload_size;
  // The kernel's own numbers; memory is not written by trusting them.
  if (request.len < sizeof request + header->payload_size || arguments > sizeof header->arguments ||
      header->payload_size > entry->parts[1].iov_len)
    abort();
  char *flat = (char *)entry->parts[1].iov_base - arguments - sizeof request;
  memcpy(flat, &request, sizeof request);
  memcpy(flat + sizeof request, header->arguments, arguments);
  uint64_t unique = request.unique;
  uint32_t place = entry->place;
  entry->unique = unique;
  bool is_interrupted = rings_enter(lane->rings, entry);
  if (is_of_open_file(request.opcode) && atomic_load_explicit(&lane->rings->file, memory_order_relaxed) != request.nodeid)
    atomic_store_explicit(&lane->rings->file, request.nodeid, memory_order_relaxed);
  struct fuse_buf memory = {.mem = flat, .size = request.len};
  transport_process(lane->rings->transport, session, &memory);
  // The kernel sends one FORGET like any request and has its caller wait for the reply, which there is none of by the device:
  // in the middle of READDIRPLUS, of a line that cannot be used (fuse_force_forget in fs/fuse/readdir.c).
  if (request.opcode == FUSE_FORGET) answer_forget(lane->rings, unique);
  // From here on the entry may have been answered by another thread, and serve the next request.
  if (is_interrupted || (rings_await_reply(lane->rings, unique) && has_signal(request.pid))) rings_interrupt(session, unique);
  if (lane->waiting[place] >= lane->reserve) return;
  bool was_last = lane->waiting[place] == 0;
  add_entry(lane, place);
  if (!was_last) return;
  // Registered first, for the request that is asked for.
  io_uring_submit(&lane->ring);
  lane->reserve = poke(lane, place) ? 1 : RESERVE_WITHOUT_POKE;
  while (lane->waiting[place] < lane->reserve && add_entry(lane, place)) {}
}

// The entries that other threads have answered.
static void commit_answered(struct lane *lane) {
  pthread_mutex_lock(&lane->lock);
  struct entry *entry = lane->answered;
  lane->answered = NULL;
  bool is_ended = lane->is_ended;
  pthread_mutex_unlock(&lane->lock);
  while (entry) {
    struct entry *next = entry->next;
    lane_commit(entry);
    entry = next;
  }
  if (is_ended)
    lane->has_left = true;
  else
    await_wakeup(lane);
}

static bool is_disconnected(int result) {
  return result == -ENOTCONN || result == -ECONNABORTED || result == -ENODEV || result == -ECANCELED;
}

// An entry has failed to register or to commit; it is not used again. Before the rings are in use the kernel then stays with
// the device (fuse_uring_cmd). Afterwards the queue needs another one: soon, but not in a tight circle.
static void give_up(struct lane *lane, struct entry *entry, int result) {
  int none = 0;
  atomic_compare_exchange_strong(&lane->rings->problem, &none, -result);
  if (lane->waiting[entry->place] > 0 || !atomic_load(&lane->rings->is_used)) return;
  usleep(10000);
  add_entry(lane, entry->place);
}

static void complete(struct lane *lane, struct fuse_session *session, struct entry *entry, int result) {
  if (!entry) {
    commit_answered(lane);
    return;
  }
  lane->waiting[entry->place]--;
  entry->is_large = false;
  if (result == 0) {
    if (!atomic_load_explicit(&lane->rings->is_used, memory_order_relaxed)) atomic_store(&lane->rings->is_used, true);
    serve(lane, session, entry);
  } else if (is_disconnected(result)) {
    lane->has_left = true;
  } else {
    give_up(lane, entry, result);
  }
}

static int run(struct lane *lane, struct fuse_session *session) {
  while (!lane->has_left) {
    lane->round++;
    int result = io_uring_submit_and_wait(&lane->ring, 1);
    if (result < 0 && result != -EINTR && result != -EAGAIN && result != -EBUSY) return result;
    struct io_uring_cqe *completion;
    while (!lane->has_left && io_uring_peek_cqe(&lane->ring, &completion) == 0) {
      struct entry *entry = (struct entry *)(uintptr_t)completion->user_data;
      result = completion->res;
      io_uring_cqe_seen(&lane->ring, completion);
      complete(lane, session, entry, result);
      // Whoever was answered does not wait for the requests that are served next.
      if (io_uring_cq_ready(&lane->ring) > 0) io_uring_submit(&lane->ring);
    }
    if (lane->large) trim(lane);
  }
  return 0;
}

int ct_serve_ring(struct ct_transport *transport, struct fuse_session *session, uint32_t index, bool stays) {
  struct lane *lane = &transport->rings->lanes[index];
  lane->descriptor = fuse_session_fd(session);
  if (!stays) lane->cpu = -1;
  if (lane->cpu >= 0) run_on(lane->cpu);
  // io_uring_enable_rings: declared by liburing 2.3, and not exported.
  int result = io_uring_register((unsigned)lane->ring.ring_fd, IORING_REGISTER_ENABLE_RINGS, NULL, 0);
  if (result >= 0) {
    current_lane = lane;
    await_wakeup(lane);
    lane->reserve = 1;
    for (uint32_t place = 0; place < lane->queue_count; place++) add_entry(lane, place);
    result = run(lane, session);
    current_lane = NULL;
  }
  pthread_mutex_lock(&lane->lock);
  lane->is_ended = true;
  lane->answered = NULL;
  pthread_mutex_unlock(&lane->lock);
  // Takes back what still waits; entries of requests that are not answered stay until the session is freed.
  io_uring_queue_exit(&lane->ring);
  lane->ring.ring_fd = -1;
  return result;
}

void ct_stop_rings(struct ct_transport *transport) {
  if (!transport->rings) return;
  for (uint32_t index = 0; index < transport->rings->lane_count; index++) {
    struct lane *lane = &transport->rings->lanes[index];
    pthread_mutex_lock(&lane->lock);
    lane->is_ended = true;
    pthread_mutex_unlock(&lane->lock);
    eventfd_write(lane->wakeup, 1);
  }
}
