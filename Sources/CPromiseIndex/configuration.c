#include "CPromiseIndex.h"

#include <sqlite3.h>

void promise_index_configure_sqlite(void) {
    // SQLITE_MISUSE after the first use, and then nothing has changed.
    (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

void promise_index_keep_locks_in_memory(void) {
    promise_index_configure_sqlite();
    if (sqlite3_initialize() != SQLITE_OK) return;
    sqlite3_vfs *found = sqlite3_vfs_find("unix-excl");
    if (found) (void)sqlite3_vfs_register(found, 1);
}
