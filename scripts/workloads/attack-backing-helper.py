#!/usr/bin/env python3
"""attack-backing-helper.py HELPER HOLDER FOLDER: what promisefs-backing registers, and what it does not.

As root, on a file system that FOLDER is on. HOLDER is the process of a mount's promisefs-holder, whose FUSE device is used. Each
row of the table is an attack: a descriptor that is none of a content file, or a message that is none of the daemon's.
"""
import array
import ctypes
import errno
import fcntl
import os
import socket
import stat
import struct
import subprocess
import sys

helper, holder, top = sys.argv[1], int(sys.argv[2]), sys.argv[3]
store = top + "/content"
BEGIN, OPEN, CLOSE = 1, 2, 3
COUNT_MAX, PIECES = 16384, 16
failures, rows = [], 0


def device_of(process):
    library = ctypes.CDLL(None, use_errno=True)
    for name in os.listdir(f"/proc/{process}/fd"):
        if os.readlink(f"/proc/{process}/fd/{name}") == "/dev/fuse":
            handle = os.pidfd_open(process)
            return library.syscall(438, handle, int(name), 0)  # pidfd_getfd(2)
    sys.exit("the holder has no FUSE device")


class Helper:
    def __init__(self, kind=socket.SOCK_SEQPACKET):
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, kind)
        self.process = subprocess.Popen(
            ["/bin/bash", "-c", f'exec "$0" 3<&{theirs.fileno()}', helper], pass_fds=[theirs.fileno()],
            stderr=subprocess.DEVNULL)
        theirs.close()
        self.socket.settimeout(10)

    def send(self, message, descriptors=()):
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
        self.socket.sendmsg([message], control)
        return struct.unpack("i", self.socket.recv(64))[0]

    def ask(self, operation, descriptors=(), backing=0):
        return self.send(struct.pack("Ii", operation, backing), descriptors)

    def begin(self, device, folder=store):
        place = os.open(folder, os.O_RDONLY)
        try:
            return self.ask(BEGIN, [device, place])
        finally:
            os.close(place)

    def end(self):
        self.socket.close()
        return self.process.wait(10)


def expect(what, result, wanted):
    global rows
    rows += 1
    if not (result > 0 if wanted == "registered" else result == -wanted if wanted else result == 0):
        failures.append(f"{what}: {result}, not {wanted}")


def file(path, flags=os.O_RDWR, mode=0o600):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, mode))
    return os.open(path, flags)


def with_attribute(path, flag):
    """FS_IOC_SETFLAGS; None where the file system has no such thing."""
    descriptor = file(path)
    try:
        fcntl.ioctl(descriptor, 0x40086602, struct.pack("l", flag))
    except OSError:
        return None
    return descriptor


def run(*command):
    subprocess.run(command, check=True)


def descriptors_of_no_content_file():
    part = store + "/00"
    yield "open for reading only", file(part + "/1.1", os.O_RDONLY), errno.EACCES
    yield "open for writing only", file(part + "/1.2", os.O_WRONLY), errno.EACCES
    yield "open for appending", file(part + "/1.3", os.O_RDWR | os.O_APPEND), errno.EACCES
    yield "not open at all (O_PATH)", file(part + "/1.4", os.O_PATH), errno.EACCES
    for name, flag in (("immutable", 0x10), ("append-only", 0x20)):
        found = with_attribute(f"{part}/{name}", flag)
        if found is not None:
            yield name, found, errno.EPERM
            fcntl.ioctl(found, 0x40086602, struct.pack("l", 0))
    yield "a folder", os.open(part, os.O_RDONLY), errno.EACCES
    os.mkfifo(part + "/pipe", 0o600)
    yield "a pipe", os.open(part + "/pipe", os.O_RDWR), errno.EACCES
    os.mknod(part + "/null", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    yield "a device", os.open(part + "/null", os.O_RDWR), errno.EACCES
    yield "a socket", socket.socket(socket.AF_UNIX).detach(), errno.EACCES
    outside = file(top + "/outside")
    yield "a file outside", outside, errno.EACCES
    yield "a file of a folder whose name begins as the store's", file(top + "/content-2/00/1.1"), errno.EACCES
    os.symlink(top + "/outside", part + "/link")
    yield "a link that leads outside", os.open(part + "/link", os.O_RDWR), errno.EACCES
    os.link(top + "/outside", part + "/second")
    yield "a second name of a file outside", os.open(part + "/second", os.O_RDWR), errno.EACCES
    os.unlink(part + "/second")
    moved = file(part + "/moved")
    os.rename(part + "/moved", top + "/moved")
    yield "a file that has left the store", moved, errno.EACCES
    gone = file(part + "/gone")
    os.unlink(part + "/gone")
    yield "a file without a name", gone, errno.EACCES
    file(part + "/gone (deleted)")
    yield "a file without a name, beside one of that name", gone, errno.EACCES
    replaced = file(part + "/replaced")
    os.rename(part + "/replaced", top + "/replaced")
    file(part + "/replaced")
    yield "a file whose name another one has", replaced, errno.EACCES
    yield "memory", os.memfd_create("content"), errno.EACCES
    theirs = file(part + "/theirs")
    os.fchown(theirs, 4711, 4711)
    yield "somebody else's file", theirs, errno.EACCES
    identity = file(part + "/identity")
    os.fchmod(identity, 0o4700)
    yield "a program with another's rights", identity, errno.EACCES
    os.makedirs(store + "/mounted", exist_ok=True)
    run("mount", "-t", "tmpfs", "none", store + "/mounted")
    yield "a file of another file system in the store", file(store + "/mounted/1.1"), errno.EACCES
    run("umount", "-l", store + "/mounted")
    os.makedirs(top + "/bound", exist_ok=True)
    run("mount", "--bind", top + "/bound", store + "/mounted")
    yield "a file of a folder that is bound into the store", file(store + "/mounted/1.1"), errno.EACCES
    run("umount", "-l", store + "/mounted")
    yield "the helper itself", os.open(helper, os.O_RDONLY), errno.EACCES


def messages_of_no_daemon(device, good):
    fresh = Helper()
    expect("a file before the beginning", fresh.ask(OPEN, [good]), errno.EINVAL)
    expect("taking back before the beginning", fresh.ask(CLOSE, backing=1), errno.EINVAL)
    null = os.open("/dev/null", os.O_RDWR)
    expect("a device that is none", fresh.begin(null), errno.EINVAL)
    expect("a store that is a file", fresh.ask(BEGIN, [device, good]), errno.ENOTDIR)
    expect("no store", fresh.ask(BEGIN, [device]), errno.EINVAL)
    for name, mode, owner in (("of all", 0o777, 0), ("of a group", 0o770, 0), ("of somebody else", 0o700, 4711)):
        folder = f"{top}/store {name}"
        os.mkdir(folder)
        os.chmod(folder, mode)
        os.chown(folder, owner, -1)
        expect("a store " + name, fresh.begin(device, folder), errno.EACCES)
    expect("the store itself", fresh.begin(device), 0)
    expect("a second beginning", fresh.begin(device), errno.EINVAL)
    expect("no file", fresh.ask(OPEN), errno.EINVAL)
    expect("two files", fresh.ask(OPEN, [good, good]), errno.EINVAL)
    expect("a hundred files", fresh.ask(OPEN, [good] * 100), errno.EINVAL)
    expect("a short message", fresh.send(b"\2\0\0", [good]), errno.EINVAL)
    expect("a long message", fresh.send(struct.pack("Ii", OPEN, 0) + b"\0" * 56, [good]), errno.EINVAL)
    expect("no such operation", fresh.ask(99, [good]), errno.EINVAL)
    expect("taking back what nobody has", fresh.ask(CLOSE, backing=2**31 - 1), errno.ENOENT)
    expect("taking back a negative one", fresh.ask(CLOSE, backing=-1), errno.EINVAL)
    os.chmod(store, 0o770)
    expect("a store that was opened to others meanwhile", fresh.ask(OPEN, [good]), errno.EACCES)
    os.chmod(store, 0o700)
    expect("a content file after all that", fresh.ask(OPEN, [good]), "registered")
    expect("its end", fresh.end(), 0)
    expect("another kind of socket", -Helper(socket.SOCK_STREAM).process.wait(10), 64)


def all_together(device, good):
    """Who starts many helpers has no more than who starts one, whoever takes back what."""
    first, second = Helper(), Helper()
    first.begin(device), second.begin(device)
    ids, theirs = [], []
    expect("the second's first", (theirs := [second.ask(OPEN, [good])])[0], "registered")
    while (result := first.ask(OPEN, [good])) > 0:
        ids.append(result)
    expect("too many", result, errno.ENFILE)
    while (result := second.ask(OPEN, [good])) > 0:
        theirs.append(result)
    expect("too many of two", result, errno.ENFILE)
    expect("as many as one may have", COUNT_MAX - len(ids) - len(theirs), 0)
    expect("the second takes back what the first has", second.ask(CLOSE, backing=ids.pop()), 0)
    expect("which is no room for the second", second.ask(OPEN, [good]), errno.ENFILE)
    third = Helper()
    third.begin(device)
    expect("too many of three", third.ask(OPEN, [good]), errno.ENFILE)
    for backing in ids:
        first.ask(CLOSE, backing=backing)
    expect("room again", third.ask(OPEN, [good]), "registered")
    for backing in theirs:
        second.ask(CLOSE, backing=backing)
    for each in (first, second, third):
        each.end()


def main():
    os.makedirs(store + "/00")
    os.chmod(store, 0o700)
    device = device_of(holder)
    good = file(store + "/00/A.1")
    daemon = Helper()
    expect("the beginning", daemon.begin(device), 0)
    expect("a content file", daemon.ask(OPEN, [good]), "registered")
    for what, descriptor, wanted in descriptors_of_no_content_file():
        expect(what, daemon.ask(OPEN, [descriptor]), wanted)
    expect("a content file after all that", daemon.ask(OPEN, [good]), "registered")
    expect("its end", daemon.end(), 0)
    messages_of_no_daemon(device, good)
    all_together(device, good)
    print(f"{rows} rows")
    if failures:
        sys.exit("\n".join(failures))


main()
