#!/usr/bin/env python3
"""Who owns what is made, which bits and times a call changes, and what access control lists do. Run in a mount and beside
it as root, the outputs must be equal.

usage: posix-ownership.py FOLDER [STEP…]: all of them, or these, some of which need no root
"""
import mmap, os, struct, sys, time

from posix_calls import (PUNCH, KEEP_SIZE, answer, as_user, attempt, check, facts, fallocate, libc, put, renameat2, show,
                         AT_FDCWD, NOREPLACE)

os.chdir(sys.argv[1])
os.chmod(".", 0o777)
USER, GROUP, OTHER = 1000, 1001, 1002
KINDS = {
    "file": lambda path: put(path, b"x"),
    "folder": os.mkdir,
    "fifo": os.mkfifo,
    "block": lambda path: os.mknod(path, 0o060644, os.makedev(7, 300)),
    "link": lambda path: os.symlink("nowhere", path),
}


def clean():
    os.system("rm -rf ./*")


def owners_of_what_is_made():
    for folder_mode in (0o777, 0o2777, 0o3777):
        for umask in (0, 0o022, 0o077):
            clean()
            os.mkdir("place")
            os.chown("place", 0, 2000)
            os.chmod("place", folder_mode)

            def make_all():
                os.umask(umask)
                for kind, make in KINDS.items():
                    if kind != "block":
                        make("place/" + kind)
                os.close(os.open("place/setgid", os.O_CREAT | os.O_WRONLY, 0o2777))
                os.mkdir("place/sticky", 0o1777)
            show(f"folder {folder_mode:o} umask {umask:o}", as_user(USER, GROUP, [OTHER], make_all))
            for name in sorted(os.listdir("place")):
                show(name, facts("place/" + name))
    clean()


def bits_that_lend_privilege():
    changes = {
        "chown to another": lambda path: os.lchown(path, OTHER, OTHER),
        "chown to the same": lambda path: os.lchown(path, USER, GROUP),
        "chgrp": lambda path: os.lchown(path, -1, OTHER),
        "chmod": lambda path: os.chmod(path, 0o6755),
        "truncate": lambda path: os.truncate(path, 0),
        "truncate to the same size": lambda path: os.truncate(path, 1),
        "open with O_TRUNC": lambda path: os.close(os.open(path, os.O_WRONLY | os.O_TRUNC)),
        "open for writing": lambda path: os.close(os.open(path, os.O_WRONLY)),
        "write": lambda path: put_in_place(path, b"y"),
        "write nothing": lambda path: put_in_place(path, b""),
        "fallocate": lambda path: space(path, 0, 9000),
        "punch": lambda path: space(path, PUNCH | KEEP_SIZE, 1),
        "copy_file_range": lambda path: copy_over(path),
        "utime": lambda path: os.utime(path),
        "link": lambda path: os.link(path, "second"),
        "rename": lambda path: renameat2(path, "second", NOREPLACE),
    }
    for kind in ("file", "folder", "fifo", "block"):
        for mode in (0o6777, 0o4755, 0o2755, 0o2644, 0o6711):
            for change, action in changes.items():
                if kind != "file" and change.split()[0] in (
                        "truncate", "open", "write", "fallocate", "punch", "link", "copy_file_range"):
                    continue
                for who, groups in ((0, []), (USER, [GROUP, OTHER]), (USER, [OTHER])):
                    # Who is not in the group matters where only set-group-ID is set, and the group may not execute.
                    if GROUP not in groups and who and mode & 0o2010 != 0o2000:
                        continue
                    clean()
                    put("source", b"1234")
                    KINDS[kind]("it")
                    os.chown("it", USER, GROUP)
                    os.chmod("it", mode)
                    result = as_user(who, who, groups, lambda: action("it"))
                    name = "it" if os.path.lexists("it") else "second"
                    show(f"{kind} {mode:o}, {change} by {who} in {groups}", (result, facts(name)))
    clean()


def capabilities_of_a_file():
    """security.capability goes with a change of content or owner, whoever makes it (capabilities(7))."""
    value = struct.pack("<IIIII", 0x02000001, 1 << 10, 0, 0, 0)

    def set_while_open(path):
        descriptor = os.open(path, os.O_RDWR)
        os.write(descriptor, b"1")
        os.setxattr(path, "security.capability", value)
        os.write(descriptor, b"2")
        os.close(descriptor)

    def through_a_mapping(path):
        descriptor = os.open(path, os.O_RDWR)
        memory = mmap.mmap(descriptor, 4)
        memory[:2] = b"zz"
        memory.close()
        os.close(descriptor)
    changes = {
        "write": lambda path: put_in_place(path, b"y"),
        "write nothing": lambda path: put_in_place(path, b""),
        "open for writing": lambda path: os.close(os.open(path, os.O_WRONLY)),
        "truncate": lambda path: os.truncate(path, 0),
        "open with O_TRUNC": lambda path: os.close(os.open(path, os.O_WRONLY | os.O_TRUNC)),
        "chown": lambda path: os.chown(path, 5, 5),
        "chown of nothing": lambda path: os.chown(path, -1, -1),
        "chmod": lambda path: os.chmod(path, 0o755),
        "fallocate": lambda path: space(path, 0, 9000),
        "punch": lambda path: space(path, PUNCH | KEEP_SIZE, 1),
        "copy_file_range": lambda path: copy_over(path),
        "mapping": through_a_mapping,
        "set while open": set_while_open,
    }
    for change, action in changes.items():
        for who in (0, USER):
            clean()
            put("source", b"1234")
            put("it", b"12345678")
            os.chown("it", USER, GROUP)
            os.chmod("it", 0o755)
            os.setxattr("it", "security.capability", value)
            result = as_user(who, who, [GROUP] if who else [], lambda: action("it"))
            show(f"{change} by {who}", (result, answer(lambda: os.getxattr("it", "security.capability").hex())))
    clean()


def put_in_place(path, data):
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)


def space(path, mode, count):
    descriptor = os.open(path, os.O_RDWR)
    try:
        fallocate(descriptor, mode, 0, count)
    finally:
        os.close(descriptor)


def copy_over(path):
    source, target = os.open("source", os.O_RDONLY), os.open(path, os.O_RDWR)
    try:
        os.copy_file_range(source, target, 4)
    finally:
        os.close(source)
        os.close(target)


def times(path):
    status = os.stat(path, follow_symlinks=False)
    return status.st_atime_ns, status.st_mtime_ns, status.st_ctime_ns


def what_changes_which_time():
    """For each call: which of the times of the item and of its folder move."""
    def put_more(path):
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
        os.write(descriptor, b"more")
        os.close(descriptor)
    calls = {
        "write": put_more,
        "truncate": lambda path: os.truncate(path, 7),
        "truncate to the same size": lambda path: os.truncate(path, 4),
        "open with O_TRUNC": lambda path: os.close(os.open(path, os.O_WRONLY | os.O_TRUNC)),
        "open for writing": lambda path: os.close(os.open(path, os.O_WRONLY)),
        "fallocate beyond": lambda path: space(path, 0, 10_000),
        "fallocate keeping": lambda path: space(path, KEEP_SIZE, 10_000),
        "punch": lambda path: space(path, KEEP_SIZE | PUNCH, 3),
        "chmod": lambda path: os.chmod(path, 0o600),
        "chmod to the same": lambda path: os.chmod(path, 0o644),
        "chown": lambda path: os.chown(path, 5, 5),
        "utime both": lambda path: os.utime(path, ns=(7_000_000_001, 8_000_000_002)),
        "setxattr": lambda path: os.setxattr(path, "user.x", b"y"),
        "removexattr": lambda path: os.removexattr(path, "user.had"),
        "link": lambda path: os.link(path, "place/linked"),
        "rename": lambda path: os.rename(path, "place/renamed"),
        "rename over": lambda path: os.rename("place/other", path),
        "refused mkdir": lambda path: answer(lambda: os.mkdir(path)),
        "refused rmdir": lambda path: answer(lambda: os.rmdir(path)),
        "refused rename": lambda path: answer(lambda: os.rename(path, "place/folder")),
        "create beside": lambda path: put("place/beside"),
        "mkdir beside": lambda path: os.mkdir("place/beside"),
        "unlink beside": lambda path: os.unlink("place/other"),
        "rmdir beside": lambda path: os.rmdir("place/folder"),
        "symlink beside": lambda path: os.symlink("x", "place/beside"),
    }
    for call, action in calls.items():
        clean()
        os.mkdir("place")
        put("place/it", b"1234")
        put("place/other", b"1")
        os.mkdir("place/folder")
        os.link("place/it", "kept")
        os.setxattr("kept", "user.had", b"x")
        before = times("kept"), times("place")
        time.sleep(0.02)
        attempt(call, lambda: action("place/it"))
        after = times("kept"), times("place")
        moved = [[name for name, old, new in zip(("access", "modification", "change"), *pair) if old != new]
                 for pair in zip(before, after)]
        show("moved of the file and of the folder", moved)
    clean()


def exact_times():
    put("it")
    # Access times before 1970 and after 2106 included.
    for stamp in ((0, 0), (1, 999_999_999), (2**32 + 5, 123_456_789), (-1_000_000_000, 5), (1_500_000_000, 1)):
        nanoseconds = stamp[0] * 1_000_000_000 + stamp[1]
        attempt(f"utime {stamp}", lambda: os.utime("it", ns=(nanoseconds, nanoseconds + 1)))
        show("times", times("it")[:2])
    before = times("it")
    timespec = struct.pack("qqqq", 0, (1 << 30) - 2, 44, 55)
    check(libc.utimensat(AT_FDCWD, b"it", timespec, 0))
    show("UTIME_OMIT", (times("it")[0] == before[0], times("it")[1]))
    os.symlink("it", "link")
    os.utime("link", ns=(3_000_000_003, 4_000_000_004), follow_symlinks=False)
    show("of a link", times("link")[:2])
    show("of its target", times("it")[1])
    clean()


def acl(*lines):
    """The value of system.posix_acl_access (linux/posix_acl_xattr.h)."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", tag, permissions, who) for tag, permissions, who in lines)


NOBODY = 0xFFFFFFFF
OWNER, NAMED_USER, OWNING_GROUP, NAMED_GROUP, MASK, EVERYBODY = 1, 2, 4, 8, 16, 32


def access_control_lists():
    full = acl((OWNER, 7, NOBODY), (NAMED_USER, 6, OTHER), (OWNING_GROUP, 4, NOBODY), (NAMED_GROUP, 5, 2000), (MASK, 7, NOBODY),
               (EVERYBODY, 0, NOBODY))
    put("it", b"x")
    os.chmod("it", 0o2640)
    attempt("set", lambda: os.setxattr("it", "system.posix_acl_access", full))
    show("mode", facts("it"))
    show("list", os.getxattr("it", "system.posix_acl_access") == full)
    show("named user reads and writes", [as_user(OTHER, OTHER, [], lambda: len(open("it").read())),
                                         as_user(OTHER, OTHER, [], lambda: put_in_place("it", b"y"))])
    show("named group reads, does not write", [as_user(3000, 2000, [], lambda: len(open("it").read())),
                                               as_user(3000, 2000, [], lambda: put_in_place("it", b"y"))])
    show("somebody else", as_user(3000, 3000, [], lambda: len(open("it").read())))
    os.chmod("it", 0o640)
    show("mask after chmod", os.getxattr("it", "system.posix_acl_access").hex())
    show("named user writes no more", as_user(OTHER, OTHER, [], lambda: put_in_place("it", b"y")))
    attempt("remove", lambda: os.removexattr("it", "system.posix_acl_access"))
    show("mode", facts("it"))
    show("named user after", as_user(OTHER, OTHER, [], lambda: len(open("it").read())))
    attempt("nonsense", lambda: os.setxattr("it", "system.posix_acl_access", b"\2\0\0\0abcdefgh"))
    attempt("remove what is not there", lambda: os.removexattr("it", "system.posix_acl_access"))
    attempt("default of a file", lambda: os.setxattr("it", "system.posix_acl_default", full))
    attempt("by somebody else", lambda: as_user(OTHER, OTHER, [], lambda: os.setxattr("it", "system.posix_acl_access", full)))
    put("plain")
    os.chown("plain", USER, GROUP)
    os.chmod("plain", 0o2755)
    show("by an owner outside the group", as_user(USER, USER, [], lambda: os.setxattr("plain", "system.posix_acl_access", full)))
    show("loses set-group-ID", facts("plain"))
    os.mkdir("place")
    os.setxattr("place", "system.posix_acl_default", full)
    show("lists", sorted(os.listxattr("place")))
    for umask in (0, 0o077):
        os.umask(umask)
        for kind, make in KINDS.items():
            make("place/" + kind)
            names = [] if kind == "link" else sorted(os.listxattr("place/" + kind))
            show(f"inherited by a {kind}", (facts("place/" + kind), names,
                 [os.getxattr("place/" + kind, name).hex() for name in names]))
        os.close(os.open("place/created", os.O_CREAT | os.O_WRONLY, 0o640))
        show("created 640", (facts("place/created"), os.getxattr("place/created", "system.posix_acl_access").hex()))
        os.system("rm -rf place/*")
    os.umask(0o022)
    clean()


for step in (owners_of_what_is_made, bits_that_lend_privilege, capabilities_of_a_file, what_changes_which_time, exact_times,
             access_control_lists):
    if sys.argv[2:] and step.__name__ not in sys.argv[2:]:
        continue
    print(f"-- {step.__name__}")
    step()
