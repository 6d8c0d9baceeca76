#!/usr/bin/env python3
"""Writes to a file through a shared mapping whose descriptor has been closed.

usage: mapped-writer.py FILE SIGNALS

Maps FILE, closes it, makes SIGNALS/mapped, and then, as each of these appears in the folder SIGNALS: `write` writes WRITTEN at
the beginning and makes SIGNALS/written; `end` writes AGAIN behind it, to the same page, and ends. With `again` before that TWICE
is written behind both, and SIGNALS/writtenAgain is made.
"""
import ctypes, os, sys, time

path, signals = sys.argv[1:]
library = ctypes.CDLL(None, use_errno=True)
library.mmap.restype = ctypes.c_void_p
library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]


def say(name):
    open(os.path.join(signals, name), "w").close()


def wait(*names):
    end = time.monotonic() + 120
    while not any(os.path.exists(os.path.join(signals, name)) for name in names):
        if time.monotonic() > end:
            sys.exit(f"'{names[0]}' did not come")
        time.sleep(0.02)


descriptor = os.open(path, os.O_RDWR)
# PROT_READ | PROT_WRITE, MAP_SHARED
memory = library.mmap(None, 4096, 3, 1, descriptor, 0)
if memory in (None, ctypes.c_void_p(-1).value):
    sys.exit(f"mmap: {os.strerror(ctypes.get_errno())}")
os.close(descriptor)
say("mapped")
wait("write")
ctypes.memmove(memory, b"WRITTEN", 7)
say("written")
wait("again", "end")
if os.path.exists(os.path.join(signals, "again")):
    ctypes.memmove(memory + 12, b"TWICE", 5)
    say("writtenAgain")
wait("end")
ctypes.memmove(memory + 7, b"AGAIN", 5)
