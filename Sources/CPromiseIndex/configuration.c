#include "CPromiseIndex.h"

#include <sqlite3.h>

void promise_index_configure_sqlite(void) {
    // SQLITE_MISUSE after the first use, and then nothing has changed.
    (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}
