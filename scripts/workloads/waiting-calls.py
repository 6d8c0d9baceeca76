#!/usr/bin/env python3
"""Makes every system call that may need the provider, while the provider is silent, and times it.

usage: waiting-calls.py MOUNT --limit SECONDS

MOUNT has been prepared with: small/0 to small/9 (placeholders), large (a placeholder of 8 MiB or more) and folders
unlisted/0 to unlisted/9 that nobody has listed. No call may take longer than the limit, whatever it answers; a call that
fails must fail with an errno that means waiting: ETIMEDOUT, ENETDOWN or EINTR, or because a folder is listed after all and
not empty. Prints a line for each call.
"""
import argparse, errno, mmap, os, signal, sys, time

WAITING = {errno.ETIMEDOUT, errno.ENETDOWN, errno.EINTR, errno.ENOTEMPTY}


def read_small(top):
    with open(os.path.join(top, "small/0"), "rb") as file:
        file.read()


def write_small(top):
    descriptor = os.open(os.path.join(top, "small/1"), os.O_RDWR)
    try:
        os.pwrite(descriptor, b"x", 10)
    finally:
        os.close(descriptor)


def large(top, body, flags=os.O_RDONLY):
    descriptor = os.open(os.path.join(top, "large"), flags)
    try:
        body(descriptor)
    finally:
        os.close(descriptor)


def in_child(body):
    """A mapping that cannot be filled is a SIGBUS, so it happens elsewhere."""
    child = os.fork()
    if child == 0:
        body()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) != signal.SIGBUS:
        raise SystemExit(f"the child was ended by signal {os.WTERMSIG(status)}")


def touch_mapping(top):
    def body():
        with open(os.path.join(top, "large"), "rb") as file:
            mapping = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
            mapping[5 << 20]

    in_child(body)


def name(top, number):
    return os.path.join(top, "unlisted", str(number))


CALLS = {
    "open and read a small file": read_small,
    "open a small file for reading and writing, and write": write_small,
    "read a large file": lambda top: large(top, lambda file: os.pread(file, 4096, 4 << 20)),
    "write into a large file": lambda top: large(top, lambda file: os.pwrite(file, b"x", 100), os.O_WRONLY),
    "truncate a small file to half": lambda top: os.truncate(os.path.join(top, "small/2"), 100),
    "extend a small file": lambda top: os.truncate(os.path.join(top, "small/3"), 1 << 20),
    "allocate in a large file": lambda top: large(top, lambda file: os.posix_fallocate(file, 0, 1 << 20), os.O_WRONLY),
    "seek for data": lambda top: large(top, lambda file: os.lseek(file, 0, os.SEEK_DATA)),
    "copy a range": lambda top: large(top, lambda file: os.copy_file_range(file, file, 4096, 1 << 20, 5 << 20), os.O_RDWR),
    "fsync a large file": lambda top: large(top, os.fsync, os.O_WRONLY),
    "touch a mapping of a large file": touch_mapping,
    "list a folder": lambda top: os.listdir(name(top, 0)),
    "look a name up": lambda top: os.lstat(os.path.join(name(top, 1), "file")),
    "make a file in a folder": lambda top: os.close(os.open(os.path.join(name(top, 2), "new"), os.O_CREAT | os.O_WRONLY)),
    "make a folder in a folder": lambda top: os.mkdir(os.path.join(name(top, 3), "new")),
    "remove a folder": lambda top: os.rmdir(name(top, 4)),
    "rename a folder": lambda top: os.rename(name(top, 5), os.path.join(top, "renamed")),
    "rename over a folder": lambda top: os.rename(name(top, 6), name(top, 7)),
    "rename a small file": lambda top: os.rename(os.path.join(top, "small/4"), os.path.join(top, "small/four")),
    "remove a small file": lambda top: os.unlink(os.path.join(top, "small/5")),
    "link a small file": lambda top: os.link(os.path.join(top, "small/6"), os.path.join(top, "small/six")),
    "stat a small file": lambda top: os.stat(os.path.join(top, "small/7")),
    "change bits and times": lambda top: (os.chmod(os.path.join(top, "small/7"), 0o600), os.utime(os.path.join(top, "small/7"))),
    "ask for a state": lambda top: os.getxattr(os.path.join(top, "small/7"), "user.promisefs.state"),
    "pin a small file": lambda top: os.setxattr(os.path.join(top, "small/8"), "user.promisefs.pin", b"pinned"),
    "fetch a small file by attribute": lambda top: os.setxattr(
        os.path.join(top, "small/9"), "user.promisefs.state", b"current"),
    "ask for space": lambda top: os.statvfs(top),
    "make a file": lambda top: open(os.path.join(top, "made"), "w").write("x"),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mount")
    parser.add_argument("--limit", type=float, required=True)
    arguments = parser.parse_args()
    failed = False
    for title, call in CALLS.items():
        start, outcome = time.monotonic(), "done"
        try:
            call(arguments.mount)
        except OSError as problem:
            outcome = errno.errorcode.get(problem.errno, str(problem.errno))
            if problem.errno not in WAITING:
                failed, outcome = True, outcome + " (NOT A WAIT)"
        taken = time.monotonic() - start
        if taken > arguments.limit:
            failed, outcome = True, outcome + " (TOO LONG)"
        print(f"{taken:6.2f} s  {outcome:<12} {title}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
