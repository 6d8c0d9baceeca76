#!/usr/bin/env python3
"""Many processes do everything at once: create, rename, hydrate, evict, write, map, move folders, and change things there too.

usage: mixed-workload.py MOUNT PROVIDER --executable PROMISEFS [--seconds 60] [--processes 16] [--seed N]

No call may fail but for what the others explain (a name that one of them has just removed), and all must end. At the end the
provider must have what the mount shows. Prints operations, and the daemon's memory and what the kernel holds of it, every ten
seconds and at the end, when the kernel has been told to forget (as root).
"""
import argparse, errno, json, mmap, multiprocessing, os, random, shutil, subprocess, sys, time

# A name may be gone, or there again, because somebody else was quicker; a file may have been replaced under the hand.
EXPLAINED = {errno.ENOENT, errno.EEXIST, errno.ENOTEMPTY, errno.ESTALE, errno.ENOTDIR, errno.EISDIR}


class Program:
    def __init__(self, mount, provider, executable, number, seed):
        self.mount, self.provider, self.executable = mount, provider, executable
        self.random = random.Random(f"{seed}-{number}")

    def name(self, top=None):
        folder = f"f{self.random.randrange(8)}"
        if self.random.random() < 0.2:
            folder = self.folder()
        return os.path.join(top or self.mount, folder, f"n{self.random.randrange(60)}")

    def folder(self):
        """One that comes and goes."""
        return os.path.join(f"f{self.random.randrange(8)}", f"d{self.random.randrange(3)}")

    def content(self):
        return self.random.randbytes(self.random.choice([0, 10, 4096, 60_000, 300_000]))

    def create(self):
        with open(self.name(), "wb") as file:
            file.write(self.content())

    def read(self):
        with open(self.name(), "rb") as file:
            file.read()

    def write(self):
        descriptor = os.open(self.name(), os.O_RDWR)
        try:
            size = os.fstat(descriptor).st_size
            os.pwrite(descriptor, self.content(), self.random.randrange(size + 1))
            if self.random.random() < 0.1:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def map(self):
        # Its own: of a file that others truncate a mapped page may go, which is a SIGBUS on any disk.
        path = os.path.join(self.mount, "f0", f"mapped-{os.getpid()}")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            size = os.fstat(descriptor).st_size
            if size == 0:
                os.pwrite(descriptor, self.random.randbytes(100_000), 0)
                size = 100_000
            with mmap.mmap(descriptor, size) as mapping:
                place = self.random.randrange(size)
                mapping[place] = (mapping[place] + 1) % 256
        finally:
            os.close(descriptor)
        if self.random.random() < 0.3:
            self.evict(path)

    def rename(self):
        os.rename(self.name(), self.name())

    def save(self):
        target = self.name()
        beside = f"{target}.{os.getpid()}.tmp"
        with open(beside, "wb") as file:
            file.write(self.content())
        os.rename(beside, target)

    def remove(self):
        os.unlink(self.name())

    def list(self):
        with os.scandir(os.path.dirname(self.name())) as entries:
            for entry in entries:
                entry.stat(follow_symlinks=False)
                # Settled by its user, or there would be more of them all the time.
                if "(conflict, " in entry.name:
                    os.unlink(entry.path)

    def evict(self, path=None):
        try:
            os.setxattr(path or self.name(), "user.promisefs.state", b"placeholder")
        except OSError as problem:
            # Edited or open.
            if problem.errno != errno.EBUSY:
                raise

    def make_folder(self, top=None):
        os.mkdir(os.path.join(top or self.mount, self.folder()))

    def move_folder(self, top=None):
        os.rename(os.path.join(top or self.mount, self.folder()), os.path.join(top or self.mount, self.folder()))

    def remove_folder(self, top=None):
        shutil.rmtree(os.path.join(top or self.mount, self.folder()))

    def change_there(self):
        path = self.name(self.provider)
        with open(path + f".{os.getpid()}.part", "wb") as file:
            file.write(self.content())
        os.rename(path + f".{os.getpid()}.part", path)

    def remove_there(self):
        os.unlink(self.name(self.provider))

    def rename_there(self):
        os.rename(self.name(self.provider), self.name(self.provider))

    def make_folder_there(self):
        self.make_folder(self.provider)

    def move_folder_there(self):
        self.move_folder(self.provider)

    def remove_folder_there(self):
        self.remove_folder(self.provider)

    def run(self, deadline, counter, problems):
        steps = [self.create] * 3 + [self.read] * 6 + [self.write] * 3 + [self.map, self.rename, self.rename]
        steps += [self.save, self.save, self.remove, self.list, self.list, self.evict, self.evict]
        rare = [self.change_there, self.remove_there, self.rename_there, self.make_folder, self.make_folder]
        rare += [self.move_folder, self.remove_folder, self.make_folder_there, self.move_folder_there, self.remove_folder_there]
        while time.monotonic() < deadline and problems.empty():
            step = self.random.choice(rare if self.random.random() < 0.05 else steps)
            try:
                step()
            except OSError as problem:
                if problem.errno not in EXPLAINED:
                    problems.put(f"{step.__name__}: {problem}")
            with counter.get_lock():
                counter.value += 1


def status(executable, mount):
    text = subprocess.run([executable, "status", "--json", mount], stdout=subprocess.PIPE, check=True, timeout=60).stdout
    return json.loads(text)


def resident(process):
    with open(f"/proc/{process}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


def report(executable, mount, count, start):
    now = status(executable, mount)
    print(f"{time.monotonic() - start:6.0f} s  {count:9} operations  {resident(now['processID']) // 1024} MiB resident  "
          f"{now['kernelNodes']} nodes in the kernel  {now['openFiles']} open  {now['pending']} pending", flush=True)
    return now


def tree_of(top):
    found = {}
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.relpath(path, top).startswith(".promisefs"):
                with open(path, "rb") as file:
                    found[os.path.relpath(path, top)] = file.read()
    return found


def lasting_differences(arguments, patience=60):
    """What mount and provider do not agree about. The last changes made there may still be on their way."""
    end = time.monotonic() + patience
    while True:
        subprocess.run([arguments.executable, "sync", "--wait", arguments.mount], check=True, timeout=300,
                       stdout=subprocess.DEVNULL)
        here, there = tree_of(arguments.mount), tree_of(arguments.provider)
        found = [path for path in sorted(here.keys() | there.keys()) if here.get(path) != there.get(path)]
        if not found:
            return []
        if time.monotonic() > end:
            return [f"{path}: not the same in the mount and at the provider" for path in found]
        time.sleep(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mount")
    parser.add_argument("provider")
    parser.add_argument("--executable", required=True)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    for number in range(8):
        os.makedirs(os.path.join(arguments.mount, f"f{number}"), exist_ok=True)
    subprocess.run([arguments.executable, "sync", "--wait", arguments.mount], check=True, timeout=60, stdout=subprocess.DEVNULL)
    start = time.monotonic()
    counter, problems = multiprocessing.Value("q", 0), multiprocessing.Queue()
    programs = []
    for number in range(arguments.processes):
        program = Program(arguments.mount, arguments.provider, arguments.executable, number, arguments.seed)
        programs.append(multiprocessing.Process(target=program.run, args=(start + arguments.seconds, counter, problems)))
        programs[-1].start()
    next_report = start + 10
    while any(program.is_alive() for program in programs):
        time.sleep(0.2)
        if time.monotonic() > next_report:
            report(arguments.executable, arguments.mount, counter.value, start)
            next_report += max(10, arguments.seconds / 30)
        if time.monotonic() > start + arguments.seconds + 60:
            problems.put("a program hangs")
            for program in programs:
                program.kill()
            break
    for program in programs:
        if program.exitcode not in (0, None):
            problems.put(f"a program ended with status {program.exitcode}")
    for difference in lasting_differences(arguments):
        problems.put(difference)
    if os.geteuid() == 0:
        os.sync()
        for _ in range(3):
            with open("/proc/sys/vm/drop_caches", "w") as file:
                file.write("3")
            time.sleep(0.3)
    last = report(arguments.executable, arguments.mount, counter.value, start)
    # The root folder stays for as long as the mount does.
    if os.geteuid() == 0 and last["kernelNodes"] > 1:
        problems.put(f"the kernel still has {last['kernelNodes']} nodes")
    time.sleep(0.1)
    found = []
    while not problems.empty():
        found.append(problems.get())
    for problem in found[:20]:
        print("FAILED:", problem)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
