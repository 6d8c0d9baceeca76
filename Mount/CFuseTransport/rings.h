#pragma once
// FUSE over io_uring: Linux 6.14, Documentation/filesystems/fuse/fuse-io-uring.rst and fs/fuse/dev_uring.c.
//
// The kernel has one queue for each possible CPU and gives a request to an entry of the queue of the CPU that it is made on.
// An entry is memory for one request and its reply; committing the reply makes the entry wait for the next request. The
// entry that began to wait last gets the next request.
//
// A lane is a serving thread with a ring of its own. Each queue has two lanes, and a lane has as a rule one waiting entry in
// a queue: so the lane that has just served, whose memory is warm, gets the next request, and the other one gets it when the
// first is still busy. Whether a lane stays on its queue's CPU is the caller's choice (ct_serve_ring). A request that is
// answered later keeps its entry; the lane then registers another one, so that any number of such requests holds nobody up.
//
// Every request by a ring is answered, also a FORGET: its caller waits for that.
//
// A request that finds no waiting entry stays in the queue until some entry of the queue commits: an entry that is newly
// registered does not look there. So a lane whose last entry was kept also asks the kernel for a request that is answered at
// once (FUSE_NOTIFY_RETRIEVE of nothing); committing it fetches the one that is left, if there is one. It takes a file that the
// kernel knows; as long as none was opened, a lane keeps more entries waiting instead.
#include <liburing.h>
#include <pthread.h>

#include "internal.h"

// <linux/fuse.h> of Linux 6.14; not in the installed one.
enum { COMMAND_REGISTER = 1, COMMAND_COMMIT_AND_FETCH = 2 };

struct entry_header {
  union {
    struct fuse_in_header request;
    struct fuse_out_header reply;
    char space[128];
  };
  char arguments[128];
  uint64_t flags;
  uint64_t commit;
  uint32_t payload_size;
  uint32_t padding;
  uint64_t reserved;
};
_Static_assert(sizeof(struct entry_header) == 288, "fuse_uring_req_header has 288 bytes");

struct command {
  uint64_t flags;
  uint64_t commit;
  uint16_t queue;
  uint8_t padding[6];
};
_Static_assert(sizeof(struct command) == 24, "fuse_uring_cmd_req has 24 bytes");
_Static_assert(sizeof(((struct entry_header *)0)->arguments) + sizeof(struct fuse_in_header) + 1024 < 4096, "one page is enough");

enum {
  LANES_EACH = 2,
  GROUPS_MAX = 16,
  SUBMISSIONS = 32,
  COMPLETIONS = 1024,
  BUCKETS = 256,
  EARLY_MAX = 4,
  // A lane that has more waiting entries of one queue gives back the memory of large payloads.
  WAITING_MANY = 16,
  RESERVE_WITHOUT_POKE = 8,
  LARGE_PAYLOAD = 64 << 10,
  HEADER_ROOM = 4096,
};

#define POKE_MARK (UINT64_C(1) << 62)

struct lane;

// Lies at the start of its own mapping. The arguments of a request are copied to the end of the header's room, so that
// request, arguments and payload lie one behind the other, as libfuse wants them.
struct entry {
  struct entry *next;  // of those in a bucket, or handed to the lane; never both
  struct entry *owned; // the next one that the lane has made
  struct lane *lane;
  struct iovec parts[2];
  uint64_t unique;
  uint32_t place; // of its queue among those of the lane
  // Memory to give back: in the lane's list of those, since when, and whether it still holds nothing of use.
  struct entry *next_large;
  uint64_t round;
  bool is_listed;
  bool is_large;
  _Alignas(64) struct entry_header header;
};
_Static_assert(sizeof(struct entry) < 1024, "the entry leaves room for the arguments");

struct lane {
  struct rings *rings;
  struct io_uring ring;
  int cpu;        // it stays on; -1: on none
  int descriptor; // of the session
  uint32_t queue_count;
  uint16_t *queues;
  uint32_t *waiting; // how many entries of each queue wait for a request
  struct entry *entries;
  struct entry *large;
  uint64_t round;   // waits so far
  uint32_t reserve; // how many entries of a queue shall wait at least
  int wakeup;
  uint64_t wakeup_count;
  bool has_left;
  // Below: shared with other threads.
  pthread_mutex_t lock;
  struct entry *answered;
  bool is_ended;
};

struct bucket {
  pthread_mutex_t lock;
  struct entry *first;
  uint64_t early[EARLY_MAX];
  uint32_t next_early;
};

struct rings {
  struct ct_transport *transport;
  size_t payload_size;
  uint32_t lane_count;
  struct lane *lanes;
  // The first error of an entry's registration.
  _Atomic int problem;
  // A request has come by a ring.
  _Atomic bool is_used;
  _Atomic uint64_t pokes;
  // A file that the kernel has asked about; it may have been forgotten since.
  _Atomic uint64_t file;
  // Requests that were received and not answered.
  struct bucket buckets[BUCKETS];
};

// The lane that this thread serves; null on other threads.
extern _Thread_local struct lane *current_lane;

// Enters a request that is about to be served. True when an interruption of it has come before it.
bool rings_enter(struct rings *rings, struct entry *entry);
// Whether a request has not been answered.
bool rings_await_reply(struct rings *rings, uint64_t unique);
// Has libfuse interrupt a request.
void rings_interrupt(struct fuse_session *session, uint64_t unique);
// Commits the reply that an entry holds. On the lane's own thread.
void lane_commit(struct entry *entry);
