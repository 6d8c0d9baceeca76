#pragma once
// What the daemon and its backing helper say to each other over a SOCK_SEQPACKET socket: one request, one answer.
#include <stdint.h>

// The helper's end of the socket.
#define BACKING_HELPER_SOCKET 3
// So many files may be registered at a time by all helpers of a user: they count against no other limit. In so many pieces, of
// which each helper takes as many as it needs.
#define BACKING_COUNT_MAX 16384
#define BACKING_PIECES 16

enum backing_operation {
  // With two descriptors: the FUSE device of the mount, and the folder of the content store. First, and once.
  BACKING_BEGIN = 1,
  // With one descriptor: a content file. The answer is its backing id, above 0.
  BACKING_OPEN = 2,
  BACKING_CLOSE = 3,
};

struct backing_request {
  uint32_t operation;
  int32_t backing;
};

struct backing_answer {
  // 0 or a backing id; a negative errno when it was refused or failed.
  int32_t result;
};
