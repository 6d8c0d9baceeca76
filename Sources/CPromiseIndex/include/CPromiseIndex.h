// What of SQLite's interface Swift cannot call, functions with a variable number of arguments, and what is called for each
// of a million rows.
#pragma once

/// Turns SQLite's statistics of its own memory off for the process: they take a lock in each allocation, which costs a
/// tenth of the time of a small statement. Does nothing once SQLite has been used (sqlite.org/c3ref/config.html).
void promise_index_configure_sqlite(void);

/// Keeps the locks of all databases in this process's memory, so that no look costs a call of the kernel; another process
/// finds them locked (`unix-excl`, sqlite.org/vfs.html). For the simulation. Before the first connection is opened.
void promise_index_keep_locks_in_memory(void);

/// What `promise_index_fault_asker` returns for a write of which half is to be taken.
#define PROMISE_INDEX_SHORT_WRITE (-1)

/// Asked before a call of SQLite's on a file; returns 0, the errno it is to fail with, or PROMISE_INDEX_SHORT_WRITE. The
/// label is `index.FILE.CALL`, with FILE one of `database`, `wal` and `temporary`.
typedef int (*promise_index_fault_asker)(const char *_Nonnull label);

/// Puts a VFS that asks before SQLite's own and makes it the default. For tests: without this call SQLite uses its own VFS.
/// Thread-safe with respect to SQLite; to be called before the first connection is opened.
void promise_index_install_faults(promise_index_fault_asker _Nonnull asker);

struct sqlite3;

/// Adds `name_may_contain(NAME, TEXT)` to a connection: 0 for a name that does not contain the text, which is folded, as
/// `NameMatcher` compares; 1 for one that does, and for one that is not plain ASCII. Returns SQLite's code.
int promise_index_add_functions(struct sqlite3 *_Nullable database);
