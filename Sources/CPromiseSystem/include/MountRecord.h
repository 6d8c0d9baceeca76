#pragma once
// Memory that outlives the daemon: what a successor must know of a mount beyond the index. The holder keeps it, so it survives
// a kill and not a power cut. Every function here is called under a lock of the caller's but cps_record_*_at of other
// positions. A kill between two stores must leave nothing wrong, so what counts is stored last.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A mount's record. Its first page belongs to the transport, which knows its own layout.
struct cps_record;
#define CPS_RECORD_SESSION_SIZE 4096

// Makes the memory as large as it has to be and maps it. Null with errno.
struct cps_record *_Nullable cps_record_map(int descriptor);
void *_Nonnull cps_record_session(struct cps_record *_Nonnull record);
// It was written by a program with the same layout.
bool cps_record_is_known(const struct cps_record *_Nonnull record);
// Nothing is open, nothing was carried out.
void cps_record_reset(struct cps_record *_Nonnull record);

// A handle that the kernel has, or with handle 0 a backing file that is registered.
struct cps_open {
  uint64_t handle, node, generation;
  uint64_t request; // the one that opened it
  int32_t backing; // 0: none
  uint32_t is_writable;
};
// Positions from 0 to below this can be used.
#define CPS_RECORD_OPEN_MAX (1u << 20)
void cps_record_set_open(
    struct cps_record *_Nonnull record, uint32_t position, const struct cps_open *_Nonnull value);
void cps_record_clear_open(struct cps_record *_Nonnull record, uint32_t position);
// False where there is none.
bool cps_record_open_at(
    const struct cps_record *_Nonnull record, uint32_t position, struct cps_open *_Nonnull value);
// No position from here on has been used.
uint32_t cps_record_open_end(const struct cps_record *_Nonnull record);
// A number for a handle that no handle of this mount had before.
uint64_t cps_record_next_handle(struct cps_record *_Nonnull record);

// A request was carried out by the body `body` of the index, if the index has that body. The last ones are remembered.
#define CPS_RECORD_CARRIED_MAX 4096
void cps_record_carry(struct cps_record *_Nonnull record, uint64_t request, uint64_t body);
// It was not, after all.
void cps_record_withdraw(struct cps_record *_Nonnull record, uint64_t request);
// False where there is none.
bool cps_record_carried_at(
    const struct cps_record *_Nonnull record, uint32_t position, uint64_t *_Nonnull request, uint64_t *_Nonnull body);
