#pragma once
// What the sources of this target share.
#define FUSE_USE_VERSION 314
#include <fuse3/fuse_lowlevel.h>
#include <linux/fuse.h>
#include <stdatomic.h>
#include <sys/uio.h>

#include "CFuseTransport.h"

struct ct_transport {
  void *owner;
  bool wants_passthrough, wants_rings, wants_direct_mappings;
  struct ct_negotiation negotiation;
  uint64_t init_request;
  struct fuse_session *session;
  // Null unless the kernel offered rings and they could be made.
  struct rings *rings;
  int rings_problem; // the errno of making them
  // Requests received, by opcode; the last one counts what is beyond.
  _Atomic uint64_t requests[CT_OPCODE_COUNT];
  // Told of every so many of them; null when nobody is.
  void (*hook)(void *owner);
  uint32_t hook_every;
  _Atomic uint32_t hook_count;
  // A page that outlives this process, or null; and whether INIT is being answered from it.
  void *record;
  bool is_resuming;
};

// Has libfuse call the operation of a request that lies in `memory`, header first.
void transport_process(struct ct_transport *transport, struct fuse_session *session, struct fuse_buf *memory);

// Keeps INIT, and what was settled, for a successor.
void transport_note_request(struct ct_transport *transport, const void *request, size_t size);
void transport_note_negotiation(struct ct_transport *transport);

// Makes the rings of a session, one for each serving thread, without anything that needs the kernel's FUSE: so that what can
// fail has failed before INIT is answered. Null with errno.
struct rings *rings_create(struct ct_transport *transport);
// After every serving thread has left and every request has been answered.
void rings_destroy(struct rings *rings);
// INIT is answered with these sizes.
void rings_negotiated(struct rings *rings, const struct fuse_init_out *reply);
uint32_t rings_lane_count(const struct rings *rings);
// The errno of an entry that could not be registered; 0 when there was none, or a request has come by a ring all the same.
int rings_problem(const struct rings *rings);

// A reply on its way out. True when its request came by a ring and the reply is taken care of. From any thread.
bool rings_reply(struct rings *rings, const struct iovec *parts, int count);
// Where the payload of a reply to a request may be written at once, or null when the request came by the device. Until the
// request is answered.
void *rings_payload(struct rings *rings, uint64_t unique, size_t size);
// libfuse gives an interruption back (EAGAIN) that came before its request did: kept until the request comes.
void rings_keep_interruption(struct rings *rings, struct fuse_session *session, uint64_t unique);
