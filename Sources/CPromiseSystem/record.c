#include "include/MountRecord.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// Of this layout; another one is not read.
#define LAYOUT UINT64_C(0x50464d5245430001)

struct open_slot {
  _Atomic uint32_t is_used;
  uint32_t is_writable;
  uint64_t handle, node, generation, request;
  int32_t backing;
  uint32_t padding;
};
_Static_assert(sizeof(struct open_slot) == 48, "a slot has no hidden padding");

struct carried_slot {
  _Atomic uint64_t request; // 0: none
  _Atomic uint64_t body;
};

struct cps_record {
  uint8_t session[CPS_RECORD_SESSION_SIZE];
  _Atomic uint64_t layout;
  _Atomic uint64_t next_handle;
  _Atomic uint32_t open_end;
  uint32_t carried_next;
  struct carried_slot carried[CPS_RECORD_CARRIED_MAX];
  struct open_slot open[CPS_RECORD_OPEN_MAX];
};

struct cps_record *cps_record_map(int descriptor) {
  // Sparse: only what is written to becomes memory.
  if (ftruncate(descriptor, sizeof(struct cps_record)) != 0) return NULL;
  void *memory = mmap(NULL, sizeof(struct cps_record), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  return memory == MAP_FAILED ? NULL : memory;
}

void *cps_record_session(struct cps_record *record) { return record->session; }

bool cps_record_is_known(const struct cps_record *record) { return atomic_load(&record->layout) == LAYOUT; }

void cps_record_reset(struct cps_record *record) {
  atomic_store(&record->layout, 0);
  memset(record->session, 0, sizeof record->session);
  uint32_t end = atomic_load(&record->open_end);
  if (end > CPS_RECORD_OPEN_MAX) end = CPS_RECORD_OPEN_MAX;
  memset(record->open, 0, end * sizeof record->open[0]);
  memset(record->carried, 0, sizeof record->carried);
  record->carried_next = 0;
  atomic_store(&record->open_end, 0);
  atomic_store(&record->next_handle, 1);
  atomic_store(&record->layout, LAYOUT);
}

void cps_record_set_open(struct cps_record *record, uint32_t position, const struct cps_open *value) {
  struct open_slot *slot = &record->open[position];
  slot->is_writable = value->is_writable;
  slot->handle = value->handle;
  slot->node = value->node;
  slot->generation = value->generation;
  slot->request = value->request;
  slot->backing = value->backing;
  if (position >= atomic_load(&record->open_end)) atomic_store(&record->open_end, position + 1);
  atomic_store(&slot->is_used, 1);
}

void cps_record_clear_open(struct cps_record *record, uint32_t position) {
  atomic_store(&record->open[position].is_used, 0);
}

bool cps_record_open_at(const struct cps_record *record, uint32_t position, struct cps_open *value) {
  const struct open_slot *slot = &record->open[position];
  if (!atomic_load(&slot->is_used)) return false;
  *value = (struct cps_open){
      .handle = slot->handle, .node = slot->node, .generation = slot->generation, .request = slot->request,
      .backing = slot->backing, .is_writable = slot->is_writable};
  return true;
}

uint32_t cps_record_open_end(const struct cps_record *record) {
  uint32_t end = atomic_load(&record->open_end);
  return end < CPS_RECORD_OPEN_MAX ? end : CPS_RECORD_OPEN_MAX;
}

uint64_t cps_record_next_handle(struct cps_record *record) { return atomic_fetch_add(&record->next_handle, 1); }

void cps_record_carry(struct cps_record *record, uint64_t request, uint64_t body) {
  struct carried_slot *slot = &record->carried[record->carried_next++ % CPS_RECORD_CARRIED_MAX];
  atomic_store(&slot->request, 0);
  atomic_store(&slot->body, body);
  atomic_store(&slot->request, request);
}

void cps_record_withdraw(struct cps_record *record, uint64_t request) {
  // It is among the newest.
  for (uint32_t back = 1; back <= CPS_RECORD_CARRIED_MAX; back++) {
    struct carried_slot *slot = &record->carried[(record->carried_next - back) % CPS_RECORD_CARRIED_MAX];
    uint64_t found = atomic_load(&slot->request);
    if (found == request) atomic_store(&slot->request, 0);
    if (found == request || back > record->carried_next) return;
  }
}

bool cps_record_carried_at(
    const struct cps_record *record, uint32_t position, uint64_t *request, uint64_t *body) {
  *request = atomic_load(&record->carried[position].request);
  *body = atomic_load(&record->carried[position].body);
  return *request != 0;
}
