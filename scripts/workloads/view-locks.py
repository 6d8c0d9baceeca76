#!/usr/bin/env python3
"""Locks a file, as one of several programs in views and on the mount.

view-locks.py hold KIND MODE FILE FLAG    has the lock, makes FLAG.held, and ends when FLAG.go is there, or FILE gone, or after 30 s
view-locks.py try KIND MODE FILE          prints `yes`, or `no` when another one has it
view-locks.py wait KIND MODE FILE         waits for it, prints `yes`; by SIGALRM after a second `EINTR` with KIND-alarm
view-locks.py ask KIND MODE FILE          prints which lock is in the way: type, start, length, process
view-locks.py count FILE N                adds 1 to the number in FILE, N times, each time locked

KIND is flock, posix or ofd, MODE is sh or ex; of posix and ofd a range is locked, bytes 10 to 19.
"""
import errno
import fcntl
import os
import signal
import struct
import sys
import time

OFD_GETLK, OFD_SETLK, OFD_SETLKW = 36, 37, 38
FLOCK = "hhqqi4x"


def record(mode, process=0):
    return struct.pack(FLOCK, fcntl.F_RDLCK if mode == "sh" else fcntl.F_WRLCK, 0, 10, 10, process)


def take(kind, mode, file, waits):
    if kind == "flock":
        fcntl.flock(file, (fcntl.LOCK_SH if mode == "sh" else fcntl.LOCK_EX) | (0 if waits else fcntl.LOCK_NB))
    else:
        call = {("posix", True): fcntl.F_SETLKW, ("posix", False): fcntl.F_SETLK, ("ofd", True): OFD_SETLKW,
                ("ofd", False): OFD_SETLK}[kind, waits]
        fcntl.fcntl(file, call, record(mode))


def alarmed(_number, _frame):
    raise InterruptedError(errno.EINTR, "alarm")


def count(path, rounds):
    for _ in range(rounds):
        file = os.open(path, os.O_RDWR)
        take("posix", "ex", file, True)
        number = int(os.pread(file, 100, 0) or b"0") + 1
        os.pwrite(file, b"%d" % number, 0)
        os.close(file)


def main():
    if sys.argv[1] == "count":
        return count(sys.argv[2], int(sys.argv[3]))
    call, kind, mode, path = sys.argv[1:5]
    file = os.open(path, os.O_RDWR)
    kind, _, alarm = kind.partition("-")
    if alarm:
        signal.signal(signal.SIGALRM, alarmed)
        signal.setitimer(signal.ITIMER_REAL, 1)
    if call == "ask":
        found = fcntl.fcntl(file, OFD_GETLK if kind == "ofd" else fcntl.F_GETLK, record(mode))
        kind, _, start, length, process = struct.unpack(FLOCK, found)
        print({fcntl.F_RDLCK: "sh", fcntl.F_WRLCK: "ex", fcntl.F_UNLCK: "none"}[kind], start, length, process)
        return None
    try:
        take(kind, mode, file, call in ("wait", "hold"))
    except OSError as error:
        print("no" if error.errno in (errno.EAGAIN, errno.EACCES) else errno.errorcode[error.errno])
        return None
    print("yes", flush=True)
    if call == "hold":
        with open(sys.argv[5] + ".held", "w", encoding="utf8"):
            pass
        end = time.monotonic() + 30
        while not os.path.exists(sys.argv[5] + ".go") and os.path.exists(path) and time.monotonic() < end:
            time.sleep(0.02)
    return None


sys.exit(main())
