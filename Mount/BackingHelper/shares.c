#include "shares.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "protocol.h"

// The user's share is cut into pieces, each a name among the abstract sockets (unix(7)): the kernel gives it to one process at a
// time, and takes it back when that ends, however it does. A file could be changed by the user, who runs this program.
#define PIECE (BACKING_COUNT_MAX / BACKING_PIECES)

static int pieces[BACKING_PIECES];
static unsigned held, used;

static int take(unsigned number) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int length = snprintf(
      address.sun_path + 1, sizeof address.sun_path - 1, "promisefs-backing/%u/%u", (unsigned)getuid(), number);
  int piece = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (piece < 0) return -1;
  socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
  if (bind(piece, (struct sockaddr *)&address, size) == 0) return piece;
  close(piece);
  return -1;
}

static bool take_any(void) {
  for (unsigned number = 0; number < BACKING_PIECES; number++) {
    int piece = take(number);
    if (piece < 0) continue;
    pieces[held++] = piece;
    return true;
  }
  return false;
}

bool share_more(void) {
  if (used == held * PIECE && (held == BACKING_PIECES || !take_any())) return false;
  used++;
  return true;
}

void share_less(void) {
  used--;
  // With half a piece in hand, so that one file to and fro is no system call.
  if (held > 0 && used + PIECE + PIECE / 2 <= held * PIECE) close(pieces[--held]);
}
