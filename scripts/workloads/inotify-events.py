#!/usr/bin/env python3
"""Prints the inotify(7) events of folders and files, one a line, until it is ended.

usage: scripts/workloads/inotify-events.py PATH...

A line is the watched path's last name, the event, and the name in the folder, as `folder MOVED_TO new.txt`; both halves of a move
have their cookie behind, as `cookie=7`. The first line is `ready`.
"""
import ctypes, os, struct, sys

EVENTS = {0x2: "MODIFY", 0x4: "ATTRIB", 0x8: "CLOSE_WRITE", 0x40: "MOVED_FROM", 0x80: "MOVED_TO", 0x100: "CREATE", 0x200: "DELETE",
          0x400: "DELETE_SELF", 0x800: "MOVE_SELF", 0x4000: "OVERFLOW", 0x8000: "IGNORED"}
WATCHED = 0xfce
FOLDER = 0x40000000

if len(sys.argv) < 2:
    sys.exit(__doc__)
library = ctypes.CDLL(None, use_errno=True)
queue = library.inotify_init1(os.O_CLOEXEC)
names = {}
for path in sys.argv[1:]:
    watch = library.inotify_add_watch(queue, os.fsencode(path), WATCHED)
    if watch < 0:
        sys.exit(f"{path}: {os.strerror(ctypes.get_errno())}")
    names[watch] = os.path.basename(os.path.normpath(path))
print("ready", flush=True)
while True:
    data = os.read(queue, 1 << 16)
    while data:
        watch, mask, cookie, size = struct.unpack_from("iIII", data)
        name = data[16:16 + size].rstrip(b"\0").decode("utf-8", "backslashreplace")
        data = data[16 + size:]
        words = [names.get(watch, "-")] + [word for bit, word in EVENTS.items() if mask & bit]
        words += (["FOLDER"] if mask & FOLDER else []) + ([name] if name else []) + ([f"cookie={cookie}"] if cookie else [])
        print(" ".join(words), flush=True)
