#!/usr/bin/env python3
"""Reads a small file, changes it in one of many ways, and reads it again: what is read is what was written, though the kernel
keeps a small file's pages from one open to the next.

usage: kept-pages.py FOLDER [ROUNDS]     exit 1 and a line for each difference
"""
import ctypes, mmap, os, sys

folder, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3
path = os.path.join(folder, "small")
wrong = 0


def read():
    with open(path, "rb") as file:
        return file.read()


def open_and(flags, change):
    descriptor = os.open(path, flags)
    try:
        change(descriptor)
    finally:
        os.close(descriptor)


def through_a_mapping(content):
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as mapping:
        mapping[10:14] = b"MAPS"
    return content[:10] + b"MAPS" + content[14:]


def appended(content):
    open_and(os.O_WRONLY | os.O_APPEND, lambda descriptor: os.write(descriptor, b"more"))
    return content + b"more"


def overwritten(content):
    open_and(os.O_WRONLY, lambda descriptor: os.pwrite(descriptor, b"OVER", 3))
    return content[:3] + b"OVER" + content[7:]


def both_ways(content):
    open_and(os.O_RDWR, lambda descriptor: os.pwrite(descriptor, b"BOTH", 20))
    return content[:20] + b"BOTH" + content[24:]


def cut(content):
    os.truncate(path, len(content) // 2)
    return content[:len(content) // 2]


def grown(content):
    os.truncate(path, 6000)
    return content + b"\0" * (6000 - len(content))


def emptied_and_filled(content):
    with open(path, "wb") as file:
        file.write(b"new" * 1000)
    return b"new" * 1000


def replaced(content):
    with open(path + ".new", "wb") as file:
        file.write(content[::-1])
    os.rename(path + ".new", path)
    return content[::-1]


def copied_into(content):
    with open(path + ".source", "wb") as file:
        file.write(b"source" * 500)

    def change(descriptor):
        source = os.open(path + ".source", os.O_RDONLY)
        os.copy_file_range(source, descriptor, 3000, 0, 0)
        os.close(source)

    open_and(os.O_RDWR, change)
    return (b"source" * 500) + content[3000:]


def punched(content):
    # FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE; os has no flags.
    library = ctypes.CDLL(None, use_errno=True)
    library.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]

    def change(descriptor):
        if library.fallocate(descriptor, 3, 0, 4096) != 0:
            raise OSError(ctypes.get_errno(), "fallocate")

    open_and(os.O_RDWR, change)
    return b"\0" * min(4096, len(content)) + content[4096:]


def while_a_reader_has_it_open(content):
    global wrong
    with open(path, "rb", buffering=0) as reader:
        reader.read(5)
        open_and(os.O_RDWR, lambda descriptor: os.pwrite(descriptor, b"READ", 30))
        expected = content[:30] + b"READ" + content[34:]
        reader.seek(0)
        if reader.read(100_000) != expected:
            print("a reader who had it open sees what was")
            wrong += 1
    return expected


ways = [through_a_mapping, appended, overwritten, both_ways, replaced, copied_into, punched, while_a_reader_has_it_open,
        cut, grown, emptied_and_filled]
with open(path, "wb") as file:
    file.write(os.urandom(5000))
for round in range(rounds):
    for way in ways:
        before = read()
        if read() != before:
            print("two reads in a row differ")
            wrong += 1
        expected = way(before)
        for number in (1, 2):
            if read() != expected:
                print(f"round {round}: '{way.__name__}' is not what read {number} shows")
                wrong += 1
sys.exit(1 if wrong else 0)
