// What of SQLite's interface Swift cannot call: functions with a variable number of arguments.
#pragma once

/// Turns SQLite's statistics of its own memory off for the process: they take a lock in each allocation, which costs a
/// tenth of the time of a small statement. Does nothing once SQLite has been used (sqlite.org/c3ref/config.html).
void promise_index_configure_sqlite(void);
