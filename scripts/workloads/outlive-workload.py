#!/usr/bin/env python3
"""Kills the daemon again and again while programs work on the mount, and checks that they notice nothing but a pause.

usage: outlive-workload.py --executable PROMISEFS [--kills 20] [--workers 8] [--restarts] [--patience 2] [--seed N] [--keep]

Several processes create, write, read, truncate, rename, link and delete, each in a folder of its own, and know what their
folder must hold. Only the daemon is killed; the holder starts its successor. No call may fail or take longer than
--patience seconds. At the end each folder must be what its process knows, in the mount and at the provider. With --restarts
the daemon is replaced by 'promisefs restart' instead. Prints the seed first.
"""
import json, os, random, signal, sys, time

import domain
from domain import Failed
from kill_model import Model, Worker, differences, tree_of


class PatientWorker(Worker):
    """Measures every call, reads back what it has written, and keeps files open for long."""

    def __init__(self, top, seed):
        super().__init__(top, None, Model(), seed)
        self.calls, self.longest, self.held = 0, 0.0, []

    def call(self, operation, action):
        start = time.monotonic()
        try:
            result = action()
        except OSError as problem:
            raise Failed(f"{operation}: {problem}")
        taken = time.monotonic() - start
        if taken > self.longest:
            self.longest, self.slowest = taken, operation
        self.calls += 1
        if operation[0] != "look":
            self.model.apply(operation)
        return result

    def look(self):
        name = self.file()

        def read():
            with open(self.path(name), "rb") as file:
                return file.read()

        if self.call(["look", name], read) != self.model.files[name][0]:
            raise Failed(f"{name}: read back something else")

    def list_folder(self):
        folder = self.random.choice(sorted(self.model.folders))
        seen = set(self.call(["look", folder], lambda: os.listdir(self.path(folder))))
        names = {os.path.basename(name) for name in self.model.names() if os.path.dirname(name) == folder}
        if seen != names:
            raise Failed(f"{folder}: lists {sorted(seen ^ names)[:5]} wrongly")

    def hold(self):
        """A file that is open over many daemons, sometimes without a name."""
        name = self.new_name()
        descriptor = self.call(["create", name], lambda: os.open(self.path(name), os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o644))
        self.write(name, descriptor, 0)
        content, is_nameless = self.model.files[name][0], self.random.random() < 0.5
        if is_nameless:
            self.call(["unlink", name], lambda: os.unlink(self.path(name)))
        self.held.append((name, descriptor, content if is_nameless else None))
        if len(self.held) > 10:
            name, descriptor, content = self.held.pop(self.random.randrange(len(self.held)))
            seen = self.call(["look", name], lambda: os.pread(descriptor, 1 << 20, 0))
            if content is not None and seen != content:
                raise Failed(f"{name}: an open file without a name has changed")
            self.call(["look", name], lambda: os.close(descriptor))

    def work(self, is_over):
        steps = [self.create] * 5 + [self.overwrite, self.patch, self.truncate, self.rename, self.rename, self.save_safely]
        steps += [self.make_folder, self.move_folder, self.remove_folder, self.link, self.symlink, self.remove, self.remove]
        steps += [self.look] * 5 + [self.list_folder, self.hold]
        while not is_over():
            if len(self.model.files) > 150:
                self.remove()
            elif len(self.model.files) < 5:
                self.create()
            else:
                self.random.choice(steps)()
        for _, descriptor, _ in self.held:
            os.close(descriptor)
        found = differences(self.model.tree(), tree_of(self.top))
        if found:
            raise Failed("at the end:\n  " + "\n  ".join(found[:10]))


def start_worker(top, report, seed):
    child = os.fork()
    if child:
        return child
    ending = []
    signal.signal(signal.SIGTERM, lambda *_: ending.append(True))
    worker, problem = PatientWorker(top, seed), None
    try:
        worker.work(lambda: ending)
    except Exception as error:
        problem = str(error) if isinstance(error, Failed) else repr(error)
    tree = {path: content.hex() if isinstance(content, bytes) else ["", content] for path, content in worker.model.tree().items()}
    with open(report, "w") as file:
        json.dump({"problem": problem, "calls": worker.calls, "longest": worker.longest, "tree": tree,
                   "slowest": getattr(worker, "slowest", None)}, file)
    os._exit(0 if problem is None else 1)


def disturb(mount, arguments, generator):
    if arguments.restarts:
        mount.run("restart", mount.top)
        return time.sleep(generator.uniform(0.2, 1.0))
    if generator.random() < 0.15:
        # While it starts, or has just begun.
        time.sleep(generator.uniform(0, 0.1))
    else:
        try:
            os.lstat(os.path.join(mount.top, f"asks the daemon {generator.random()}"))
        except FileNotFoundError:
            pass
        time.sleep(generator.choice([0.02, 0.1, 0.3, 0.5]) * generator.uniform(0.5, 1.5))
    mount.send(signal.SIGKILL, mount.processes())


def end(workers, reports, patience):
    for worker in workers:
        os.kill(worker, signal.SIGTERM)
    results = []
    for worker, report in zip(workers, reports):
        deadline = time.monotonic() + 60
        while os.waitpid(worker, os.WNOHANG) == (0, 0):
            if time.monotonic() > deadline:
                os.kill(worker, signal.SIGKILL)
                raise Failed(f"worker {worker} hangs")
            time.sleep(0.02)
        with open(report) as file:
            results.append(json.load(file))
    problems = [result["problem"] for result in results if result["problem"]]
    if problems:
        raise Failed("\n".join(problems[:5]))
    longest = max(results, key=lambda result: result["longest"])
    if longest["longest"] > patience:
        raise Failed(f"a call took {longest['longest']:.2f} s: {longest['slowest']}")
    return results, longest["longest"]


def body(mount, arguments, generator):
    mount.mount()
    base = os.path.dirname(mount.top)
    tops = [os.path.join(mount.top, f"w{number}") for number in range(arguments.workers)]
    reports = [os.path.join(base, f"report{number}") for number in range(arguments.workers)]
    for top in tops:
        os.mkdir(top)
    workers = [start_worker(top, report, generator.randrange(10**9)) for top, report in zip(tops, reports)]
    try:
        for index in range(arguments.kills):
            disturb(mount, arguments, generator)
            if any(os.path.exists(report) for report in reports):
                break
            if (index + 1) % 100 == 0:
                print(f"{index + 1} kills", flush=True)
        results, longest = end(workers, reports, arguments.patience)
    except BaseException:
        for worker in workers:
            try:
                os.kill(worker, signal.SIGKILL)
            except ProcessLookupError:
                pass
        raise
    mount.settle()
    for top, result in zip(tops, results):
        expected = {path: bytes.fromhex(value) if isinstance(value, str) else value[1] for path, value in result["tree"].items()}
        found = differences(expected, tree_of(os.path.join(mount.cloud, os.path.basename(top))))
        if found:
            raise Failed("the provider differs:\n  " + "\n  ".join(found[:10]))
    calls = sum(result["calls"] for result in results)
    return f"{arguments.kills} kills, {calls} calls, none failed, the longest took {longest:.2f} s; the provider equals the mount"


def add_arguments(parser):
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--patience", type=float, default=2.0, help="seconds that a call may take")
    parser.add_argument("--restarts", action="store_true", help="'promisefs restart' instead of kills")
    parser.add_argument("--mount", action="append", default=["--no-io-uring"], help="an option of mount")


if __name__ == "__main__":
    domain.run(__doc__, "pfs-outlive-", add_arguments, body)
