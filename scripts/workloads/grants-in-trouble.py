#!/usr/bin/env python3
"""Gives and takes back grants while the power is cut, or the disk of the state folder is full, and looks which are there then.

usage: grants-in-trouble.py --executable PROMISEFS [--cuts 5] [--seed N] [--full]

Of what was given or taken back, and answered, nothing is undone. Of the change that was not answered there is all or nothing. No
grant has more rights than were given, and `verify` is clean. Cuts are made as by power-cut.py; with --full the state folder is on
a tmpfs that is filled, and the daemon is killed there. Root only. Exit status 1 when anything is wrong.
"""
import argparse, importlib.util, json, os, random, shutil, signal, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../../clients/python")]
import promisefs
from domain import Failed, Mount

specification = importlib.util.spec_from_file_location("power_cut", os.path.join(HERE, "power-cut.py"))
power_cut = importlib.util.module_from_spec(specification)
specification.loader.exec_module(power_cut)

APPLICATION = "com.example.editor"
FILES = 30


def client(domain):
    os.environ.update(domain.environment)
    return promisefs.locate(domain.top)[0]


class Worker:
    """Each change is noted before and after it: ["give", path, rights], ["given", id, path, rights], ["revoke", id], ["revoked", id]. A call
    that failed: ["failed"]."""

    def __init__(self, found, log, seed):
        self.client, self.log, self.choose = found, log, random.Random(seed)
        self.mine = []

    def note(self, *words):
        self.log.write(json.dumps(words) + "\n")
        self.log.flush()

    def step(self):
        try:
            if self.choose.random() < 0.6 or not self.mine:
                path, rights = f"f{self.choose.randrange(FILES)}", self.choose.choice(["read", "read-write"])
                self.note("give", path, rights)
                made = self.client.give(path, APPLICATION, rights)
                self.note("given", made["id"], path, made["rights"])
                # What is given again is the same grant.
                if made["id"] not in self.mine:
                    self.mine.append(made["id"])
            else:
                number = self.mine.pop(self.choose.randrange(len(self.mine)))
                self.note("revoke", number)
                self.client.revoke(number)
                self.note("revoked", number)
            return True
        except promisefs.PromiseError:
            self.note("failed")
            return False


def expectation(lines):
    """What must be there, what may be there by number, and what may be there without one: (path, rights)."""
    must, may, unsure, asked = {}, {}, [], None
    for words in map(json.loads, lines):
        kind = words[0]
        if kind == "give":
            asked = tuple(words[1:])
        elif kind == "given":
            must[words[1]], asked = tuple(words[2:]), None
        elif kind == "revoke":
            may[words[1]] = must.pop(words[1])
        elif kind == "revoked":
            del may[words[1]]
        elif asked is not None:
            # Whoever was told "no" has nothing.
            asked = None
    if asked is not None:
        unsure.append(asked)
    return must, may, unsure


def look(domain, lines, verifies=True):
    must, may, unsure = expectation(lines)
    seen = set()
    for grant in client(domain).grants(APPLICATION):
        number, what = grant["id"], (grant.get("path", "").lstrip("/"), grant["rights"])
        seen.add(number)
        if must.get(number, may.get(number)) == what:
            continue
        if (number in must or number in may) and what not in unsure:
            raise Failed(f"grant {number} is {what}, and was {must.get(number, may.get(number))}")
        if what not in unsure:
            raise Failed(f"grant {number}, {what}, was taken back or never given")
        unsure.remove(what)
    gone = set(must) - seen
    if gone:
        raise Failed(f"grants {sorted(gone)} were given, and are not there")
    if verifies:
        domain.run("verify", domain.top)
    return f"{len(seen)} grants"


def make_files(domain):
    for number in range(FILES):
        with open(f"{domain.top}/f{number}", "w") as file:
            file.write("x")
    domain.settle()


def cut(options, top):
    image, log_path = os.path.join(top, "image"), os.path.join(top, "log")
    with open(image, "wb") as file:
        file.truncate(128 << 20)
    power_cut.run("mkfs.ext4", "-q", "-F", "-m", "0", "-b", "4096", image)
    disk = power_cut.Disk(image, os.path.join(top, "disk"))
    domain, worker, wrong = None, None, 0
    try:
        os.makedirs(disk.place + "/cloud")
        domain = power_cut.mounted(options, disk, os.path.join(top, "before"), "boot 0")
        [daemon] = domain.processes()
        make_files(domain)
        power_cut.run("sync", "-f", disk.place)
        worker = os.fork()
        if worker == 0:
            work = Worker(client(domain), open(log_path, "a"), options.seed)
            while True:
                work.step()
        choose = random.Random(options.seed)
        for number in range(1, options.cuts + 1):
            time.sleep(0.3 + choose.random())
            os.kill(daemon, signal.SIGSTOP)
            os.kill(worker, signal.SIGSTOP)
            lines = open(log_path).read().splitlines()
            copy = os.path.join(top, f"cut{number}")
            disk.copy(copy)
            os.kill(daemon, signal.SIGCONT)
            wrong += look_after_cut(options, top, copy, lines, number)
            os.unlink(copy)
            os.kill(worker, signal.SIGCONT)
    finally:
        if worker:
            os.kill(worker, signal.SIGKILL)
            os.waitpid(worker, 0)
        if domain:
            domain.clean_up()
        disk.close()
    return wrong


def look_after_cut(options, top, image, lines, number):
    disk = after = None
    try:
        disk = power_cut.Disk(image, os.path.join(top, "copy"))
        after = power_cut.mounted(options, disk, os.path.join(top, f"after{number}"), f"boot {number}")
        print(f"cut {number}: {look(after, lines)} as they must be, after {len(lines)} notes", flush=True)
        return 0
    except Failed as problem:
        print(f"WRONG cut {number}: {problem}", flush=True)
        return 1
    finally:
        if after:
            after.clean_up()
        if disk:
            disk.close()


def fill(path):
    with open(path, "wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            return


def full(options, top):
    place = os.path.join(top, "disk")
    os.mkdir(place)
    power_cut.run("mount", "-t", "tmpfs", "-o", "size=40m,mode=700", "tmpfs", place)
    domain = Mount(options.executable, top, ["--no-supervision"], name="full", upload_delay="200ms", state=place + "/state")
    log_path = os.path.join(top, "log")
    try:
        domain.mount()
        make_files(domain)
        work = Worker(client(domain), open(log_path, "a"), options.seed)
        for _ in range(20):
            work.step()
        # Beside the domain, so that it can give no room back.
        fill(place + "/filling")
        outcomes = []
        # The index has some room of its own.
        while outcomes.count(False) < 20 and len(outcomes) < 300:
            outcomes.append(work.step())
        print(f"full: {outcomes.count(True)} changes were made, {outcomes.count(False)} refused", flush=True)
        print(f"full: {look(domain, open(log_path).read().splitlines(), verifies=False)} as they must be", flush=True)
        domain.kill()
        os.unlink(place + "/filling")
        domain.mount()
        print(f"killed: {look(domain, open(log_path).read().splitlines())} as they must be", flush=True)
        again = Worker(client(domain), open(log_path, "a"), options.seed + 1)
        if not all(again.step() for _ in range(20)):
            raise Failed("with room again nothing can be changed")
        look(domain, open(log_path).read().splitlines())
        return 0
    finally:
        domain.clean_up()
        subprocess.run(["umount", "-l", place], capture_output=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executable", required=True)
    parser.add_argument("--cuts", type=int, default=5)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--full", action="store_true")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    top = tempfile.mkdtemp(prefix="pfs-grants-", dir="/var/tmp")
    try:
        wrong = full(options, top) if options.full else cut(options, top)
    except (Failed, OSError) as problem:
        print(f"WRONG {problem}", flush=True)
        wrong = 1
    finally:
        shutil.rmtree(top, ignore_errors=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
