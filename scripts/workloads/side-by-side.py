#!/usr/bin/env python3
"""Two or three daemons on one store, random work on each for a while, and then: all show the same, and nothing is lost.

usage: side-by-side.py --executable PROMISEFS [--store folder|apache|moto] [--machines 2] [--seconds 60] [--seed N]
                       [--calm] [--only-one] [--folder DIR] [--keep]

Each machine has a program that writes tokens of 16 bytes, each once: it saves in place and by rename, appends, holds
files open, exchanges names, makes links and folders, moves folders into each other, removes and evicts. Daemons are
killed and networks cut meanwhile, unless --calm. What a program wrote must be somewhere at the end, unless a program
that had seen it gave it away. With --only-one the others look only, and there must be no conflict. Prints the seed first.
"""
import argparse, json, os, random, shutil, signal, subprocess, sys, tempfile, time

import domain
from domain import Failed
from kill_model import tree_of
from side_by_side_program import Program, tokens_of

SERVERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "servers")

# How long trees may differ when all work has ended, in seconds.
PATIENCE = 180


class Store:
    """What all machines mount."""

    def __init__(self, kind, folder):
        self.kind, self.folder, self.environment, self.top = kind, os.path.join(folder, "store"), {}, None
        os.mkdir(self.folder)
        if kind == "folder":
            self.top = os.path.join(self.folder, "cloud")
            os.mkdir(self.top)
            self.url = "folder:" + self.top
            return
        self.script = os.path.join(SERVERS, {"apache": "apache-webdav", "moto": "moto-s3"}[kind])
        done = subprocess.run([self.script, "start", self.folder], capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(f"the store does not start: {done.stderr.strip()}")
        told = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
        if kind == "apache":
            self.top, self.url = told["WEBDAV_ROOT"], "webdav+" + told["WEBDAV_URL"]
            self.environment = {"PROMISEFS_USER": told["WEBDAV_USER"], "PROMISEFS_PASSWORD": told["WEBDAV_PASSWORD"]}
        else:
            self.url = f"s3://{told['S3_BUCKET']}/?endpoint={told['S3_ENDPOINT']}"
            self.environment = {"AWS_ACCESS_KEY_ID": told["S3_ACCESS_KEY"], "AWS_SECRET_ACCESS_KEY": told["S3_SECRET_KEY"],
                                "AWS_REGION": told["S3_REGION"]}

    def stop(self):
        if self.kind != "folder":
            subprocess.run([self.script, "stop", self.folder], capture_output=True)


class Machine(domain.Mount):
    """A mount with a host name of its own."""

    def __init__(self, executable, folder, number, store):
        super().__init__(executable, os.path.join(folder, f"machine{number}"), ["--poll-interval", "1s"], name=f"side{number}",
                         provider=store.url, environment=store.environment | {"PROMISEFS_LOG": "trace"})
        self.number = number
        # Without a daemon the folder below is not to be worked in.
        self.base = os.path.join(self.folder, "base")
        os.mkdir(self.base)
        subprocess.run(["mount", "-t", "tmpfs", "none", self.base], check=True)
        self.top = os.path.join(self.base, "mnt")
        os.mkdir(self.top)
        subprocess.run(["mount", "-o", "remount,ro", self.base], check=True)

    def clean_up(self):
        super().clean_up()
        subprocess.run(["umount", "-l", self.base], stderr=subprocess.DEVNULL)

    def command(self):
        return ["unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"', f"host{self.number}", *super().command()]


def trouble(machine, generator, end):
    """What befalls a machine, until the end; a generator that is asked every now and then."""
    while True:
        yield time.monotonic() + generator.uniform(2, 15)
        if time.monotonic() > end:
            return
        if generator.random() < 0.5:
            machine.set_offline(True)
            yield time.monotonic() + generator.uniform(0.5, 6)
            machine.set_offline(False)
        elif generator.random() < 0.6:
            # The holder starts another one.
            machine.send(signal.SIGKILL, machine.processes())
        else:
            machine.kill()
            machine.mount()


def start(program, seconds):
    child = os.fork()
    if child:
        return child
    status = 0
    try:
        program.run(time.monotonic() + seconds)
    except BaseException as problem:  # reported by the parent, which sees the status
        print(f"the program of {program.name} failed: {problem!r}", file=sys.stderr, flush=True)
        status = 1
    os._exit(status)


def work(machines, arguments, generator, folder):
    journals = [os.path.join(folder, f"journal{machine.number}") for machine in machines]
    children = []
    for machine, journal in zip(machines, journals):
        looks = arguments.only_one and machine.number > 0
        program = Program(f"m{machine.number}", machine.top, journal, generator.randrange(10**9), looks_only=looks,
                          evict=lambda path, machine=machine: machine.run("evict", path, statuses=range(256)))
        children.append(start(program, arguments.seconds))
    end = time.monotonic() + arguments.seconds - 5
    troubles = [] if arguments.calm else [[trouble(each, generator, end), 0] for each in machines]
    while children:
        for each in list(troubles):
            if time.monotonic() >= each[1]:
                each[1] = next(each[0], None)
                if each[1] is None:
                    troubles.remove(each)
        found, status = os.waitpid(-1, os.WNOHANG)
        if found in children:
            children.remove(found)
            if status != 0:
                raise Failed("a program failed")
        if time.monotonic() > end + 120:
            for child in children:
                os.kill(child, signal.SIGKILL)
            raise Failed("a program hangs")
        time.sleep(0.02)
    return journals


def settle(machines):
    for machine in machines:
        machine.set_offline(False)
    for _ in range(4):
        for machine in machines:
            machine.settle()
            time.sleep(1.2)


def tree(top):
    """Every name with what is there; again, when something goes meanwhile."""
    for attempt in range(5):
        try:
            return {place: content for place, content in tree_of(top).items() if place.split("/")[0] != ".promisefs"}
        except FileNotFoundError:
            if attempt == 4:
                raise
            time.sleep(3)


def difference(left, right):
    return [f"{name}: {left.get(name)!r} and {right.get(name)!r}"
            for name in sorted(set(left) | set(right)) if left.get(name) != right.get(name)]


def is_replaced_unseen(written, removal):
    """Whether a program took something away unseen right after this was written, or a while after at the same name: others
    may have moved it to where that was."""
    when, then = written.split()[0], removal.split()[1]
    # A name may have spaces.
    names = [each.split("/mnt/", 1)[-1] for each in (written, removal)]
    seconds = [sum(float(part) * unit for part, unit in zip(each.split(":"), (3600, 60, 1))) for each in (when, then)]
    return 0 <= seconds[1] - seconds[0] <= (60 if names[0] == names[1] else 10)


def trees_of(machines, store):
    trees = {f"machine {machine.number}": tree(machine.top) for machine in machines}
    if store.kind == "folder":
        trees["the store"] = tree(store.top)
    return trees


def differences(trees):
    first, *others = trees
    found = {other: difference(trees[first], trees[other]) for other in others}
    return [f"{first} and {other} differ:\n  " + "\n  ".join(lines[:8]) for other, lines in found.items() if lines]


def agreed_trees(machines, store):
    """What all show, when they have had time to hear of each other: a store that is busy is slow. And what a machine shows that
    knows nothing yet, where the store cannot be looked at by itself."""
    end = time.monotonic() + PATIENCE
    while True:
        trees = trees_of(machines, store)
        problems = differences(trees)
        if not problems or time.monotonic() > end:
            return trees, problems
        print("they differ still: " + problems[0].splitlines()[1].strip()[:150], flush=True)
        time.sleep(15)
        settle(machines)


def check(machines, store, journals, arguments):
    trees, problems = agreed_trees(machines, store)
    written, given, raced = {}, set(), []
    for journal in journals:
        with open(journal) as file:
            for line in file:
                kind, when, *tokens = line.split()
                if kind == "W":
                    written[tokens[0]] = f"{when} {' '.join(tokens[1:])}"
                elif kind == "G":
                    given.update(tokens)
                else:
                    raced.append(line.strip())
    present = set()
    for shown in trees.values():
        for content in shown.values():
            if isinstance(content, bytes):
                present |= tokens_of(content)
    lost = sorted(set(written) - given - present)
    # A program had looked at what a name stood for, and replaced what another machine put there since.
    unseen = {token for token in lost if any(is_replaced_unseen(written[token], each) for each in raced)}
    lost = [token for token in lost if token not in unseen]
    if lost:
        problems.append(f"lost: {[(token, written[token]) for token in lost[:10]]}, {len(lost)} in all; unseen: {raced}")
    names = set().union(*trees.values())
    left = [name for name in names if ".promisefs-" in name]
    if left:
        problems.append(f"temporary names are left: {left[:5]}")
    conflicts = [name for name in names if "conflict" in name]
    if arguments.only_one and conflicts:
        problems.append(f"conflicts, though only one machine worked: {conflicts[:5]}")
    for machine in machines:
        machine.run("verify", machine.top)
    if problems:
        raise Failed("\n".join(problems))
    return f"{len(written)} tokens written, {len(given)} given away, {len(unseen)} replaced unseen, none lost; {len(names)} names, {len(conflicts)} conflicts"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--executable", required=True)
    parser.add_argument("--store", choices=["folder", "apache", "moto"], default="folder")
    parser.add_argument("--machines", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--folder", default=None, help="where the temporary folders are made")
    for option in ("calm", "only-one", "keep"):
        parser.add_argument("--" + option, action="store_true")
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(10**9)
    print(f"seed {seed}, {arguments.machines} machines, {arguments.store}, {arguments.seconds:.0f} s", flush=True)
    folder = tempfile.mkdtemp(prefix="side-by-side.", dir=arguments.folder)
    store, machines, failed = None, [], True
    try:
        store = Store(arguments.store, folder)
        machines = [Machine(arguments.executable, folder, number, store) for number in range(arguments.machines)]
        for machine in machines:
            machine.mount()
        journals = work(machines, arguments, random.Random(seed), folder)
        settle(machines)
        if store.kind == "moto":
            machines.append(Machine(arguments.executable, folder, arguments.machines, store))
            machines[-1].mount()
        print(check(machines, store, journals, arguments), flush=True)
        failed = False
    except (Failed, subprocess.TimeoutExpired, OSError) as problem:
        print(f"FAILED (seed {seed}): {problem}", flush=True)
    finally:
        keeps = failed and arguments.keep
        for machine in machines:
            machine.clean_up()
        if store:
            store.stop()
        if keeps:
            print(f"kept: {folder}", flush=True)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
