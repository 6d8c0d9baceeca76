#!/usr/bin/env python3
"""Fails every labelled system call of a mount's daemon in turn and checks that nothing is lost.

usage: fault-matrix.py --executable PROMISEFS [--folder DIR] [--calls 3] [--labels PATTERN,…] [--faults EIO,ENOSPC,EINTR,short]
                       [--at-start] [--seed N] [--keep DIR]

One mount after the other, each with a fault armed while a mixed workload runs: the N-th call at one label fails. After it

- every call of the workload has returned success or an errno that SEMANTICS names;
- the mount works: what failed can be repeated;
- what returned is there, compared with a model; what failed has happened or has not;
- `verify` is clean, also after a kill and a new mount, and the provider equals the mount after `sync --wait`.

A label whose call is not reached is not counted. Exit status 1 when anything was found; each finding is one line with what reproduces it.

> A system call of content or index that fails costs the call on the mount that needed it, with `EIO`, `ENOSPC` or `EDQUOT`;
> A close tells nobody. When what was written cannot be noted at the last close, it is tried again every second, the file
> An item whose content cannot be read is not sent;
"""
import argparse, errno, fnmatch, json, os, random, shutil, stat, sys, tempfile, time

from domain import Failed, Mount

DOCUMENTED = {
    errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.ENETDOWN, errno.ETIMEDOUT, errno.ESTALE, errno.EINTR, errno.EBUSY,
    errno.EACCES, errno.ENOENT, errno.EEXIST,
}
MAYBE = object()


class FaultyMount(Mount):
    """A domain whose daemon can be told to fail a system call."""

    def __init__(self, executable, folder):
        self.faults = os.path.join(folder, "faults")
        super().__init__(executable, folder, ["--no-supervision"], name="fault", upload_delay="100ms",
                         environment={"PROMISEFS_FAULT_FILE": self.faults})

    # Arming: the file appears at once, as the daemon may look at any time.
    def arm(self, label, call, fault):
        with open(self.faults + ".new", "w") as file:
            file.write(f"{label} {call} {fault}\n")
        os.rename(self.faults + ".new", self.faults)

    def disarm(self):
        if os.path.exists(self.faults):
            os.unlink(self.faults)

    def fault_log(self):
        try:
            return open(self.faults + ".log").read().splitlines()
        except FileNotFoundError:
            return []

    def happened(self):
        return any(line.startswith("failed ") for line in self.fault_log())

    def reached(self):
        return {line.split()[1] for line in self.fault_log() if line.startswith("reached ")}

    def check(self, when):
        text = self.run("verify", "--json", self.top, statuses=range(256))
        try:
            document = json.loads(text)
        except ValueError:
            raise Failed(f"verify {when} answers {text[:300]!r}")
        document = document[0] if isinstance(document, list) else document
        if document["problems"]:
            raise Failed(f"verify {when}: {document['problems'][:3]}")


class Workload:
    """The model holds what each path must be: bytes, a link's target, "folder", or a list of what it may be."""

    def __init__(self, top, seed):
        self.top, self.random, self.model, self.troubles = top, random.Random(seed), {}, []

    def path(self, name):
        return os.path.join(self.top, name)

    def attempt(self, action, *, before, after):
        """Runs one call. `before` and `after`: what the model says of the paths it changes, if it fails or not."""
        try:
            action()
        except OSError as error:
            if error.errno not in DOCUMENTED:
                raise Failed(f"errno {errno.errorcode.get(error.errno, error.errno)}: {error}")
            self.troubles.append(errno.errorcode[error.errno])
            for name in set(before) | set(after):
                choices = self.choices(before.get(name)) + self.choices(after.get(name))
                self.model[name] = choices
            return False
        self.model.update(after)
        return True

    def choices(self, value):
        return list(value) if isinstance(value, list) else [value]

    def now(self, *names):
        return {name: self.model.get(name) for name in names}

    def create(self, name, data):
        def action():
            descriptor = os.open(self.path(name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            try:
                # What of the bytes was written when a write fails is not known.
                if data and os.write(descriptor, data) != len(data):
                    raise OSError(errno.EIO, "short write")
            finally:
                os.close(descriptor)

        # A file that was opened and not written to may be there and empty, or hold a part.
        before = self.now(name)
        if self.attempt(action, before=before, after={name: data}) is False:
            self.model[name] = self.choices(before[name]) + [data, b"", MAYBE]

    def write(self, name, offset, data, synced=False):
        known = self.model.get(name)

        def action():
            descriptor = os.open(self.path(name), os.O_WRONLY)
            try:
                os.pwrite(descriptor, data, offset)
                if synced:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)

        after = known[:offset] + bytes(max(0, offset - len(known))) + data + known[offset + len(data) :]
        if self.attempt(action, before={name: known}, after={name: after}) is False:
            self.model[name] = [known, after, MAYBE]

    def truncate(self, name, size):
        known = self.model.get(name)
        after = known[:size] + bytes(max(0, size - len(known)))
        self.attempt(lambda: os.truncate(self.path(name), size), before={name: known}, after={name: after})

    def rename(self, name, new):
        known = self.model.get(name)
        self.attempt(
            lambda: os.rename(self.path(name), self.path(new)), before=self.now(name, new), after={name: None, new: known})

    def unlink(self, name):
        self.attempt(lambda: os.unlink(self.path(name)), before=self.now(name), after={name: None})

    def mkdir(self, name):
        self.attempt(lambda: os.mkdir(self.path(name)), before=self.now(name), after={name: "folder"})

    def rmdir(self, name):
        self.attempt(lambda: os.rmdir(self.path(name)), before=self.now(name), after={name: None})

    def symlink(self, name, target):
        self.attempt(lambda: os.symlink(target, self.path(name)), before=self.now(name), after={name: "-> " + target})

    def link(self, name, new):
        known = self.model.get(name)
        self.attempt(lambda: os.link(self.path(name), self.path(new)), before=self.now(new), after={new: known})

    def certain(self, *names):
        return all(isinstance(self.model.get(name), bytes) for name in names)

    def read(self, name):
        try:
            with open(self.path(name), "rb") as file:
                found = file.read()
        except OSError as error:
            if error.errno not in DOCUMENTED:
                raise Failed(f"reading: errno {errno.errorcode.get(error.errno, error.errno)}")
            self.troubles.append(errno.errorcode[error.errno])
            return
        known = self.model.get(name)
        if isinstance(known, bytes) and found != known:
            raise Failed(f"{name} reads wrong: {len(found)} bytes instead of {len(known)}")

    def run(self, control):
        data = self.random.randbytes
        for number in range(6):
            self.mkdir(f"d{number}")
            self.create(f"f{number}", data(3000 + number))
        self.create("large", data(300_000))
        self.symlink("l0", "f0")
        for number in range(3):
            name = f"f{number}"
            if self.certain(name):
                self.write(name, 1000, data(5000), synced=number == 0)
        if self.certain("f3"):
            self.truncate("f3", 10)
        if self.certain("f4", "f5"):
            self.rename("f4", "f5")
        if self.certain("f1"):
            self.link("f1", "h1")
        # A document saved by a temporary file.
        if self.certain("f2"):
            self.create("f2.new", data(700))
            if self.certain("f2.new"):
                self.rename("f2.new", "f2")
        for name in sorted(self.model):
            if name.startswith("f") and self.model[name] is not None:
                self.read(name)
        control("sync", "--wait")
        # Placeholders that come back, whole and in part; edits of what the provider has.
        for name in ("seen0", "seen1", "seen-large"):
            self.read(name)
        control("evict")
        for name in ("seen0", "f0", "large", "seen-large"):
            self.read(name)
        if self.certain("seen1"):
            self.write("seen1", 5, b"edited", synced=True)
        if self.certain("seen-large"):
            self.write("seen-large", 2_000_000, b"edited in the middle")
            self.truncate("seen-large", 2_500_000) if self.certain("seen-large") else None
        self.rmdir("d5")
        for name in ("d4", "seen2"):
            self.unlink(name) if name == "seen2" else self.rmdir(name)
        control("sync", "--wait")

    def repeat(self):
        """After the fault the mount works as if it had never been."""
        for name in ("again", "again2"):
            with open(self.path(name), "wb") as file:
                file.write(name.encode() * 100)
                file.flush()
                os.fsync(file.fileno())
            self.model[name] = name.encode() * 100
        os.rename(self.path("again2"), self.path("again3"))
        self.model["again3"] = self.model.pop("again2")
        for name, value in list(self.model.items()):
            if isinstance(value, list) and os.path.lexists(self.path(name)) and not os.path.isdir(self.path(name)):
                os.unlink(self.path(name))
                self.model[name] = None
        for name in os.listdir(self.path("d0")) if os.path.isdir(self.path("d0")) else []:
            raise Failed(f"d0 holds {name}")

    def compare(self, top, side):
        found = {}
        for folder, folders, files in os.walk(top):
            for name in folders + files:
                path = os.path.join(folder, name)
                relative = os.path.relpath(path, top)
                if relative.startswith(".promisefs"):
                    continue
                status = os.lstat(path)
                if stat.S_ISDIR(status.st_mode):
                    found[relative] = "folder"
                elif stat.S_ISLNK(status.st_mode):
                    found[relative] = "-> " + os.readlink(path)
                else:
                    with open(path, "rb") as file:
                        found[relative] = file.read()
                    if len(found[relative]) != status.st_size:
                        raise Failed(f"{side}: {relative} has {status.st_size} bytes by stat, {len(found[relative])} were read")
        for name in sorted(set(found) | set(self.model)):
            value, known = found.get(name), self.model.get(name)
            if isinstance(known, list):
                if value in [choice for choice in known if choice is not MAYBE] or MAYBE in known:
                    continue
                raise Failed(f"{side}: {name} is neither as before nor as after a failed call")
            if value != known:
                raise Failed(f"{side}: {name} is {describe(value)} instead of {describe(known)}")


def describe(value):
    return "missing" if value is None else value if isinstance(value, str) else f"{len(value)} bytes ({value[:6].hex()}…)"


def prepare(domain, workload, seed):
    random_bytes = random.Random(seed + 1).randbytes
    for name, size in (("seen0", 4000), ("seen1", 5000), ("seen2", 100), ("seen-large", 3_000_000)):
        data = random_bytes(size)
        with open(os.path.join(domain.cloud, name), "wb") as file:
            file.write(data)
        workload.model[name] = data


def trial(options, label, call, fault):
    """One mount, one fault. Returns whether it happened, and the labels reached."""
    top = tempfile.mkdtemp(prefix="pfs-fault-", dir=options.folder)
    domain = FaultyMount(options.executable, top)
    workload = Workload(domain.top, options.seed)
    try:
        prepare(domain, workload, options.seed)
        at_start = label is not None and label.startswith("index.") and options.at_start
        if at_start:
            domain.arm(label, call, fault)
            domain.mount(check=False)
            if not domain.processes():
                domain.disarm()
                domain.mount()
        else:
            domain.mount()
            if label is not None:
                domain.arm(label, call, fault)

        def control(command, *words):
            domain.run(command, *words, domain.top, statuses=(0, 1, 4, 6, 7), timeout=120)

        workload.run(control)
        reached, happened = domain.reached(), domain.happened()
        domain.disarm()
        if label is not None and not happened:
            return False, reached
        if not domain.processes():
            raise Failed("the daemon has died")
        options.told += bool(workload.troubles)
        # What failed is looked at before anything is repeated, which could hide it.
        domain.check("right after the fault")
        workload.compare(domain.top, "mount right after the fault")
        domain.settle(timeout=120)
        workload.compare(domain.cloud, "provider right after the fault")
        workload.repeat()
        domain.settle(timeout=120)
        workload.compare(domain.top, "mount")
        workload.compare(domain.cloud, "provider")
        domain.check("while mounted")
        domain.kill()
        domain.mount()
        domain.settle(timeout=120)
        domain.check("after a kill and a new mount")
        workload.compare(domain.top, "mount after a restart")
        workload.compare(domain.cloud, "provider after a restart")
        domain.disarm()
        domain.run("unmount", domain.top, statuses=(0, 7))
        return True, reached
    except Failed as problem:
        print(f"FOUND {label} {call} {fault}: {problem} (calls that failed: {workload.troubles})", flush=True)
        if options.keep:
            shutil.copytree(domain.state, options.keep + f"/{label}-{call}-{fault}", dirs_exist_ok=True)
        options.found += 1
        return True, set()
    except OSError as problem:
        print(f"FOUND {label} {call} {fault}: afterwards {problem} (calls that failed: {workload.troubles})", flush=True)
        options.found += 1
        return True, set()
    finally:
        if options.keep and os.path.exists(domain.state + "/log/daemon.log"):
            shutil.copy(domain.state + "/log/daemon.log", options.keep + f"/{label}-{call}-{fault}.log")
        domain.clean_up()
        shutil.rmtree(top, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executable", required=True)
    parser.add_argument("--folder", default="/var/tmp")
    parser.add_argument("--calls", type=int, default=3)
    parser.add_argument("--labels", default="*")
    parser.add_argument("--faults", default="EIO,ENOSPC,EINTR,short")
    parser.add_argument("--at-start", action="store_true", help="arm before the mount: faults of opening the index, too")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--keep", help="a folder for logs and the state of what was found")
    options = parser.parse_args()
    options.found = options.told = 0
    if options.keep:
        os.makedirs(options.keep, exist_ok=True)
    print(f"seed {options.seed}", flush=True)
    _, labels = trial(options, None, 0, "none")
    labels = sorted(
        label for label in labels if any(fnmatch.fnmatch(label, each) for each in options.labels.split(",")))
    print(f"{len(labels)} labels reached: {' '.join(labels)}", flush=True)
    count, start = 0, time.time()
    for label in labels:
        for fault in options.faults.split(","):
            for call in range(1, options.calls + 1):
                happened, _ = trial(options, label, call, fault)
                if not happened:
                    break
                count += 1
    print(f"{count} faults in {time.time() - start:.0f} s, {options.told} of them seen by a program, {options.found} found", flush=True)
    sys.exit(1 if options.found or not count else 0)


main()
