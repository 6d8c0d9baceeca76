#!/usr/bin/env python3
"""What a program in the sandbox of `promisefs run --app` can try by paths, names, numbers and system calls to reach what it was
not given: each attempt must fail.

view-attacks.py SECRET < nothing: run inside, in /documents, where `container` is its own, `granted/write` and `granted/read` are
documents that it was given, `granted/folder` is a folder that it may read. SECRET is the path that the owner's mount has outside,
with a file `secret` in it. Prints a line for each attempt, and ends with 1 when one has succeeded.
"""
import ctypes
import errno
import fcntl
import os
import socket
import stat
import struct
import sys

OUTSIDE = sys.argv[1]
LIBC = ctypes.CDLL(None, use_errno=True)
ATTEMPTS = []
WORD = b"secret"


def attempt(function):
    ATTEMPTS.append((function.__name__, function))
    return function


def each(name, body, *values):
    for value in values:
        ATTEMPTS.append((f"{name} {value}", lambda value=value: body(value)))


def call(name, *arguments):
    ctypes.set_errno(0)
    result = getattr(LIBC, name)(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def look(path):
    with open(path, "rb") as file:
        if WORD in file.read(1000):
            return "it has read the secret"
    raise FileNotFoundError(errno.ENOENT, "something else")


def names(path):
    found = os.listdir(path)
    if any("secret" in name for name in found):
        return "it has seen the name"
    raise FileNotFoundError(errno.ENOENT, "nothing of it")


# Paths.
each("read", look, f"{OUTSIDE}/secret", "../secret", "../../secret", "container/../../secret", "granted/../../secret",
     "granted/folder/../secret", "granted/folder/../../secret", "/proc/self/root/secret", f"/proc/1/root{OUTSIDE}/secret",
     f"/proc/self/root{OUTSIDE}/secret", "/proc/self/cwd/../secret", f"/proc/thread-self/root{OUTSIDE}/secret",
     "granted/secret", "container/secret", "imports/../secret", ".promisefs-views/secret", ".promisefs/secret", "/etc/shadow",
     "/etc/promisefs/config.toml", "/var/lib/promisefs/secret", "/root/.config/promisefs/credentials.toml")
each("list", names, "..", OUTSIDE, "granted/folder/..", "container/..", "/proc/1/root", "/var", "/run", "/tmp", "/home")


@attempt
def a_link_to_the_secret():
    os.symlink(f"{OUTSIDE}/secret", "container/link")
    try:
        return look("container/link")
    finally:
        os.unlink("container/link")


@attempt
def a_relative_link_out_of_the_view():
    os.symlink("../../../../.." + OUTSIDE + "/secret", "container/link2")
    try:
        return look("container/link2")
    finally:
        os.unlink("container/link2")


@attempt
def a_descriptor_of_a_folder_and_what_is_above_it():
    folder = os.open("granted/folder", os.O_RDONLY)
    up = os.open("..", os.O_RDONLY, dir_fd=folder)
    return "it is there" if "secret" in os.listdir(up) else refuse()


def refuse():
    raise PermissionError(errno.EACCES, "not there")


@attempt
def the_numbers_of_other_nodes():
    for number in range(1, 60):
        handle = struct.pack("IiQI", 12, 0x81, number, 0)
        folder = os.open(".", os.O_RDONLY)
        buffer = ctypes.create_string_buffer(handle)
        try:
            found = call("open_by_handle_at", folder, buffer, os.O_RDONLY)
        except OSError as error:
            last = error
            continue
        return f"node {number} was opened: {os.fstat(found)}"
    raise last


# Read-only is read-only.
each("write to", lambda path: open(path, "r+b"), "granted/read", "granted/folder/inside")
each("append to", lambda path: open(path, "ab"), "granted/read", "granted/folder/inside")
each("truncate", lambda path: os.truncate(path, 0), "granted/read", "granted/folder/inside")
each("open with O_TRUNC", lambda path: os.open(path, os.O_RDONLY | os.O_TRUNC), "granted/read", "granted/folder/inside")
each("remove", os.unlink, "granted/read", "granted/folder/inside")
each("chmod", lambda path: os.chmod(path, 0o777), "granted/read", "granted/folder/inside", "granted/folder", ".")
each("set times of", lambda path: os.utime(path, (1, 1)), "granted/read", "granted/folder/inside", "granted/folder")
each("set an attribute of", lambda path: os.setxattr(path, "user.x", b"1"), "granted/read", "granted/folder/inside")
each("make in", lambda path: open(path + "/new", "xb"), "granted/folder", ".")
each("make a folder in", lambda path: os.mkdir(path + "/new"), "granted/folder", ".")
each("link in", lambda path: os.symlink("x", path + "/new"), "granted/folder", ".")
each("give away", lambda path: os.chown(path, 0, 0), "granted/read", "granted/write", "container", ".")


@attempt
def renaming_over_what_is_only_to_be_read():
    with open("granted/half", "w") as file:
        file.write("other")
    try:
        os.rename("granted/half", "granted/read")
    finally:
        os.unlink("granted/half")


@attempt
def exchanging_what_is_only_to_be_read():
    with open("granted/half", "w") as file:
        file.write("other")
    try:
        call("renameat2", -100, b"granted/half", -100, b"granted/read", 2)
    finally:
        os.unlink("granted/half")


@attempt
def renaming_what_is_only_to_be_read():
    os.rename("granted/read", "granted/read~")


@attempt
def a_read_only_document_by_its_descriptor():
    file = os.open("granted/read", os.O_RDONLY)
    with open(f"/proc/self/fd/{file}", "r+b") as again:
        again.write(b"x")


@attempt
def allocating_room_in_a_read_only_document():
    file = os.open("granted/read", os.O_RDONLY)
    os.posix_fallocate(file, 0, 100)


@attempt
def a_shared_mapping_of_a_read_only_document():
    import mmap
    file = os.open("granted/read", os.O_RDONLY)
    mmap.mmap(file, 1, mmap.MAP_SHARED, mmap.PROT_WRITE)


# What was given stays where it is, and ends with the grant.
each("move to the container", lambda path: os.rename(path, "container/taken"), "granted/write", "granted/folder",
     "granted/folder/inside", "granted/read")
each("a second name for", lambda path: os.link(path, "container/taken"), "granted/write", "granted/read",
     "granted/folder/inside")
each("remove what was given", os.rmdir, "granted/folder", "granted", "container", "imports")
each("rename", lambda path: os.rename(path, "other"), "granted", "container", "imports")


@attempt
def a_name_for_an_open_document():
    file = os.open("granted/read", os.O_RDONLY)
    call("linkat", file, b"", -100, b"container/taken", 0x1000)


@attempt
def a_name_by_the_descriptors_path():
    file = os.open("granted/write", os.O_RDWR)
    call("linkat", -100, f"/proc/self/fd/{file}".encode(), -100, b"container/taken", 0x400)


@attempt
def a_document_that_has_a_name_in_the_container_too():
    with open("container/kept", "w") as file:
        file.write("other")
    os.link("container/kept", "granted/half")
    try:
        os.rename("granted/half", "granted/write")
        return "the document is the container's file"
    finally:
        for path in "granted/half", "container/kept":
            if os.path.exists(path):
                os.unlink(path)


each("an attribute of the product on", lambda path: os.setxattr(path, "user.promisefs.pin", b"pinned"),
     "granted/write", "container", "granted/read")
each("another user's bits on", lambda path: os.setxattr(path, "trusted.x", b"1"), "granted/write", "container")


@attempt
def a_device():
    os.mknod("container/device", stat.S_IFCHR | 0o666, os.makedev(1, 1))


@attempt
def set_user_id():
    with open("container/program", "w") as file:
        file.write("#!/bin/sh\n")
    os.chmod("container/program", 0o4755)
    flags = os.statvfs("container").f_flag
    os.unlink("container/program")
    if flags & os.ST_NOSUID:
        refuse()


# The system around it.
each("mount", lambda kind: call("mount", b"x", b"/tmp", kind.encode(), 0, b""), "tmpfs", "proc", "fuse")
each("unmount", lambda path: call("umount2", path.encode(), 2), "/documents", "/proc", "/usr")
each("a namespace", lambda flag: call("unshare", flag), 0x10000000, 0x00020000, 0x20000000, 0x40000000)


@attempt
def a_bind_mount():
    call("mount", b"/", b"/tmp", b"", 4096, None)


@attempt
def another_root():
    call("chroot", b"/tmp")


@attempt
def the_machines_settings():
    with open("/proc/sys/kernel/hostname", "w") as file:
        file.write("x")


@attempt
def the_machines_core_pattern():
    with open("/proc/sys/kernel/core_pattern", "w") as file:
        file.write("|/bin/sh")


@attempt
def what_is_the_systems():
    open("/usr/bin/promisefs-new", "w")


each("a system call", lambda name: call("syscall", {"keyctl": 250, "add_key": 248, "request_key": 249, "bpf": 321,
     "perf_event_open": 298, "userfaultfd": 323, "io_uring_setup": 425}[name], 0, 0, 0, 0, 0)
     if os.uname().machine == "x86_64" else refuse(),
     "keyctl", "add_key", "request_key", "bpf", "perf_event_open", "userfaultfd", "io_uring_setup")


@attempt
def typing_into_the_terminal():
    terminal = os.open("/dev/tty", os.O_RDWR)
    fcntl.ioctl(terminal, 0x5412, b"x")


@attempt
def other_processes():
    others = [name for name in os.listdir("/proc") if name.isdigit() and int(name) > 50]
    return f"it sees {others}" if others else refuse()


@attempt
def signals_to_others():
    for process in range(1000, 1010):
        try:
            os.kill(process, 0)
            return f"process {process} is there"
        except ProcessLookupError:
            pass
    refuse()


@attempt
def another_capability():
    with open("/proc/self/status") as file:
        bits = [line.split()[1] for line in file if line.startswith(("CapEff", "CapPrm", "CapBnd", "CapAmb"))]
    return f"it has {bits}" if any(int(value, 16) for value in bits) else refuse()


def connect(address):
    line = socket.socket(socket.AF_UNIX)
    line.connect(address)
    return "somebody has answered"


@attempt
def the_owners_socket():
    connect(os.environ.get("OWNER_SOCKET", "/run/promisefs/owner.sock"))


@attempt
def abstract_sockets_of_the_machine():
    with open("/proc/net/unix") as file:
        found = [line.split()[-1] for line in file if "@" in line]
    return f"it sees {found}" if found else refuse()


@attempt
def the_network():
    socket.create_connection(("127.0.0.1", 22), 1)


@attempt
def a_packet_to_the_internet():
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 53))


failures = 0
for name, body in ATTEMPTS:
    try:
        result = body()
        outcome = f"SUCCEEDED {result if isinstance(result, str) else ''}"
        failures += 1
    except OSError as error:
        outcome = f"refused: {error.strerror or error}"
    print(f"{name}: {outcome}")
print(f"{len(ATTEMPTS)} attempts, {failures} succeeded")
sys.exit(1 if failures else 0)
