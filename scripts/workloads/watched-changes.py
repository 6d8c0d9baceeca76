#!/usr/bin/env python3
"""Changes a folder behind the back of a mount that is watched, while programs change it in the mount and the daemon is killed now
and then, and checks that showing changes to who watches has done no harm.

usage: watched-changes.py --executable PROMISEFS [--rounds 30] [--seed N] [--folder DIR] [--argument ARG]... [--no-kills]

In each round files come, change, move and go at the provider, and in the mount others do, some under the names that have just
gone there. Every content is unique. At the end both sides are the same, each file that was made and not removed since, on either
side, has its content, and without kills who watched heard of each name that the provider has in the end. Prints the seed first.
"""
import argparse, os, random, shutil, signal, subprocess, sys, tempfile, time

import domain
from domain import Failed

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDERS = ["one", "two"]


class Rounds:
    def __init__(self, mount, randomness):
        self.mount, self.random = mount, randomness
        self.remote, self.local = {}, {}  # (folder, name) -> content
        self.count = 0

    def content(self):
        self.count += 1
        return f"content {self.count}\n" * self.random.choice([1, 1, 50])

    @staticmethod
    def write(path, content):
        with open(path, "w") as file:
            file.write(content)

    def name(self, side):
        self.count += 1
        return self.random.choice(FOLDERS), f"{side}{self.count}"

    def change_at_provider(self):
        way, known = self.random.random(), list(self.remote)
        if not known or way < 0.3:
            place = self.name("r")
            self.remote[place] = self.content()
            self.write(os.path.join(self.mount.cloud, *place), self.remote[place])
            return
        place = self.random.choice(known)
        path = os.path.join(self.mount.cloud, *place)
        if way < 0.5:
            self.remote[place] = self.content()
            self.write(path + ".new", self.remote[place])
            os.rename(path + ".new", path)
        elif way < 0.6:
            self.remote[place] = self.content()
            self.write(path, self.remote[place])
        elif way < 0.8:
            other = self.name("r")
            os.rename(path, os.path.join(self.mount.cloud, *other))
            self.remote[other] = self.remote.pop(place)
        else:
            os.unlink(path)
            del self.remote[place]
            if self.random.random() < 0.5:
                self.take_the_name(place)

    def take_the_name(self, place):
        """A program makes a file of the name that has just gone, whether the mount has heard of it or not."""
        path = os.path.join(self.mount.top, *place)
        while True:
            time.sleep(self.random.choice([0, 0.02, 0.1, 0.3]))
            try:
                with open(path, "x") as file:
                    self.local[place] = self.content()
                    file.write(self.local[place])
                return
            except FileExistsError:
                continue

    def change_in_the_mount(self):
        known = [place for place in self.local if place[1].startswith("l")]
        if not known or self.random.random() < 0.5:
            place = self.name("l")
            self.local[place] = self.content()
            self.write(os.path.join(self.mount.top, *place), self.local[place])
        elif self.random.random() < 0.5:
            place, other = self.random.choice(known), self.name("l")
            os.rename(os.path.join(self.mount.top, *place), os.path.join(self.mount.top, *other))
            self.local[other] = self.local.pop(place)
        else:
            place = self.random.choice(known)
            os.unlink(os.path.join(self.mount.top, *place))
            del self.local[place]


def contents(top):
    found = {}
    for folder, folders, names in os.walk(top):
        folders[:] = [name for name in folders if name != ".promisefs"]
        for name in names:
            with open(os.path.join(folder, name)) as file:
                found[os.path.relpath(os.path.join(folder, name), top)] = file.read()
    return found


def check(mount, rounds):
    deadline = time.monotonic() + 60
    while True:
        mount.settle()
        there, here = contents(mount.cloud), contents(mount.top)
        if there == here or time.monotonic() > deadline:
            break
        time.sleep(0.5)
    if there != here:
        raise Failed(f"the two sides differ: {sorted(set(there.items()) ^ set(here.items()))[:6]}")
    all_contents = set(here.values())
    for side, expected in (("provider", rounds.remote), ("mount", rounds.local)):
        for place, content in expected.items():
            if here.get("/".join(place)) != content and content not in all_contents:
                raise Failed(f"what was made at the {side} as {'/'.join(place)} is lost")
    left = set(here) - {"/".join(place) for place in (*rounds.remote, *rounds.local)}
    left = {name for name in left if " (conflict, " not in name}
    if left:
        raise Failed(f"what was removed is there again: {sorted(left)[:6]}")


def watch(mount):
    process = subprocess.Popen(
        [os.path.join(HERE, "inotify-events.py"), *(os.path.join(mount.top, folder) for folder in FOLDERS)],
        stdout=subprocess.PIPE, bufsize=0)
    if process.stdout.readline() != b"ready\n":
        raise Failed("the folders cannot be watched")
    os.set_blocking(process.stdout.fileno(), False)
    return process


def heard_by(watcher, text):
    """All that it has printed so far; `text` keeps it."""
    while True:
        try:
            part = os.read(watcher.stdout.fileno(), 1 << 16)
        except BlockingIOError:
            part = b""
        if not part:
            return text.decode(errors="surrogateescape")
        text += part


def unheard(rounds, events):
    """The names that are at the provider and in no event."""
    heard = {line.rsplit(" cookie=", 1)[0].split(" ", 2)[2] for line in events if line.count(" ") > 1}
    return sorted(place[1] for place in rounds.remote if place[1] not in heard)


def work(mount, options, randomness):
    for folder in FOLDERS:
        os.makedirs(os.path.join(mount.cloud, folder))
    mount.mount()
    rounds, events, text = Rounds(mount, randomness), [], bytearray()
    subprocess.run(["ls", "-lR", mount.top], stdout=subprocess.DEVNULL, check=True)
    watcher = watch(mount)
    try:
        for number in range(options.rounds):
            for _ in range(randomness.randrange(1, 12)):
                rounds.change_at_provider()
                if randomness.random() < 0.5:
                    rounds.change_in_the_mount()
                time.sleep(randomness.choice([0, 0, 0.01, 0.1]))
            if options.kills and number % 5 == 4:
                time.sleep(randomness.random() * 0.3)
                mount.send(signal.SIGKILL, mount.processes())
                time.sleep(1)
            time.sleep(randomness.choice([0, 0.2, 0.5]))
        check(mount, rounds)
        # Events come a moment later, on a busy machine more.
        deadline = time.monotonic() + 20
        while True:
            events = heard_by(watcher, text).splitlines()
            if options.kills or not unheard(rounds, events) or time.monotonic() > deadline:
                break
            time.sleep(0.2)
    finally:
        watcher.kill()
        watcher.wait()
    if not options.kills and unheard(rounds, events):
        raise Failed(f"nobody heard of {unheard(rounds, events)[:6]}")
    mount.run("unmount", mount.top)
    return len(events)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executable", required=True)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--folder", default="/var/tmp")
    parser.add_argument("--argument", action="append", default=[], help="of `promisefs mount`")
    parser.add_argument("--no-kills", dest="kills", action="store_false")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    folder = tempfile.mkdtemp(prefix="pfs-watched-", dir=options.folder)
    mount = domain.Mount(options.executable, folder, options.argument, name="watched")
    try:
        count = work(mount, options, random.Random(options.seed))
        print(f"nothing was lost; {count} events", flush=True)
    except (Failed, OSError) as problem:
        print(f"failed: {problem}", flush=True)
        return 1
    finally:
        mount.clean_up()
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
