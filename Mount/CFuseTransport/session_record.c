// Going on with a mount that another process has negotiated: its INIT is kept in memory that outlives it, and answered again
// without the kernel hearing of it.
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#define LAYOUT UINT64_C(0x5046534553530001)
// Linux 6.9, <linux/fuse.h>: what the daemon before has received and not answered comes again.
#define NOTIFY_RESEND 7

struct session_record {
  _Atomic uint64_t layout; // stored last
  struct ct_negotiation negotiation;
  uint32_t size;
  uint8_t request[512];
};
_Static_assert(sizeof(struct session_record) <= CT_SESSION_RECORD_SIZE, "the record fits its page");

void ct_use_record(struct ct_transport *transport, void *memory) { transport->record = memory; }

void transport_note_request(struct ct_transport *transport, const void *request, size_t size) {
  struct session_record *record = transport->record;
  if (!record || transport->is_resuming) return;
  atomic_store(&record->layout, 0);
  record->size = size <= sizeof record->request ? (uint32_t)size : 0;
  memcpy(record->request, request, record->size);
}

void transport_note_negotiation(struct ct_transport *transport) {
  struct session_record *record = transport->record;
  if (!record || transport->is_resuming || record->size == 0) return;
  record->negotiation = transport->negotiation;
  atomic_store(&record->layout, LAYOUT);
}

bool ct_may_be_resumed(const struct ct_transport *transport) {
  const struct session_record *record = transport->record;
  // Without it no request comes again; with rings the kernel loses those that a dying process holds.
  uint64_t flags = transport->negotiation.accepted;
  return record && atomic_load(&record->layout) == LAYOUT && (flags & CT_HAS_RESEND) && !(flags & CT_OVER_IO_URING);
}

int ct_resume(struct ct_transport *transport, struct fuse_session *session) {
  struct session_record *record = transport->record;
  if (!record || atomic_load(&record->layout) != LAYOUT) return -EPROTO;
  uint8_t request[sizeof record->request];
  memcpy(request, record->request, record->size);
  struct fuse_buf memory = {.mem = request, .size = record->size};
  // They were not there when this was settled, or the mount could not be gone on with.
  transport->wants_rings = false;
  transport->is_resuming = true;
  transport_process(transport, session, &memory);
  transport->is_resuming = false;
  // What the kernel was told once cannot be changed.
  if (!transport->negotiation.is_done || transport->negotiation.accepted != record->negotiation.accepted) return -EPROTO;
  struct fuse_out_header resend = {.len = sizeof resend, .error = NOTIFY_RESEND};
  return write(fuse_session_fd(session), &resend, sizeof resend) < 0 ? -errno : 0;
}

void ct_keep_only(int descriptor) {
  if (unshare(CLONE_FILES) != 0) return;
  if (descriptor > 3) close_range(3, (unsigned)descriptor - 1, 0);
  close_range((unsigned)descriptor + 1, ~0u, 0);
}
