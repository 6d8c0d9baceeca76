#!/usr/bin/env python3
"""Every operation that takes a name, in every situation that makes it fail, and what it answers. Run in a mount and
beside it as root, the outputs must be equal.

usage: posix-errors.py FOLDER [STEP…]: all of them, or these, some of which need no root; without it there are no devices
"""
import os, socket, stat, sys

from posix_calls import answer, as_user, attempt, facts, put, renameat2, show, EXCHANGE, NOREPLACE

os.chdir(sys.argv[1])
LONG = "n" * 256


def make_socket(path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)


# Operations on a name that is there, and operations that make one.
ON_EXISTING = {
    "open": lambda path: os.close(os.open(path, os.O_RDONLY)),
    "open for writing": lambda path: os.close(os.open(path, os.O_WRONLY)),
    "chmod": lambda path: os.chmod(path, 0o755),
    "chown": lambda path: os.chown(path, 0, 0),
    "lchown": lambda path: os.lchown(path, 0, 0),
    "truncate": lambda path: os.truncate(path, 3),
    "unlink": os.unlink,
    "rmdir": os.rmdir,
    "rename": lambda path: os.rename(path, "renamed"),
    "rename onto": lambda path: os.rename("spare", path),
    "link": lambda path: os.link(path, "linked"),
    "utimensat": lambda path: os.utime(path, (1, 1)),
    "readlink": os.readlink,
    "stat": lambda path: stat.S_IFMT(os.stat(path).st_mode),
    "listdir": lambda path: len(os.listdir(path)),
}
MAKING = {
    "creat": lambda path: os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)),
    "mkdir": os.mkdir,
    "mkfifo": os.mkfifo,
    "mknod": lambda path: os.mknod(path, stat.S_IFBLK | 0o600, os.makedev(1, 2)),
    "symlink": lambda path: os.symlink("target", path),
    "link to": lambda path: os.link("spare", path),
    "bind": make_socket,
}
PLACES = {
    "a file on the way": "file/below",
    "missing": "missing",
    "missing on the way": "missing/below",
    "a name of 256 bytes": LONG,
    "a name of 256 bytes on the way": LONG + "/below",
    "a path of 4096 bytes": "./" * 2047 + "xx",
    "a loop": "loop",
    "a loop on the way": "loop/below",
    "a dangling link": "dangling",
    "a file": "file",
    "a full folder": "full",
    "an empty folder": "empty",
    "a fifo": "fifo",
    "dot": "full/.",
    "dot dot": "full/..",
}
KINDS = {
    "file": lambda path: put(path),
    "folder": os.mkdir,
    "fifo": os.mkfifo,
    "block": lambda path: os.mknod(path, stat.S_IFBLK | 0o644, os.makedev(7, 300)),
    "character": lambda path: os.mknod(path, stat.S_IFCHR | 0o644, os.makedev(1, 3)),
    "socket": make_socket,
    "link": lambda path: os.symlink("nowhere", path),
}
if os.geteuid() != 0:
    del KINDS["block"], KINDS["character"]


def fresh():
    os.system("rm -rf ./* ")
    put("file", b"1234")
    put("spare", b"spare")
    os.mkdir("full")
    put("full/inside")
    os.mkdir("empty")
    os.mkfifo("fifo")
    os.symlink("loop", "loop")
    os.symlink("nowhere", "dangling")


def every_operation_in_every_place():
    for situation, path in PLACES.items():
        for operation, action in (ON_EXISTING | MAKING).items():
            # Opening a fifo waits for the other side.
            if path == "fifo" and operation.startswith("open"):
                continue
            fresh()
            attempt(f"{operation}: {situation}", lambda: action(path))


def every_kind_over_every_kind():
    for source, make_source in KINDS.items():
        for target, make_target in KINDS.items():
            for flags in (0, NOREPLACE, EXCHANGE):
                os.system("rm -rf ./*")
                os.mkdir("from")
                os.mkdir("onto")
                make_source("from/one")
                make_target("onto/two")
                attempt(f"{source} over {target}, flags {flags}", lambda: renameat2("from/one", "onto/two", flags))
                show("then", (sorted(os.listdir("from")), sorted(os.listdir("onto")), facts("from"), facts("onto")))


def links_and_kinds():
    os.system("rm -rf ./*")
    for kind, make in KINDS.items():
        make(kind)
        show(kind, facts(kind))
        attempt(f"link to a {kind}", lambda: os.link(kind, kind + "2", follow_symlinks=False))
        if kind != "folder":
            show("two names", (facts(kind), os.path.samestat(os.lstat(kind), os.lstat(kind + "2"))))
            os.rename(kind + "2", "third")
            os.unlink(kind)
            show("one name", facts("third"))
            os.unlink("third")
    os.mkdir("tree")
    for name in ("one", "two"):
        os.mkdir("tree/" + name)
    show("two subfolders", facts("tree"))
    os.rename("tree/one", "folder/one")
    show("one moved away", (facts("tree"), facts("folder")))
    os.rename("tree/two", "folder/one")
    show("one moved onto the other", (facts("tree"), facts("folder")))
    os.rmdir("folder/one")
    show("none", facts("folder"))


def refused_to_others():
    os.system("rm -rf ./*")
    os.chmod(".", 0o755)
    for mode in (0o700, 0o711, 0o744, 0o755, 0o777, 0o1777):
        for owner in (0, 1000):
            os.mkdir("place")
            put("place/file", b"x")
            os.chown("place/file", owner, owner)
            os.mkdir("place/folder")
            os.chown("place/folder", owner, owner)
            os.chmod("place", mode)

            def ask(action):
                return as_user(1000, 1000, [], action)
            show(f"folder {mode:o}, names of {owner}", [
                ask(lambda: len(os.listdir("place"))), ask(lambda: os.stat("place/file").st_size),
                ask(lambda: put("place/new")), ask(lambda: os.mkdir("place/new2")), ask(lambda: os.mkfifo("place/new3")),
                ask(lambda: os.symlink("x", "place/new4")), ask(lambda: os.link("place/file", "place/new5")),
                ask(lambda: os.chmod("place/file", 0o666)), ask(lambda: os.chown("place/file", 1000, 1000)),
                ask(lambda: os.chown("place/file", 2000, -1)), ask(lambda: os.chown("place/file", -1, 2000)),
                ask(lambda: os.truncate("place/file", 0)), ask(lambda: os.utime("place/file")),
                ask(lambda: os.utime("place/file", (1, 1))), ask(lambda: os.mknod("place/dev", stat.S_IFCHR, 259)),
                ask(lambda: os.rename("place/folder", "place/folder2")), ask(lambda: os.rmdir("place/folder2")),
                ask(lambda: os.rename("place/file", "place/file2")), ask(lambda: os.unlink("place/file2"))])
            os.system("rm -rf place")


for step in (every_operation_in_every_place, every_kind_over_every_kind, links_and_kinds, refused_to_others):
    if sys.argv[2:] and step.__name__ not in sys.argv[2:]:
        continue
    print(f"-- {step.__name__}")
    step()
os.system("rm -rf ./*")
