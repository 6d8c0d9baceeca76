#!/usr/bin/env python3
"""Writes every name that appears below a folder to a file, one JSON string a line, until it is terminated.

usage: watch-names.py FOLDER OUTPUT

inotify(7) on every folder, new ones included: what was put into a new folder before its watch stood is found by listing
it afterwards. The provider's own .promisefs at the top is not watched. Prints `ready` when all watches stand.
"""
import ctypes, json, os, struct, sys

IN_CREATE, IN_MOVED_TO, IN_ISDIR, IN_Q_OVERFLOW = 0x100, 0x80, 0x40000000, 0x4000
libc = ctypes.CDLL(None, use_errno=True)


def main():
    top, output = os.fsencode(sys.argv[1]), open(sys.argv[2], "w", buffering=1)
    descriptor = libc.inotify_init1(0)
    watches, seen = {}, set()

    def note(path):
        if path not in seen:
            seen.add(path)
            output.write(json.dumps(os.fsdecode(path)) + "\n")

    def watch(folder):
        """Watches first, lists afterwards: nothing falls between."""
        relative = os.path.relpath(folder, top)
        if relative == b".promisefs":
            return
        number = libc.inotify_add_watch(descriptor, ctypes.c_char_p(folder), ctypes.c_uint32(IN_CREATE | IN_MOVED_TO))
        if number < 0:
            return
        watches[number] = folder
        try:
            for entry in os.scandir(folder):
                if entry.path != os.path.join(top, b".promisefs"):
                    note(os.path.relpath(entry.path, top))
                if entry.is_dir(follow_symlinks=False):
                    watch(entry.path)
        except OSError:
            pass  # gone again

    watch(top)
    print("ready", flush=True)
    while True:
        data = os.read(descriptor, 1 << 20)
        position = 0
        while position < len(data):
            number, mask, _, length = struct.unpack_from("iIII", data, position)
            name = data[position + 16 : position + 16 + length].rstrip(b"\0")
            position += 16 + length
            if mask & IN_Q_OVERFLOW:
                output.write(json.dumps("OVERFLOW") + "\n")
            folder = watches.get(number)
            if folder is None or not name:
                continue
            path = os.path.join(folder, name)
            if path == os.path.join(top, b".promisefs"):
                continue
            note(os.path.relpath(path, top))
            if mask & IN_ISDIR:
                watch(path)


if __name__ == "__main__":
    main()
