#!/usr/bin/env python3
"""What calls do to the bytes of a file: space, holes, copies, mappings, files without a name, open files whose name goes,
and special files. Run in a mount and beside it as root, the outputs must be equal.

usage: posix-content.py FOLDER [STEP…]: all of them, or these, some of which need no root
"""
import ctypes, fcntl, mmap, os, socket, sys, threading

from posix_calls import (EXCHANGE, KEEP_SIZE, NOREPLACE, PUNCH, WHITEOUT, ZERO, as_user, attempt,
                         digest, facts, fallocate, get, link_nameless, put, renameat2, show, syncfs)

os.chdir(sys.argv[1])
BLOCK = 4096
PATTERN = bytes(range(256)) * 16 * 16


def clean():
    os.system("rm -rf ./*")


def every_way_to_allocate():
    calls = {
        "allocate": (0, 3 * BLOCK, 20 * BLOCK), "keeping the size": (KEEP_SIZE, 3 * BLOCK, 20 * BLOCK),
        "punch": (PUNCH | KEEP_SIZE, BLOCK, 2 * BLOCK), "punch between blocks": (PUNCH | KEEP_SIZE, 1000, 9000),
        "punch beyond the end": (PUNCH | KEEP_SIZE, 15 * BLOCK, 9 * BLOCK), "punch alone": (PUNCH, 0, BLOCK),
        "zero": (ZERO, 2 * BLOCK + 7, BLOCK), "zero beyond the end": (ZERO, 15 * BLOCK, 4 * BLOCK),
        "zero keeping the size": (ZERO | KEEP_SIZE, 15 * BLOCK, 4 * BLOCK),
        "nothing": (0, 0, 0), "before the start": (0, -1, 10), "too far": (0, 1 << 62, 1 << 62), "unknown mode": (1 << 20, 0, 1),
    }
    # Collapsing and inserting are left out: the kernel refuses them in every FUSE file system.
    for call, (mode, offset, count) in calls.items():
        put("space", PATTERN)
        descriptor = os.open("space", os.O_RDWR)
        memory = mmap.mmap(descriptor, len(PATTERN))
        touched = memory[3 * BLOCK]
        attempt(call, lambda: fallocate(descriptor, mode, offset, count))
        show("size while open", os.stat("space").st_size)
        show("mapping", digest(bytes(memory[:min(os.fstat(descriptor).st_size, len(PATTERN))])))
        show("read", digest(os.pread(descriptor, 1 << 20, 0)))
        memory.close()
        os.close(descriptor)
        show("read again", digest(get("space")))
    descriptor = os.open("space", os.O_RDONLY)
    attempt("of a file open for reading", lambda: fallocate(descriptor, 0, 0, 1))
    os.close(descriptor)


def holes():
    clean()
    descriptor = os.open("holes", os.O_RDWR | os.O_CREAT)
    for start in (0, 40, 41, 90):
        os.pwrite(descriptor, b"x" * BLOCK, start * BLOCK)
    os.ftruncate(descriptor, 120 * BLOCK)
    for place in (0, 1, BLOCK, 40 * BLOCK, 41 * BLOCK + 5, 42 * BLOCK, 91 * BLOCK, 120 * BLOCK - 1, 120 * BLOCK, 1 << 40, -1):
        attempt(f"data from {place}", lambda: os.lseek(descriptor, place, os.SEEK_DATA))
        attempt(f"hole from {place}", lambda: os.lseek(descriptor, place, os.SEEK_HOLE))
    attempt("unknown", lambda: os.lseek(descriptor, 0, 9))
    show("blocks", os.fstat(descriptor).st_blocks)
    os.close(descriptor)


def copies():
    clean()
    put("source", PATTERN)
    os.link("source", "again")

    def copy(source, target, start, place, count):
        one, other = os.open(source, os.O_RDONLY), os.open(target, os.O_RDWR | os.O_CREAT)
        try:
            return os.copy_file_range(one, other, count, start, place)
        finally:
            os.close(one)
            os.close(other)
    attempt("whole", lambda: copy("source", "target", 0, 0, 1 << 30))
    attempt("a piece", lambda: copy("source", "target", 100, 70_000, 5000))
    attempt("from beyond the end", lambda: copy("source", "target", 1 << 20, 0, 10))
    attempt("to far beyond the end", lambda: copy("source", "target", 10, 1 << 20, 10))
    attempt("within one file", lambda: copy("source", "again", 0, 32_768, 1000))
    attempt("overlapping", lambda: copy("source", "again", 0, 10, 1000))
    attempt("to a folder", lambda: copy("source", ".", 0, 0, 10))
    show("source", digest(get("source")))
    show("target", digest(get("target")))


def mappings():
    clean()
    put("mapped", PATTERN)
    descriptor = os.open("mapped", os.O_RDWR)
    shared = mmap.mmap(descriptor, len(PATTERN))
    private = mmap.mmap(descriptor, len(PATTERN), flags=mmap.MAP_PRIVATE)
    private[0:4] = b"mine"
    shared[10:14] = b"ours"
    os.pwrite(descriptor, b"WRITE", 20)
    with open("mapped", "rb") as another:
        show("another open", another.read(30))
    show("shared", bytes(shared[:30]))
    show("private", bytes(private[:30]))
    os.truncate("mapped", 5000)
    os.truncate("mapped", len(PATTERN))
    show("after cutting and growing", digest(bytes(shared)))
    os.unlink("mapped")
    shared[100:103] = b"end"
    show("without a name", digest(os.pread(descriptor, 1 << 20, 0)))
    shared.close()
    private.close()
    os.close(descriptor)
    # A mapping outlives the descriptor that it was made of.
    descriptor = os.open("second", os.O_RDWR | os.O_CREAT)
    os.ftruncate(descriptor, 3 * BLOCK)
    shared = mmap.mmap(descriptor, 3 * BLOCK)
    os.close(descriptor)
    shared[5000:5005] = b"later"
    shared.flush()
    show("written without a descriptor", digest(get("second")))
    shared[9000:9003] = b"end"
    shared.close()
    show("and closed", digest(get("second")))


def files_without_a_name():
    clean()
    os.mkdir("place")
    os.chmod("place", 0o2775)
    os.chown("place", 0, 2000)
    descriptor = os.open("place", os.O_TMPFILE | os.O_RDWR, 0o640)
    show("made", (os.fstat(descriptor).st_nlink, oct(os.fstat(descriptor).st_mode), os.fstat(descriptor).st_gid))
    os.write(descriptor, PATTERN)
    show("not listed", os.listdir("place"))
    attempt("named", lambda: link_nameless(descriptor, "place/named"))
    attempt("named twice", lambda: link_nameless(descriptor, "place/twice"))
    attempt("taken", lambda: link_nameless(descriptor, "place/named"))
    show("links", os.fstat(descriptor).st_nlink)
    os.write(descriptor, b"more")
    os.close(descriptor)
    show("named", (facts("place/named"), digest(get("place/named"))))
    os.unlink("place/named")
    show("twice", (facts("place/twice"), digest(get("place/twice"))))
    os.unlink("place/twice")
    descriptor = os.open("place", os.O_TMPFILE | os.O_WRONLY | os.O_EXCL, 0o640)
    attempt("exclusive", lambda: link_nameless(descriptor, "place/named"))
    os.close(descriptor)
    descriptor = os.open("place", os.O_TMPFILE | os.O_RDWR, 0o600)
    os.write(descriptor, b"forgotten")
    os.close(descriptor)
    attempt("for reading", lambda: os.close(os.open("place", os.O_TMPFILE | os.O_RDONLY, 0o600)))
    attempt("in a file", lambda: put("file") or os.close(os.open("file", os.O_TMPFILE | os.O_RDWR, 0o600)))
    os.chmod("place", 0o755)
    attempt("by another user", lambda: as_user(
        1000, 1000, [], lambda: os.close(os.open("place", os.O_TMPFILE | os.O_RDWR, 0o600))))
    show("left", os.listdir("place"))


def open_files_whose_name_goes():
    clean()
    put("doomed", b"still here")
    descriptor = os.open("doomed", os.O_RDWR)
    os.unlink("doomed")
    attempt("no link to it", lambda: link_nameless(descriptor, "back"))
    os.fchmod(descriptor, 0o600)
    os.fchown(descriptor, 7, 8)
    os.ftruncate(descriptor, 5)
    os.utime(descriptor, ns=(1, 2))
    status = os.fstat(descriptor)
    show("facts", (status.st_size, oct(status.st_mode), status.st_uid, status.st_nlink, status.st_mtime_ns))
    attempt("opened again", lambda: get(f"/proc/self/fd/{descriptor}"))
    os.setxattr(descriptor, "user.x", b"y")
    show("attribute", os.getxattr(descriptor, "user.x"))
    os.fsync(descriptor)
    os.close(descriptor)
    os.mkdir("folder")
    descriptor = os.open("folder", os.O_RDONLY)
    os.rmdir("folder")
    show("removed folder", (os.fstat(descriptor).st_nlink, os.listdir(descriptor)))
    attempt("create in it", lambda: os.open("new", os.O_CREAT | os.O_WRONLY, dir_fd=descriptor))
    attempt("mkdir in it", lambda: os.mkdir("new", dir_fd=descriptor))
    os.close(descriptor)
    put("one", b"one")
    put("two", b"two")
    descriptor = os.open("two", os.O_RDONLY)
    os.rename("one", "two")
    show("renamed over while open", (os.read(descriptor, 9), get("two"), os.fstat(descriptor).st_nlink))
    os.close(descriptor)


def rename_flags():
    clean()
    put("file", b"file")
    os.mkdir("folder")
    put("folder/inside", b"inside")
    os.symlink("target", "link")
    attempt("file and folder", lambda: renameat2("file", "folder", EXCHANGE))
    show("then", (get("folder"), os.listdir("file")))
    attempt("folder and link", lambda: renameat2("file", "link", EXCHANGE))
    show("then", (os.readlink("file"), os.listdir("link")))
    attempt("with what is in it", lambda: renameat2("link", "link/inside", EXCHANGE))
    attempt("with what is not there", lambda: renameat2("link", "missing", EXCHANGE))
    os.mkdir("other")
    put("other/below", b"below")
    attempt("two folders", lambda: renameat2("link", "other", EXCHANGE))
    show("then", (os.listdir("link"), os.listdir("other")))
    attempt("from folder to folder", lambda: renameat2("link/below", "other", EXCHANGE))
    show("then", (os.listdir("link"), get("other"), os.listdir("link/below"), facts("."), facts("link")))
    attempt("not over another", lambda: renameat2("folder", "other", NOREPLACE))
    attempt("not over nothing", lambda: renameat2("folder", "moved", NOREPLACE))
    attempt("leaving a whiteout", lambda: renameat2("moved", "away", WHITEOUT))
    show("whiteout", (facts("moved"), get("away")))
    attempt("whiteout and over another", lambda: renameat2("away", "other", WHITEOUT))
    show("then", (facts("away"), get("other")))
    attempt("exchange and not over", lambda: renameat2("link", "other", EXCHANGE | NOREPLACE))
    attempt("exchange and whiteout", lambda: renameat2("link", "other", EXCHANGE | WHITEOUT))
    attempt("unknown flag", lambda: renameat2("link", "other", 1 << 10))
    show("names", sorted(os.listdir()))


def special_files():
    clean()
    os.mkfifo("fifo")
    reader = threading.Thread(target=lambda: show("through the fifo", get("fifo")))
    reader.start()
    put("fifo", b"through")
    reader.join()
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind("socket")
        server.listen()
        client.connect("socket")
        show("socket", facts("socket"))
    os.mknod("null", 0o020666, os.makedev(1, 3))
    show("device", facts("null"))
    attempt("write to it", lambda: put("null", b"gone"))
    attempt("setxattr of a fifo", lambda: os.setxattr("fifo", "user.x", b"y"))
    attempt("truncate a fifo", lambda: os.truncate("fifo", 0))
    os.rename("fifo", "moved")
    os.link("moved", "linked")
    show("renamed and linked", facts("linked"))


def locks_and_sync():
    clean()
    put("it", b"1234")
    with open("it", "r+b") as one:
        fcntl.lockf(one, fcntl.LOCK_EX, 10, 0)

        def blocked():
            with open("it", "r+b") as other:
                fcntl.lockf(other, fcntl.LOCK_EX | fcntl.LOCK_NB, 5, 3)
        show("record lock of another process", as_user(0, 0, [], blocked))
        show("beside it", as_user(0, 0, [], lambda: fcntl.lockf(open("it", "r+b"), fcntl.LOCK_EX | fcntl.LOCK_NB, 5, 20)))
        attempt("syncfs", lambda: syncfs(one.fileno()))
        attempt("fsync", lambda: os.fsync(one.fileno()))
        attempt("fdatasync", lambda: os.fdatasync(one.fileno()))
        attempt("sync_file_range", lambda: ctypes.CDLL(None).sync_file_range(one.fileno(), 0, 0, 7))
    folder = os.open(".", os.O_RDONLY)
    attempt("fsync of a folder", lambda: os.fsync(folder))
    attempt("write to a folder", lambda: os.write(folder, b"x"))
    attempt("read a folder", lambda: os.read(folder, 10))
    os.close(folder)


def writing_in_every_way():
    clean()
    for flags in (0, os.O_APPEND, os.O_DSYNC, os.O_SYNC, os.O_APPEND | os.O_SYNC):
        descriptor = os.open("it", os.O_RDWR | os.O_CREAT | flags)
        os.write(descriptor, b"abc")
        os.pwrite(descriptor, b"Z", 1)
        os.writev(descriptor, [b"1", b"22", b"333"])
        os.lseek(descriptor, 5000, os.SEEK_SET)
        os.write(descriptor, b"far")
        show(f"flags {flags:o}", (digest(get("it")), os.lseek(descriptor, 0, os.SEEK_CUR)))
        os.close(descriptor)
    attempt("read what is open for writing", lambda: os.read(os.open("it", os.O_WRONLY), 1))
    attempt("write what is open for reading", lambda: os.write(os.open("it", os.O_RDONLY), b"x"))
    attempt("beyond what fits", lambda: os.truncate("it", 1 << 62))
    attempt("less than nothing", lambda: os.truncate("it", -1))
    descriptor = os.open("it", os.O_RDWR)
    attempt("at the largest offset", lambda: os.pwrite(descriptor, b"x", (1 << 63) - 2))
    os.close(descriptor)


for step in (every_way_to_allocate, holes, copies, mappings, files_without_a_name, open_files_whose_name_goes, rename_flags,
             special_files, locks_and_sync, writing_in_every_way):
    if sys.argv[2:] and step.__name__ not in sys.argv[2:]:
        continue
    print(f"-- {step.__name__}")
    step()
clean()
