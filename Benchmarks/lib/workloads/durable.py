"""Work that waits for the disk: fsync, SQLite; and shared mappings."""
import mmap as mapping
import os, sqlite3

from ..plan import Row, Stage, Step
from .common import Wrong, now, scaled

FSYNC = Row(
    "fsync", "ops/s", True, "200 times: append 4 KiB, fsync",
    "The disk's flush of the content file, then the daemon's own fsync of the index that names it.")
WAL = Row(
    "sqlite-wal", "txn/s", True, "2,000 rows in 200 transactions, journal_mode=WAL, synchronous=FULL",
    "An fsync for each transaction, see `fsync`; SQLite's shared memory is a mapping.")
DELETE = Row(
    "sqlite-delete", "txn/s", True, "2,000 rows in 200 transactions, journal_mode=DELETE, synchronous=FULL",
    "Several fsyncs, and a journal that is made and deleted, for each transaction.")
MAPPED = Row(
    "mmap", "MB/s", True, "shared mmap write of 64 MiB and msync, then checked by read",
    "Page faults and the disk; with passthrough the mapping is of the content file.")


def fsync(folder, configuration):
    data, count = os.urandom(4096), scaled(200, configuration, 20)
    path = folder + "/log"
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY, 0o644)
    start = now()
    for _ in range(count):
        os.write(descriptor, data)
        os.fsync(descriptor)
    elapsed = now() - start
    os.close(descriptor)
    if os.stat(path).st_size != count * 4096:
        raise Wrong("the size is wrong")
    return count / elapsed


def transactions(folder, configuration, mode):
    path, count = f"{folder}/{mode}.sqlite", scaled(200, configuration, 20)
    database = sqlite3.connect(path, isolation_level=None)
    got = database.execute(f"pragma journal_mode={mode}").fetchone()[0]
    if got != mode:
        raise Wrong(f"journal_mode is {got}, {mode} was asked for")
    database.execute("pragma synchronous=full")
    database.execute("create table entry(id integer primary key, name text, body blob)")
    body = os.urandom(200)
    start = now()
    for number in range(count):
        database.execute("begin")
        for row in range(10):
            database.execute("insert into entry(name, body) values(?, ?)", (f"row {number} {row}", body))
        database.execute("commit")
    elapsed = now() - start
    database.close()
    database = sqlite3.connect(path)
    rows = database.execute("select count(*) from entry").fetchone()[0]
    if rows != count * 10 or database.execute("pragma integrity_check").fetchone()[0] != "ok":
        raise Wrong("the database is wrong after it was opened again")
    database.close()
    return count / elapsed


def sqlite_wal(folder, configuration):
    return transactions(folder, configuration, "wal")


def sqlite_delete(folder, configuration):
    return transactions(folder, configuration, "delete")


def mmap(folder, configuration):
    size, block = scaled(64, configuration) << 20, os.urandom(1 << 20)
    path = folder + "/mapped"
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o644)
    os.ftruncate(descriptor, size)
    start = now()
    memory = mapping.mmap(descriptor, size, mapping.MAP_SHARED, mapping.PROT_READ | mapping.PROT_WRITE)
    for offset in range(0, size, 1 << 20):
        memory[offset : offset + (1 << 20)] = block
    memory.flush()
    elapsed = now() - start
    memory.close()
    os.close(descriptor)
    with open(path, "rb") as file:
        for _ in range(size >> 20):
            if file.read(1 << 20) != block:
                raise Wrong("the content differs after msync")
    return size / 1e6 / elapsed


STAGES = (
    Stage("fsync", "durable", (Step("fsync", FSYNC, leaves_uploads=True),)),
    Stage("sqlite", "durable", (Step("sqlite-wal", WAL, leaves_uploads=True),
                                Step("sqlite-delete", DELETE, leaves_uploads=True))),
    Stage("mmap", "durable", (Step("mmap", MAPPED, leaves_uploads=True),)),
)
