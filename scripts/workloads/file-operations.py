#!/usr/bin/env python3
"""Does what programs do to files in a folder and prints what the system answered, without anything that differs
from file system to file system by right. Run in a mount and beside it, the outputs must be equal.

usage: file-operations.py FOLDER
"""
import errno, fcntl, mmap, os, sys

os.chdir(sys.argv[1])


def show(label, value):
    print(f"{label}: {value}")


def attempt(label, action):
    try:
        result = action()
        show(label, "done" if result is None else result)
    except OSError as problem:
        show(label, errno.errorcode[problem.errno])


def text(path):
    with open(path, "rb") as file:
        data = file.read()
    return f"{len(data)} bytes, head {data[:12]!r}, sum {sum(data) % 65521}"


def put(path, data):
    with open(path, "wb") as file:
        file.write(data)


def sizes_of_open_files():
    descriptor = os.open("grows", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o640)
    os.write(descriptor, b"a" * 5000)
    show("size seen while open", (os.fstat(descriptor).st_size, os.stat("grows").st_size))
    os.pwrite(descriptor, b"z", 1_000_000)
    show("size after a write past the end", os.stat("grows").st_size)
    os.ftruncate(descriptor, 123)
    show("size after truncation", os.stat("grows").st_size)
    os.close(descriptor)
    show("content", text("grows"))
    show("mode", oct(os.stat("grows").st_mode))


def truncating_and_appending():
    put("again", b"first version, long " * 1000)
    put("again", b"second")
    show("O_TRUNC", text("again"))
    one = os.open("again", os.O_WRONLY | os.O_APPEND)
    two = os.open("again", os.O_WRONLY | os.O_APPEND)
    for index in range(200):
        os.write(one if index % 2 else two, b"%03d," % index)
    show("two appenders", text("again"))
    os.close(one)
    show("size with one still open", os.stat("again").st_size)
    os.close(two)
    reader = os.open("again", os.O_RDONLY)
    put("again", b"third")
    show("a reader from before", os.read(reader, 100))
    os.close(reader)
    attempt("truncate by path", lambda: os.truncate("again", 2))
    show("then", text("again"))


def mapped_memory():
    put("mapped", b"\0" * 300_000)
    with open("mapped", "r+b") as file:
        memory = mmap.mmap(file.fileno(), 300_000)
        memory[100:105] = b"hello"
        memory[299_995:] = b"world"
        show("read beside the mapping", os.pread(file.fileno(), 5, 100))
        os.pwrite(file.fileno(), b"WRITE", 200_000)
        show("mapping beside the write", bytes(memory[200_000:200_005]))
        memory.flush()
        memory.close()
    show("mapped", text("mapped"))


def overwriting():
    block = bytes(range(256)) * 256
    put("blocks", block * 64)
    descriptor = os.open("blocks", os.O_RDWR)
    for index in range(300):
        os.pwrite(descriptor, bytes([index % 256]) * 777, (index * 7919 * 13) % (64 * 65536))
    os.fsync(descriptor)
    os.posix_fallocate(descriptor, 0, 5_000_000)
    show("after posix_fallocate", os.fstat(descriptor).st_size)
    os.close(descriptor)
    show("blocks", text("blocks"))
    source, target = os.open("blocks", os.O_RDONLY), os.open("copied", os.O_RDWR | os.O_CREAT, 0o600)
    done = 0
    while done < 5_000_000:
        done += os.copy_file_range(source, target, 5_000_000 - done)
    os.close(source)
    os.close(target)
    show("copied", text("copied"))


def names_and_links():
    put("one", b"1")
    attempt("link", lambda: os.link("one", "two"))
    show("links", os.stat("one").st_nlink)
    show("same", os.path.samefile("one", "two"))
    attempt("rename onto its own other name", lambda: os.rename("one", "two"))
    show("both stay", sorted(name for name in os.listdir() if name in ("one", "two")))
    os.mkdir("folder")
    attempt("mkdir again", lambda: os.mkdir("folder"))
    attempt("link to a folder", lambda: os.link("folder", "folder2"))
    attempt("unlink a folder", lambda: os.unlink("folder"))
    attempt("rmdir a file", lambda: os.rmdir("one"))
    attempt("file over folder", lambda: os.rename("one", "folder"))
    attempt("folder over file", lambda: os.rename("folder", "one"))
    attempt("into itself", lambda: os.rename("folder", "folder/below"))
    put("folder/inside", b"x")
    attempt("rmdir with content", lambda: os.rmdir("folder"))
    attempt("a name of 255 bytes", lambda: put("n" * 255, b""))
    attempt("a name of 256 bytes", lambda: put("n" * 256, b""))
    attempt("path through a file", lambda: os.stat("one/below"))
    attempt("missing", lambda: os.stat("missing"))
    os.symlink("loop", "loop")
    attempt("loop", lambda: os.stat("loop"))
    os.symlink(b"\xff\xfe no text", "bytes")
    show("target", os.readlink(b"bytes"))
    attempt("exclusive", lambda: os.close(os.open("one", os.O_CREAT | os.O_EXCL | os.O_WRONLY)))
    attempt("folder as file", lambda: os.open("folder", os.O_WRONLY))
    attempt("fifo", lambda: os.mkfifo("fifo"))


def unlinked_but_open():
    put("doomed", b"still here")
    descriptor = os.open("doomed", os.O_RDWR)
    os.unlink("doomed")
    os.pwrite(descriptor, b"STILL", 0)
    show("unlinked", os.pread(descriptor, 100, 0))
    show("links left", os.fstat(descriptor).st_nlink)
    put("doomed", b"another")
    show("the new one", text("doomed"))
    os.close(descriptor)
    put("from", b"moved")
    put("onto", b"replaced")
    descriptor = os.open("onto", os.O_RDONLY)
    os.rename("from", "onto")
    show("replaced but open", os.read(descriptor, 100))
    os.close(descriptor)
    show("onto", text("onto"))


def metadata():
    put("meta", b"m")
    os.chmod("meta", 0o4711)
    show("mode", oct(os.stat("meta").st_mode))
    put_descriptor = os.open("meta", os.O_WRONLY)
    os.close(put_descriptor)
    os.utime("meta", ns=(1_234_567_890_123_456_789, 987_654_321_987_654_321))
    show("times", (os.stat("meta").st_atime_ns, os.stat("meta").st_mtime_ns))
    attempt("setxattr", lambda: os.setxattr("meta", "user.note", b"\0bytes\xff"))
    attempt("getxattr", lambda: os.getxattr("meta", "user.note"))
    show("listxattr", os.listxattr("meta"))
    attempt("create again", lambda: os.setxattr("meta", "user.note", b"", os.XATTR_CREATE))
    attempt("removexattr", lambda: os.removexattr("meta", "user.note"))
    attempt("getxattr of none", lambda: os.getxattr("meta", "user.note"))
    with open("meta", "r+b") as one, open("meta", "r+b") as two:
        fcntl.flock(one, fcntl.LOCK_EX)
        attempt("flock twice", lambda: fcntl.flock(two, fcntl.LOCK_EX | fcntl.LOCK_NB))
        fcntl.flock(one, fcntl.LOCK_UN)
        attempt("flock free", lambda: fcntl.flock(two, fcntl.LOCK_EX | fcntl.LOCK_NB))
        attempt("fcntl lock", lambda: fcntl.lockf(one, fcntl.LOCK_EX | fcntl.LOCK_NB) or "done")


for step in (sizes_of_open_files, truncating_and_appending, mapped_memory, overwriting, names_and_links,
             unlinked_but_open, metadata):
    print(f"-- {step.__name__}")
    step()
