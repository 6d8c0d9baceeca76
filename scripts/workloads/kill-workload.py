#!/usr/bin/env python3
"""Kills the daemon at random moments of a workload, mounts again, and checks that nothing that had returned is lost.

usage: kill-workload.py --executable PROMISEFS [--kills 15] [--seed N] [--folder DIR] [--keep]

A worker process creates, writes, truncates, appends, renames, links and deletes in the mount and journals each call
before it is made and after it has returned. After a kill and a new mount, the tree must be what the journal says; the
one call in flight may have happened or not (a write: any part of it from its start). At the end everything is
uploaded: the provider's folder equals the mount, and no conflict was made up. Prints the seed first.
"""
import argparse, copy, fcntl, json, os, random, shutil, signal, stat, subprocess, sys, tempfile, time

WORKLOAD = "work"


def tell(text):
    print(text, flush=True)


class Failed(Exception):
    pass


# ---- the model: what the tree must be -------------------------------------------------------------------------
class Model:
    """Files by path, with shared content objects for hard links; folders as a set of paths. The root is ''."""

    def __init__(self):
        self.folders = {""}
        self.files = {}  # path -> [content]: a list of one, shared by hard links
        self.symlinks = {}

    def names(self):
        return set(self.files) | set(self.symlinks) | (self.folders - {""})

    def apply(self, operation):
        kind, *rest = operation
        getattr(self, "apply_" + kind)(*rest)

    def apply_mkdir(self, path):
        self.folders.add(path)

    def apply_rmdir(self, path):
        self.folders.discard(path)

    def apply_create(self, path):
        self.files[path] = [b""]

    def apply_empty(self, path):
        self.files[path][0] = b""

    def apply_truncate(self, path, size):
        content = self.files[path][0]
        self.files[path][0] = content[:size] + bytes(max(0, size - len(content)))

    def apply_write(self, path, offset, seed, size):
        content = self.files[path][0]
        data = random.Random(seed).randbytes(size)
        self.files[path][0] = content[:offset] + bytes(max(0, offset - len(content))) + data + content[offset + size :]

    def apply_close(self, path):
        pass

    def apply_unlink(self, path):
        self.files.pop(path, None) or self.symlinks.pop(path, None)

    def apply_symlink(self, path, target):
        self.symlinks[path] = target

    def apply_link(self, path, new):
        self.files[new] = self.files[path]

    def apply_rename(self, path, new):
        if path in self.folders:
            for table in (self.files, self.symlinks):
                for name in [name for name in table if name.startswith(path + "/")]:
                    table[new + name[len(path) :]] = table.pop(name)
            moved = {name for name in self.folders if name == path or name.startswith(path + "/")}
            self.folders = (self.folders - moved) | {new + name[len(path) :] for name in moved}
        elif path in self.files:
            self.symlinks.pop(new, None)
            self.files[new] = self.files.pop(path)
        else:
            self.files.pop(new, None)
            self.symlinks[new] = self.symlinks.pop(path)

    def tree(self):
        result = {path: "folder" for path in self.folders if path}
        result.update({path: content[0] for path, content in self.files.items()})
        result.update({path: "-> " + target for path, target in self.symlinks.items()})
        return result


def tree_of(top):
    result = {}
    for folder, folders, files in os.walk(top):
        for name in folders + files:
            path = os.path.join(folder, name)
            relative = os.path.relpath(path, top)
            status = os.lstat(path)
            if stat.S_ISDIR(status.st_mode):
                result[relative] = "folder"
            elif stat.S_ISLNK(status.st_mode):
                result[relative] = "-> " + os.readlink(path)
            else:
                with open(path, "rb") as file:
                    result[relative] = file.read()
                if len(result[relative]) != status.st_size:
                    raise Failed(f"{relative}: stat says {status.st_size} bytes, {len(result[relative])} were read")
    return result


def describe(value):
    if value is None:
        return "nothing"
    return value if isinstance(value, str) else f"{len(value)} bytes ({value[:8].hex()}…)"


# ---- the workload, in a process of its own ---------------------------------------------------------------------
class Worker:
    def __init__(self, top, journal, model, seed):
        self.top, self.journal, self.model = top, journal, model
        self.random = random.Random(seed)
        self.count = 0

    def call(self, operation, action):
        """One system call between two lines of the journal."""
        self.journal.write(json.dumps(operation) + "\n")
        result = action()
        self.journal.write("done\n")
        self.model.apply(operation)
        return result

    def path(self, name):
        return os.path.join(self.top, name)

    def new_name(self):
        self.count += 1
        folder = self.random.choice(sorted(self.model.folders))
        return os.path.join(folder, f"n{self.random.randrange(10**9)}-{self.count}")

    def file(self):
        return self.random.choice(sorted(self.model.files)) if self.model.files else None

    def write(self, name, descriptor, offset):
        seed, size = self.random.randrange(10**9), self.random.choice([1, 100, 4096, 20_000, 131_072])
        data = random.Random(seed).randbytes(size)

        def action():
            if os.pwrite(descriptor, data, offset) != size:
                raise OSError("short write")

        self.call(["write", name, offset, seed, size], action)
        return offset + size

    def finish(self, name, descriptor):
        if self.random.random() < 0.2:
            os.fsync(descriptor)
        self.call(["close", name], lambda: os.close(descriptor))

    def create(self):
        name = self.new_name()
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR
        descriptor = self.call(["create", name], lambda: os.open(self.path(name), flags, 0o644))
        offset = 0
        for _ in range(self.random.randrange(0, 4)):
            offset = self.write(name, descriptor, offset)
        self.finish(name, descriptor)

    def overwrite(self):
        name = self.file()
        descriptor = self.call(["empty", name], lambda: os.open(self.path(name), os.O_WRONLY | os.O_TRUNC))
        self.write(name, descriptor, 0)
        self.finish(name, descriptor)

    def patch(self):
        name = self.file()
        descriptor = os.open(self.path(name), os.O_RDWR)
        size = len(self.model.files[name][0])
        self.write(name, descriptor, self.random.choice([size, self.random.randrange(size + 1)]))
        self.finish(name, descriptor)

    def truncate(self):
        name = self.file()
        size = self.random.randrange(2 * len(self.model.files[name][0]) + 2)
        self.call(["truncate", name, size], lambda: os.truncate(self.path(name), size))

    def rename(self):
        name = self.file()
        over = self.file() if self.random.random() < 0.3 else None
        # Renaming a file onto another name of itself does nothing; the model has no words for it.
        if over is None or self.model.files[over] is self.model.files[name]:
            over = self.new_name()
        self.call(["rename", name, over], lambda: os.rename(self.path(name), self.path(over)))

    def save_safely(self):
        """As editors do: write beside, then rename over."""
        name = self.file()
        beside = os.path.join(os.path.dirname(name), f".save{self.random.randrange(10**9)}.tmp")
        descriptor = self.call(["create", beside], lambda: os.open(self.path(beside), os.O_CREAT | os.O_WRONLY, 0o644))
        self.write(beside, descriptor, 0)
        self.finish(beside, descriptor)
        self.call(["rename", beside, name], lambda: os.rename(self.path(beside), self.path(name)))

    def make_folder(self):
        if len(self.model.folders) > 40:
            return self.remove_folder()
        name = self.new_name()
        self.call(["mkdir", name], lambda: os.mkdir(self.path(name)))

    def move_folder(self):
        folders = sorted(self.model.folders - {""})
        if not folders:
            return self.make_folder()
        name, new = self.random.choice(folders), self.new_name()
        if not (new + "/").startswith(name + "/"):
            self.call(["rename", name, new], lambda: os.rename(self.path(name), self.path(new)))

    def remove_folder(self):
        used = {os.path.dirname(name) for name in self.model.names()}
        empty = sorted(self.model.folders - used - {""})
        if empty:
            name = self.random.choice(empty)
            self.call(["rmdir", name], lambda: os.rmdir(self.path(name)))

    def remove(self):
        many_links = len(self.model.symlinks) > 20
        name = self.random.choice(sorted(self.model.symlinks)) if many_links else self.file()
        self.call(["unlink", name], lambda: os.unlink(self.path(name)))

    def link(self):
        name, new = self.file(), self.new_name()
        self.call(["link", name, new], lambda: os.link(self.path(name), self.path(new)))

    def symlink(self):
        name = self.new_name()
        self.call(["symlink", name, "somewhere/else"], lambda: os.symlink("somewhere/else", self.path(name)))

    def run(self):
        steps = [self.create] * 6 + [self.overwrite, self.patch, self.patch, self.truncate, self.rename, self.rename]
        steps += [self.save_safely, self.save_safely, self.make_folder, self.move_folder, self.remove_folder, self.link]
        steps += [self.symlink, self.remove, self.remove]
        while True:
            # The tree stays small, so that it can be read as a whole after each kill.
            if len(self.model.files) > 250:
                self.remove()
            elif len(self.model.files) < 5:
                self.create()
            else:
                self.random.choice(steps)()


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


# ---- the daemon ------------------------------------------------------------------------------------------------
class Mount:
    def __init__(self, executable, folder):
        self.executable = executable
        self.cloud, self.state, self.top = (os.path.join(folder, name) for name in ("cloud", "state", "mnt"))
        for path in (self.cloud, self.state, self.top):
            os.mkdir(path)
        self.environment = dict(os.environ)
        for name in ("RUNTIME_DIR", "STATE_HOME", "DATA_HOME", "CONFIG_HOME"):
            path = os.path.join(folder, name.lower())
            os.mkdir(path, 0o700)
            self.environment["XDG_" + name] = path
        self.log = open(os.path.join(folder, "daemon.log"), "ab")

    def command(self):
        return [self.executable, "mount", "--state-dir", self.state, "--domain", "kill", "--upload-delay", "200ms",
                "folder:" + self.cloud, self.top]

    def mount(self):
        done = subprocess.run(self.command(), env=self.environment, stdin=subprocess.DEVNULL, stdout=self.log,
                              stderr=subprocess.PIPE, timeout=60)
        if done.returncode != 0:
            raise Failed(f"mount exits {done.returncode}: {done.stderr.decode(errors='replace').strip()}")

    def mount_and_kill(self, after):
        """Kills in the middle of recovery."""
        starting = subprocess.Popen(self.command(), env=self.environment, stdin=subprocess.DEVNULL, stdout=self.log,
                                    stderr=self.log, start_new_session=True)
        time.sleep(after)
        self.kill()
        starting.kill()
        starting.wait()
        self.kill()

    def processes(self):
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
                is_ours = os.path.realpath(f"/proc/{name}/exe") == os.path.realpath(self.executable)
            except OSError:
                continue
            if is_ours and any(os.fsencode(self.state) in word for word in words):
                found.append(int(name))
        return found

    def kill(self):
        for process in self.processes():
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        deadline = time.monotonic() + 10
        while self.processes():
            if time.monotonic() > deadline:
                raise Failed("a killed daemon is still there")
            time.sleep(0.005)
        # A thread that is inside a call of the disk keeps the files open for longer than the process can be seen.
        lock = os.path.join(self.state, "lock")
        if not os.path.exists(lock):
            return
        with open(lock, "rb") as file:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise Failed("a killed daemon still holds its lock")
                    time.sleep(0.005)

    def command_line(self, *words, timeout=180):
        return subprocess.run([self.executable, *words], env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout)

    def clean_up(self):
        self.kill()
        subprocess.run(["umount", "-l", self.top], stderr=subprocess.DEVNULL)
        if os.path.ismount(self.top):
            subprocess.run(["fusermount3", "-uz", self.top], stderr=subprocess.DEVNULL)


# ---- the check -------------------------------------------------------------------------------------------------
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


def differences(expected, actual):
    return [f"{path}: should be {describe(expected.get(path))}, is {describe(actual.get(path))}"
            for path in sorted(set(expected) | set(actual)) if expected.get(path) != actual.get(path)]


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
    checked = mount.command_line("verify", mount.top)
    if checked.returncode != 0:
        raise Failed("verify: " + checked.stdout.decode(errors="replace"))
    return model, count


def final_check(mount, model):
    waited = mount.command_line("sync", "--wait", mount.top, timeout=300)
    if waited.returncode != 0:
        raise Failed(f"sync --wait exits {waited.returncode}: {waited.stdout.decode(errors='replace').strip()}")
    expected = model.tree()
    for label, top in (("mount", mount.top), ("provider", mount.cloud)):
        found = differences(expected, tree_of(os.path.join(top, WORKLOAD)))
        if found:
            raise Failed(f"at the end the {label} differs:\n  " + "\n  ".join(found[:10]))
        strangers = [name for name in os.listdir(top) if name not in (WORKLOAD, ".promisefs")]
        if strangers:
            raise Failed(f"at the end the {label} has {strangers} that nobody made")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--executable", required=True)
    parser.add_argument("--kills", type=int, default=15)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--folder", default=None, help="where the temporary folders are made")
    parser.add_argument("--keep", action="store_true", help="keep the folders when something failed")
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(10**9)
    tell(f"seed {seed}, {arguments.kills} kills")
    generator = random.Random(seed)
    folder = tempfile.mkdtemp(prefix="pfs-kill-", dir=arguments.folder)
    mount = Mount(os.path.abspath(arguments.executable), folder)
    model, calls, failed = Model(), 0, False
    try:
        mount.mount()
        os.mkdir(os.path.join(mount.top, WORKLOAD))
        for index in range(arguments.kills):
            model, count = one_kill(mount, model, generator, os.path.join(folder, "journal"))
            calls += count
            if (index + 1) % 10 == 0:
                tell(f"{index + 1} kills, {calls} calls, {len(model.names())} names: nothing lost")
        final_check(mount, model)
        tell(f"{arguments.kills} kills, {calls} calls had returned, none lost; the provider equals the mount")
    except (Failed, subprocess.TimeoutExpired, OSError) as problem:
        failed = True
        tell(f"FAILED (seed {seed}): {problem}")
    finally:
        mount.clean_up()
        mount.log.close()
        if failed:
            with open(os.path.join(folder, "daemon.log"), "rb") as log:
                tell("the daemon's last words:\n" + log.read()[-4000:].decode(errors="replace"))
        if not (failed and arguments.keep):
            shutil.rmtree(folder, ignore_errors=True)
        else:
            tell(f"kept: {folder}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
