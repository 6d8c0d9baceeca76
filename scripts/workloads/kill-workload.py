#!/usr/bin/env python3
"""Kills the daemon at random moments of a workload, mounts again, and checks that nothing that had returned is lost.

usage: kill-workload.py --executable PROMISEFS [--kills 15] [--seed N] [--folder DIR] [--keep]

A worker process creates, writes, truncates, appends, renames, links and deletes in the mount and journals each call
before it is made and after it has returned. After a kill and a new mount, the tree must be what the journal says; the
one call in flight may have happened or not (a write: any part of it from its start). At the end everything is
uploaded: the provider's folder equals the mount, and no conflict was made up. Prints the seed first.
"""
import copy, json, os, random, signal, sys, time

import domain
from domain import Failed
from kill_model import Model, Worker, differences, tree_of

WORKLOAD = "work"


def tell(text):
    print(text, flush=True)


def start_worker(top, journal_path, model, seed):
    child = os.fork()
    if child:
        return child
    status = 0
    try:
        with open(journal_path, "w", buffering=1) as journal:
            try:
                Worker(top, journal, model, seed).run()
            except OSError as problem:
                journal.write(f"failed {problem.errno} {problem.strerror}\n")
    except BaseException as problem:  # reported by the parent, which sees the status
        print(f"the worker itself failed: {problem!r}", file=sys.stderr, flush=True)
        status = 1
    os._exit(status)


def replay(journal_path, model):
    """Applies what returned; gives the call in flight, or None, and how many calls returned."""
    flying, count = None, 0
    with open(journal_path) as journal:
        for line in journal:
            line = line.strip()
            if line == "done":
                model.apply(flying)
                flying, count = None, count + 1
            elif not line.startswith("failed"):
                flying = json.loads(line)
    return flying, count


def reconcile(model, flying, actual):
    """The model that the tree shows: before or after the call in flight. Fails when it is neither."""
    before = differences(model.tree(), actual)
    if not before:
        return model
    if flying is None:
        raise Failed("lost or changed:\n  " + "\n  ".join(before[:10]))
    after_model = copy.deepcopy(model)
    after_model.apply(flying)
    after = differences(after_model.tree(), actual)
    if not after:
        return after_model
    if flying[0] == "write" and isinstance(actual.get(flying[1]), bytes):
        # Killed inside a write: some part of it from its start is there.
        _, path, offset, seed, size = flying
        have = actual[path]
        low = 0
        data = random.Random(seed).randbytes(size)
        while low < size and have[offset + low : offset + low + 1] == data[low : low + 1]:
            low += 1
        for part in {low, low - low % 4096}:
            partial = copy.deepcopy(model)
            old = partial.files[path][0]
            gap = bytes(max(0, offset - len(old))) if part else b""
            partial.files[path][0] = old[:offset] + gap + data[:part] + old[offset + part :]
            if not differences(partial.tree(), actual):
                return partial
    raise Failed(f"with {flying} in flight, neither before:\n  " + "\n  ".join(before[:10])
                 + "\nnor after:\n  " + "\n  ".join(after[:10]))


def one_kill(mount, model, generator, journal):
    worker = start_worker(os.path.join(mount.top, WORKLOAD), journal, copy.deepcopy(model), generator.randrange(10**9))
    time.sleep(generator.choice([0.01, 0.1, 0.4, 1.5]) * generator.uniform(0.2, 1.2))
    # A worker that stopped by itself met an error while the daemon was well.
    early, status = os.waitpid(worker, os.WNOHANG)
    if early:
        with open(journal) as file:
            raise Failed(f"the workload failed on a living mount: {file.readlines()[-2:]} (status {status})")
    mount.kill()
    deadline = time.monotonic() + 20
    while os.waitpid(worker, os.WNOHANG) == (0, 0):
        # Passthrough I/O goes on without a daemon, so the worker may work a while; nothing else may hang.
        if time.monotonic() > deadline:
            os.kill(worker, signal.SIGKILL)
            os.waitpid(worker, 0)
            raise Failed("a program hung after its daemon had died")
        time.sleep(0.005)
    flying, count = replay(journal, model)
    if generator.random() < 0.2:
        mount.mount_and_kill(generator.uniform(0.0, 0.3))
    mount.mount()
    model = reconcile(model, flying, tree_of(os.path.join(mount.top, WORKLOAD)))
    mount.run("verify", mount.top)
    return model, count


def final_check(mount, model):
    mount.settle()
    expected = model.tree()
    for label, top in (("mount", mount.top), ("provider", mount.cloud)):
        found = differences(expected, tree_of(os.path.join(top, WORKLOAD)))
        if found:
            raise Failed(f"at the end the {label} differs:\n  " + "\n  ".join(found[:10]))
        strangers = [name for name in os.listdir(top) if name not in (WORKLOAD, ".promisefs")]
        if strangers:
            raise Failed(f"at the end the {label} has {strangers} that nobody made")


def body(mount, arguments, generator):
    model, calls = Model(), 0
    mount.mount()
    os.mkdir(os.path.join(mount.top, WORKLOAD))
    for index in range(arguments.kills):
        model, count = one_kill(mount, model, generator, os.path.join(os.path.dirname(mount.top), "journal"))
        calls += count
        if (index + 1) % 10 == 0:
            tell(f"{index + 1} kills, {calls} calls, {len(model.names())} names: nothing lost")
    final_check(mount, model)
    return f"{arguments.kills} kills, {calls} calls had returned, none lost; the provider equals the mount"


def add_arguments(parser):
    parser.add_argument("--kills", type=int, default=15)


if __name__ == "__main__":
    domain.run(__doc__, "pfs-kill-", add_arguments, body)
