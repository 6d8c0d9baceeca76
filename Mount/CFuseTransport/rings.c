// The rings of a session: making them, the requests in them, and replies. See rings.h.
#include "rings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

// MARK: - Making

// How many CPUs a list like "0-3,8" has (Documentation/admin-guide/cputopology.rst), and which with `numbers`.
static uint32_t read_cpu_list(const char *path, uint16_t *numbers, uint32_t room) {
  FILE *file = fopen(path, "re");
  if (!file) return 0;
  uint32_t count = 0;
  unsigned first, last;
  char separator;
  while (fscanf(file, "%u", &first) == 1) {
    last = first;
    int next = fscanf(file, "%c", &separator);
    if (next == 1 && separator == '-') {
      if (fscanf(file, "%u", &last) != 1) break;
      next = fscanf(file, "%c", &separator);
    }
    for (unsigned number = first; number <= last && number < UINT16_MAX; number++) {
      if (numbers && count < room) numbers[count] = (uint16_t)number;
      count++;
    }
    if (next != 1 || separator != ',') break;
  }
  fclose(file);
  return count;
}

static int make_lane(struct rings *rings, struct lane *lane, uint32_t queue_room) {
  lane->rings = rings;
  lane->wakeup = -1;
  lane->ring.ring_fd = -1;
  lane->queues = calloc(queue_room, sizeof *lane->queues);
  lane->waiting = calloc(queue_room, sizeof *lane->waiting);
  if (!lane->queues || !lane->waiting) return -ENOMEM;
  lane->wakeup = eventfd(0, EFD_CLOEXEC);
  if (lane->wakeup < 0) return -errno;
  // Disabled at first: the thread that enables it is the one that may use it.
  struct io_uring_params params = {
      .flags = IORING_SETUP_SQE128 | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_R_DISABLED |
               IORING_SETUP_CQSIZE,
      .cq_entries = COMPLETIONS};
  int result = io_uring_queue_init_params(SUBMISSIONS, &lane->ring, &params);
  if (result < 0) lane->ring.ring_fd = -1;
  return result;
}

// Queues are spread over groups of lanes: the queue of an online CPU has a group of its own while there are not too many.
static int make_lanes(struct rings *rings) {
  uint16_t online[GROUPS_MAX];
  uint32_t queues = read_cpu_list("/sys/devices/system/cpu/possible", NULL, 0);
  uint32_t online_count = read_cpu_list("/sys/devices/system/cpu/online", online, GROUPS_MAX);
  if (queues == 0 || queues > UINT16_MAX) return -ENOTSUP;
  bool is_pinned = online_count > 0 && online_count <= GROUPS_MAX;
  uint32_t groups = online_count == 0 ? 1 : is_pinned ? online_count : GROUPS_MAX;
  rings->lanes = calloc(groups * LANES_EACH, sizeof *rings->lanes);
  if (!rings->lanes) return -ENOMEM;
  for (uint32_t index = 0; index < groups * LANES_EACH; index++) {
    struct lane *lane = &rings->lanes[index];
    pthread_mutex_init(&lane->lock, NULL);
    rings->lane_count = index + 1;
    uint32_t group = index / LANES_EACH;
    int result = make_lane(rings, lane, queues);
    if (result < 0) return result;
    lane->cpu = is_pinned ? online[group] : -1;
    for (uint32_t queue = 0; queue < queues; queue++) {
      uint32_t owner = queue % groups;
      for (uint32_t other = 0; is_pinned && other < groups; other++)
        if (online[other] == queue) owner = other;
      if (owner == group) lane->queues[lane->queue_count++] = (uint16_t)queue;
    }
  }
  return 0;
}

struct rings *rings_create(struct ct_transport *transport) {
  struct rings *rings = calloc(1, sizeof *rings);
  if (!rings) return NULL;
  rings->transport = transport;
  for (int index = 0; index < BUCKETS; index++) pthread_mutex_init(&rings->buckets[index].lock, NULL);
  int result = make_lanes(rings);
  if (result == 0) return rings;
  rings_destroy(rings);
  errno = -result;
  return NULL;
}

void rings_destroy(struct rings *rings) {
  for (uint32_t index = 0; index < rings->lane_count; index++) {
    struct lane *lane = &rings->lanes[index];
    if (lane->ring.ring_fd >= 0) io_uring_queue_exit(&lane->ring);
    if (lane->wakeup >= 0) close(lane->wakeup);
    for (struct entry *entry = lane->entries; entry;) {
      struct entry *next = entry->owned;
      munmap(entry, HEADER_ROOM + rings->payload_size);
      entry = next;
    }
    free(lane->queues);
    free(lane->waiting);
    pthread_mutex_destroy(&lane->lock);
  }
  for (int index = 0; index < BUCKETS; index++) pthread_mutex_destroy(&rings->buckets[index].lock);
  free(rings->lanes);
  free(rings);
}

void rings_negotiated(struct rings *rings, const struct fuse_init_out *reply) {
  // The kernel refuses entries with less (fuse_uring_create); 32 pages are its default.
  size_t pages = reply->flags & FUSE_MAX_PAGES ? reply->max_pages : 32;
  size_t size = pages * (size_t)sysconf(_SC_PAGESIZE);
  if (size < reply->max_write) size = reply->max_write;
  size_t least = 128 << 10;
  rings->payload_size = size < least ? least : (size + 4095) & ~(size_t)4095;
}

uint32_t rings_lane_count(const struct rings *rings) { return rings->lane_count; }

// One that comes later takes an entry away, not the rings.
int rings_problem(const struct rings *rings) { return atomic_load(&rings->is_used) ? 0 : atomic_load(&rings->problem); }

// MARK: - The requests that are not answered

static struct bucket *bucket_of(struct rings *rings, uint64_t unique) {
  // The kernel's numbers are even.
  return &rings->buckets[(unique >> 1) % BUCKETS];
}

bool rings_enter(struct rings *rings, struct entry *entry) {
  struct bucket *bucket = bucket_of(rings, entry->unique);
  bool is_interrupted = false;
  pthread_mutex_lock(&bucket->lock);
  entry->next = bucket->first;
  bucket->first = entry;
  for (int index = 0; index < EARLY_MAX; index++) {
    if (bucket->early[index] != entry->unique) continue;
    bucket->early[index] = 0;
    is_interrupted = true;
  }
  pthread_mutex_unlock(&bucket->lock);
  return is_interrupted;
}

// The entry of a request; `leaves` takes it out.
static struct entry *find(struct rings *rings, uint64_t unique, bool leaves) {
  struct bucket *bucket = bucket_of(rings, unique);
  pthread_mutex_lock(&bucket->lock);
  struct entry **place = &bucket->first;
  while (*place && (*place)->unique != unique) place = &(*place)->next;
  struct entry *entry = *place;
  if (entry && leaves) *place = entry->next;
  pthread_mutex_unlock(&bucket->lock);
  return entry;
}

bool rings_await_reply(struct rings *rings, uint64_t unique) { return find(rings, unique, false) != NULL; }

void rings_interrupt(struct fuse_session *session, uint64_t unique) {
  struct {
    struct fuse_in_header header;
    struct fuse_interrupt_in body;
  } request = {
      .header = {.len = sizeof request, .opcode = FUSE_INTERRUPT, .unique = unique | 1}, .body = {.unique = unique}};
  struct fuse_buf memory = {.mem = &request, .size = sizeof request};
  // Not counted: the kernel has sent it once.
  fuse_session_process_buf(session, &memory);
}

void rings_keep_interruption(struct rings *rings, struct fuse_session *session, uint64_t unique) {
  struct bucket *bucket = bucket_of(rings, unique);
  pthread_mutex_lock(&bucket->lock);
  struct entry *entry = bucket->first;
  while (entry && entry->unique != unique) entry = entry->next;
  if (!entry) {
    // Most often the request was answered long ago; so it is in order that a later one takes the place.
    bucket->early[bucket->next_early] = unique;
    bucket->next_early = (bucket->next_early + 1) % EARLY_MAX;
  }
  pthread_mutex_unlock(&bucket->lock);
  // It has come and libfuse does not have it yet: libfuse keeps the interruption, or gives it back once more.
  if (entry) rings_interrupt(session, unique);
}

// MARK: - Replies, from any thread

// Whether a reply fits is the kernel's promise: it asks for no more than an entry holds.
static void fill(struct entry *entry, const struct iovec *parts, int count) {
  char *payload = entry->parts[1].iov_base;
  size_t size = 0;
  for (int index = 1; index < count; index++) {
    if (size + parts[index].iov_len > entry->parts[1].iov_len) abort();
    if (parts[index].iov_base != payload + size) memcpy(payload + size, parts[index].iov_base, parts[index].iov_len);
    size += parts[index].iov_len;
  }
  memcpy(&entry->header.reply, parts[0].iov_base, sizeof entry->header.reply);
  entry->header.payload_size = (uint32_t)size;
}

bool rings_reply(struct rings *rings, const struct iovec *parts, int count) {
  const struct fuse_out_header *reply = parts[0].iov_base;
  struct entry *entry = find(rings, reply->unique, true);
  if (!entry) return false;
  struct lane *lane = entry->lane;
  fill(entry, parts, count);
  if (lane == current_lane) {
    lane_commit(entry);
    return true;
  }
  pthread_mutex_lock(&lane->lock);
  bool is_first = lane->answered == NULL;
  // After the end there is nobody to tell.
  bool is_handed_over = !lane->is_ended;
  if (is_handed_over) {
    entry->next = lane->answered;
    lane->answered = entry;
  }
  pthread_mutex_unlock(&lane->lock);
  if (is_handed_over && is_first) eventfd_write(lane->wakeup, 1);
  return true;
}

void *rings_payload(struct rings *rings, uint64_t unique, size_t size) {
  struct entry *entry = find(rings, unique, false);
  return entry && size <= entry->parts[1].iov_len ? entry->parts[1].iov_base : NULL;
}
