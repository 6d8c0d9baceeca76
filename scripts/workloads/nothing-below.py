#!/usr/bin/env python3
"""Kills the daemon again and again under readers, 'rsync -a --delete' and writers, and checks that nobody reaches the folder
below the mount.

usage: nothing-below.py --executable PROMISEFS [--kills 20] [--mount=--io-uring] [--seed N] [--keep]

The mount is made from the mount, as a backup makes it, and each copy must have all that is never removed. Calls may fail
while there is no daemon (by io_uring they do: ENOTCONN and the like), but none may say that something is not there, show an
empty folder, or the folder's own numbers. In the end the mount is taken away, and nothing may have been written below.
Prints the seed first.
"""
import errno, os, random, shutil, signal, subprocess, sys, threading, time

import domain
from domain import Failed

KEPT = 60
# What a mount without a daemon, or one that is being made anew, answers.
AWAY = {errno.ENOTCONN, errno.ECONNABORTED, errno.EIO, errno.EINTR, errno.ETIMEDOUT, errno.ENETDOWN, errno.EBADF, errno.ENODEV,
        errno.ECANCELED}


class Watch:
    """What the threads found, and how much they did."""

    def __init__(self, mount, below):
        self.mount, self.below, self.problems, self.counts, self.is_over = mount, below, [], {}, False

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    def problem(self, text):
        self.problems.append(text)
        self.is_over = True

    def tried(self, what, action):
        try:
            action()
            self.count(what)
        except OSError as problem:
            if problem.errno not in AWAY:
                return self.problem(f"{what}: {problem}")
            self.count(f"{what}, no daemon")
            time.sleep(0.005)


def readers(watch):
    top = watch.mount.top
    names = {f"kept {number}" for number in range(KEPT)}

    def look():
        status = os.stat(top)
        if (status.st_dev, status.st_ino) == watch.below:
            watch.problem("the folder below was seen")
        seen = set(os.listdir(top))
        if not names <= seen:
            watch.problem(f"a listing lacks {sorted(names - seen)[:3]}, and has {len(seen)} names")

    while not watch.is_over:
        watch.tried("listing", look)


def writers(watch, seed):
    generator, number = random.Random(seed), 0

    def write():
        with open(os.path.join(watch.mount.top, f"new {seed} {number % 20}"), "wb") as file:
            file.write(generator.randbytes(generator.randrange(20_000)))

    while not watch.is_over:
        number += 1
        watch.tried("writing", write)


def backups(watch, folder):
    """rsync ends with an error when something cannot be read, and then it must have removed nothing."""
    while not watch.is_over:
        done = subprocess.run(["rsync", "-a", "--delete", watch.mount.top + "/", folder + "/"], capture_output=True, text=True)
        watch.count("backup" if done.returncode == 0 else "backup with errors")
        lacking = [number for number in range(KEPT) if not os.path.exists(f"{folder}/kept {number}")]
        if lacking:
            return watch.problem(f"rsync ended with {done.returncode} and removed {len(lacking)} files from the backup")


def kill(mount, generator):
    mount.send(signal.SIGKILL, mount.processes())
    deadline = time.monotonic() + 30
    time.sleep(generator.choice([0.05, 0.3, 0.8]) * generator.uniform(0.5, 1.5))
    while not mount.processes():
        if time.monotonic() > deadline:
            raise Failed("no successor within 30 s")
        time.sleep(0.01)
    # Now and then it is killed before it serves; its holder gives up a mount whose daemons all die so.
    if generator.random() < 0.85:
        try:
            os.lstat(os.path.join(mount.top, f"asks the daemon {generator.random()}"))
        except OSError:
            pass


def body(mount, arguments, generator):
    status = os.stat(mount.top)
    below = (status.st_dev, status.st_ino)
    mount.mount()
    for number in range(KEPT):
        with open(f"{mount.top}/kept {number}", "w") as file:
            file.write("kept\n" * number)
    transport = mount.status()["transport"]
    backup = os.path.join(mount.folder, "backup")
    os.mkdir(backup)
    subprocess.run(["rsync", "-a", mount.top + "/", backup + "/"], check=True)
    watch = Watch(mount, below)
    threads = [threading.Thread(target=readers, args=(watch,)) for _ in range(2)]
    threads += [threading.Thread(target=writers, args=(watch, generator.randrange(10**6))) for _ in range(3)]
    threads += [threading.Thread(target=backups, args=(watch, backup))]
    for thread in threads:
        thread.start()
    kills = 0
    try:
        while kills < arguments.kills and not watch.is_over:
            kill(mount, generator)
            kills += 1
            if kills % 50 == 0:
                print(f"{kills} kills: {watch.counts}", flush=True)
    finally:
        watch.is_over = True
        for thread in threads:
            thread.join(60)
    if watch.problems:
        raise Failed(f"after {kills} kills on {transport}: " + "; ".join(watch.problems[:5]))
    deadline = time.monotonic() + 60
    while subprocess.run([mount.executable, "status", mount.top], env=mount.environment, capture_output=True).returncode:
        if time.monotonic() > deadline:
            raise Failed("the mount does not come back")
        time.sleep(0.2)
    mount.run("unmount", "--wait", "--timeout", "60s", mount.top, statuses=(0, 7))
    left = os.listdir(mount.top)
    if left:
        raise Failed(f"{len(left)} names were written below: {left[:5]}")
    done = ", ".join(f"{count} {what}" for what, count in sorted(watch.counts.items()))
    return f"{kills} kills on {transport}: nothing was seen or written below; {done}"


def add_arguments(parser):
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--mount", action="append", default=[], help="an option of mount")


if __name__ == "__main__":
    if not shutil.which("rsync"):
        sys.exit("rsync is not here")
    domain.run(__doc__, "pfs-below-", add_arguments, body)
