#!/usr/bin/env python3
"""Fills the disk of a mount's state folder, and checks that writers are told, nothing is lost, and it recovers by itself.

usage: full-disk.py --executable PROMISEFS [--size 48] [--rounds 3] [--seed N] [--kind tmpfs|ext4]

The state folder is on a file system of --size MiB made for this (root only); the provider is elsewhere. In each round programs
write, rename and remove until writes fail; the failures must be ENOSPC and nothing else, what had returned must be there, and
removing must work. Then room is given back, by removing some files or by eviction of what the provider has, and writing must
work again without anybody doing anything else. In the last round the daemon is killed while the disk is full, and started
again. At the end the provider equals the mount and `verify` is clean. Exit status 1 when anything is wrong.
"""
import argparse, errno, json, os, random, shutil, signal, subprocess, sys, tempfile, time, traceback


class Failed(Exception):
    pass


class Domain:
    def __init__(self, options):
        self.executable = options.executable
        self.top = tempfile.mkdtemp(prefix="pfs-full-", dir="/var/tmp")
        for name in ("mnt", "disk", "cloud", "run"):
            os.makedirs(os.path.join(self.top, name))
        self.mount, self.disk, self.cloud = (os.path.join(self.top, name) for name in ("mnt", "disk", "cloud"))
        if options.kind == "tmpfs":
            self.run("mount", "-t", "tmpfs", "-o", f"size={options.size}m", "tmpfs", self.disk)
        else:
            image = os.path.join(self.top, "image")
            with open(image, "wb") as file:
                file.truncate(options.size << 20)
            # In smaller blocks SQLite's shared memory file would not be allocated as it believes, and meet SIGBUS.
            self.run("mkfs.ext4", "-q", "-F", "-m", "0", "-b", "4096", image)
            self.run("mount", "-o", "loop", image, self.disk)
        self.faults = os.path.join(self.top, "faults")
        self.environment = dict(
            os.environ, XDG_RUNTIME_DIR=self.top + "/run", NO_COLOR="1", PROMISEFS_PROVIDER_FAULTS=self.faults)

    def run(self, *words):
        result = subprocess.run(words, capture_output=True, text=True)
        if result.returncode != 0:
            raise Failed(f"{words[0]} exits {result.returncode}: {result.stderr.strip()}")

    def command(self, *words, check=True, seconds=120):
        result = subprocess.run([self.executable, *words], env=self.environment, capture_output=True, text=True, timeout=seconds)
        if check and result.returncode != 0:
            raise Failed(f"'{' '.join(words[:2])}' exits {result.returncode}: {(result.stderr or result.stdout).strip()[:300]}")
        return result.stdout

    def start(self):
        self.command(
            "mount", "--no-supervision", "--state-dir", self.disk + "/state", "--domain", "full" + self.top[-6:], "--upload-delay", "100ms",
            "folder:" + self.cloud, self.mount)

    def offline(self, is_offline):
        with open(self.faults + ".new", "w") as file:
            file.write("offline=true\n" if is_offline else "")
        os.rename(self.faults + ".new", self.faults)

    def status(self):
        return json.loads(self.command("status", "--json", self.mount))

    def kill(self):
        os.kill(self.status()["processID"], signal.SIGKILL)
        time.sleep(0.5)

    def settle(self, seconds=60):
        end = time.time() + seconds
        while True:
            try:
                return self.command("sync", "--wait", self.mount)
            except Failed:
                if time.time() > end:
                    raise
                time.sleep(0.5)

    def clean(self):
        for process in os.listdir("/proc"):
            if process.isdigit():
                try:
                    if self.top + "/" in open(f"/proc/{process}/cmdline").read() and "promisefs" in os.readlink(f"/proc/{process}/exe"):
                        os.kill(int(process), signal.SIGKILL)
                except OSError:
                    pass
        for place in (self.mount, self.disk):
            subprocess.run(["umount", "-l", place], capture_output=True)
        shutil.rmtree(self.top, ignore_errors=True)


class Writer:
    def __init__(self, top, seed):
        self.top, self.random, self.model, self.count, self.refused = top, random.Random(seed), {}, 0, 0

    def path(self, name):
        return os.path.join(self.top, name)

    def told(self, error):
        if error.errno != errno.ENOSPC:
            raise Failed(f"a full disk is told as {errno.errorcode.get(error.errno, error.errno)}: {error}")
        self.refused += 1

    def write(self, size):
        """A new file, and the same again with an fsync: what fails may leave a part of itself under its own name."""
        self.count += 1
        name = f"file{self.count}"
        data = self.random.randbytes(size)
        try:
            descriptor = os.open(self.path(name), os.O_WRONLY | os.O_CREAT, 0o644)
        except OSError as error:
            self.told(error)
            return False
        try:
            done = 0
            while done < size:
                done += os.write(descriptor, data[done : done + (1 << 17)])
            os.fsync(descriptor)
            self.model[name] = data
            return True
        except OSError as error:
            self.told(error)
            self.model[name] = None
            return False
        finally:
            os.close(descriptor)

    def rename(self):
        names = [name for name, data in self.model.items() if data is not None]
        if names:
            name = self.random.choice(names)
            try:
                os.rename(self.path(name), self.path(name + "r"))
            except OSError as error:
                return self.told(error)
            self.model[name + "r"] = self.model.pop(name)

    def remove(self, name):
        # Removing must always work.
        os.unlink(self.path(name))
        del self.model[name]

    def fill(self, size):
        failures = 0
        while failures < 5:
            if not self.write(size):
                failures += 1
            if self.count % 3 == 0:
                self.rename()

    def check(self, when, offline=False):
        for name, data in self.model.items():
            if data is None:
                continue
            try:
                with open(self.path(name), "rb") as file:
                    found = file.read()
            except OSError as error:
                # What was evicted cannot be had while the provider is away.
                if offline and error.errno == errno.ENETDOWN:
                    continue
                raise
            if found != data:
                raise Failed(f"{when}: {name} has {len(found)} bytes instead of {len(data)}, or others")

    def works_again(self, seconds, size):
        """Waits for the file system to recover by itself."""
        end = time.time() + seconds
        while not self.write(size):
            if time.time() > end:
                raise Failed(f"{seconds} s after room was given back writing still fails")
            time.sleep(0.1)

    def clear_parts(self):
        for name in [name for name, data in self.model.items() if data is None]:
            self.remove(name)


def full_round(domain, writer, number, kills):
    os.listdir(domain.mount)
    domain.offline(True)
    writer.fill(1_000_000)
    writer.fill(5_000)
    writer.check("on the full disk", offline=True)
    if kills:
        domain.kill()
        domain.start()
        writer.check("after a kill on the full disk", offline=True)
    writer.clear_parts()
    if number % 2 == 0:
        for name in sorted(writer.model)[: max(3, len(writer.model) // 4)]:
            writer.remove(name)
    else:
        # The provider gets it all, and what it has goes from here when room is needed.
        domain.offline(False)
        domain.settle()
        domain.command("evict", domain.mount)
    writer.works_again(20, 500_000)
    writer.clear_parts()
    domain.offline(False)
    domain.settle()
    writer.check("after room was given back")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executable", required=True)
    parser.add_argument("--size", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--kind", choices=("tmpfs", "ext4"), default="tmpfs")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    domain = Domain(options)
    writer = Writer(domain.mount, options.seed)
    try:
        domain.start()
        for number in range(options.rounds):
            full_round(domain, writer, number, kills=number == options.rounds - 1)
            print(f"round {number + 1}: {len(writer.model)} files, {writer.refused} calls refused so far", flush=True)
        writer.check("at the end")
        for name, data in writer.model.items():
            with open(os.path.join(domain.cloud, name), "rb") as file:
                found = file.read()
            if found != data:
                raise Failed(f"the provider has {len(found)} bytes of {name} instead of {len(data or b'')}, or others")
        if set(os.listdir(domain.cloud)) - {".promisefs"} != set(writer.model):
            raise Failed("the provider has other names than the mount")
        domain.command("verify", domain.mount)
        domain.command("unmount", domain.mount)
        print("nothing was lost", flush=True)
    except (Failed, OSError) as problem:
        place = traceback.extract_tb(problem.__traceback__)
        print(f"WRONG {problem} ({' < '.join(frame.name for frame in reversed(place))})", flush=True)
        sys.exit(1)
    finally:
        domain.clean()


main()
