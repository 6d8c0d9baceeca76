#include "CPromiseIndex.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A VFS of SQLite's that passes everything on to the one it stands before, and asks first whether the call is to fail
// (sqlite.org/vfs.html). It is registered only where faults are wanted.

static promise_index_fault_asker ask;
static sqlite3_vfs *below;
static _Thread_local int last_error;

// A file of the VFS below follows it in memory.
struct shim_file {
  sqlite3_file base;
  const char *kind;
};

static sqlite3_file *real(sqlite3_file *file) { return (sqlite3_file *)((struct shim_file *)file + 1); }

static int fault(sqlite3_file *file, const char *call) {
  char label[64];
  snprintf(label, sizeof label, "index.%s.%s", ((struct shim_file *)file)->kind, call);
  int code = ask(label);
  if (code > 0) last_error = code;
  return code;
}

static int shim_close(sqlite3_file *file) { return real(file)->pMethods->xClose(real(file)); }

static int shim_read(sqlite3_file *file, void *bytes, int count, sqlite3_int64 offset) {
  if (fault(file, "read") > 0) return SQLITE_IOERR_READ;
  return real(file)->pMethods->xRead(real(file), bytes, count, offset);
}

static int shim_write(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 offset) {
  int code = fault(file, "write");
  if (code == 0) return real(file)->pMethods->xWrite(real(file), bytes, count, offset);
  // As os_unix.c does it: a short write without an errno is a full disk, and leaves what was written.
  if (code == PROMISE_INDEX_SHORT_WRITE) real(file)->pMethods->xWrite(real(file), bytes, count / 2, offset);
  return code == PROMISE_INDEX_SHORT_WRITE || code == ENOSPC ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}

static int shim_truncate(sqlite3_file *file, sqlite3_int64 size) {
  if (fault(file, "truncate") > 0) return SQLITE_IOERR_TRUNCATE;
  return real(file)->pMethods->xTruncate(real(file), size);
}

static int shim_sync(sqlite3_file *file, int flags) {
  if (fault(file, "sync") > 0) return SQLITE_IOERR_FSYNC;
  return real(file)->pMethods->xSync(real(file), flags);
}

static int shim_size(sqlite3_file *file, sqlite3_int64 *size) {
  if (fault(file, "size") > 0) return SQLITE_IOERR_FSTAT;
  return real(file)->pMethods->xFileSize(real(file), size);
}

static int shim_lock(sqlite3_file *file, int level) { return real(file)->pMethods->xLock(real(file), level); }
static int shim_unlock(sqlite3_file *file, int level) { return real(file)->pMethods->xUnlock(real(file), level); }
static int shim_check(sqlite3_file *file, int *result) {
  return real(file)->pMethods->xCheckReservedLock(real(file), result);
}
static int shim_control(sqlite3_file *file, int operation, void *argument) {
  return real(file)->pMethods->xFileControl(real(file), operation, argument);
}
static int shim_sector(sqlite3_file *file) { return real(file)->pMethods->xSectorSize(real(file)); }
static int shim_traits(sqlite3_file *file) { return real(file)->pMethods->xDeviceCharacteristics(real(file)); }

static int shim_map(sqlite3_file *file, int page, int size, int extend, void volatile **address) {
  if (fault(file, "share") > 0) return SQLITE_IOERR_SHMMAP;
  return real(file)->pMethods->xShmMap(real(file), page, size, extend, address);
}
static int shim_share(sqlite3_file *file, int offset, int count, int flags) {
  return real(file)->pMethods->xShmLock(real(file), offset, count, flags);
}
static void shim_barrier(sqlite3_file *file) { real(file)->pMethods->xShmBarrier(real(file)); }
static int shim_unmap(sqlite3_file *file, int removes) { return real(file)->pMethods->xShmUnmap(real(file), removes); }

// Version 2: without memory mapping, which the index does not use, every read is seen here.
static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = shim_close,
    .xRead = shim_read,
    .xWrite = shim_write,
    .xTruncate = shim_truncate,
    .xSync = shim_sync,
    .xFileSize = shim_size,
    .xLock = shim_lock,
    .xUnlock = shim_unlock,
    .xCheckReservedLock = shim_check,
    .xFileControl = shim_control,
    .xSectorSize = shim_sector,
    .xDeviceCharacteristics = shim_traits,
    .xShmMap = shim_map,
    .xShmLock = shim_share,
    .xShmBarrier = shim_barrier,
    .xShmUnmap = shim_unmap,
};

static int shim_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *granted) {
  (void)vfs;
  struct shim_file *shim = (struct shim_file *)file;
  shim->kind = flags & SQLITE_OPEN_MAIN_DB ? "database" : flags & SQLITE_OPEN_WAL ? "wal" : "temporary";
  shim->base.pMethods = NULL;
  if (fault(file, "open") > 0) return SQLITE_CANTOPEN;
  int code = below->xOpen(below, name, real(file), flags, granted);
  // SQLite closes a file whose methods are set even when opening it failed, and only then.
  if (real(file)->pMethods) shim->base.pMethods = &methods;
  return code;
}

static int shim_last_error(sqlite3_vfs *vfs, int size, char *text) {
  (void)vfs;
  if (last_error == 0) return below->xGetLastError(below, size, text);
  int code = last_error;
  last_error = 0;
  return code;
}

void promise_index_install_faults(promise_index_fault_asker asker) {
  static sqlite3_vfs shim;
  if (below || sqlite3_initialize() != SQLITE_OK) return;
  sqlite3_vfs *found = sqlite3_vfs_find(NULL);
  if (!found) return;
  ask = asker;
  shim = *found;
  shim.pNext = NULL;
  shim.zName = "promisefs-faults";
  shim.szOsFile = (int)sizeof(struct shim_file) + found->szOsFile;
  shim.xOpen = shim_open;
  shim.xGetLastError = shim_last_error;
  below = found;
  sqlite3_vfs_register(&shim, 1);
}
