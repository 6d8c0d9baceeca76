#!/usr/bin/env python3
"""Fills the disk of a mount's state folder, and checks that writers are told, nothing is lost, and it recovers by itself.

usage: full-disk.py --executable PROMISEFS [--size 48] [--rounds 3] [--seed N] [--kind tmpfs|ext4]

The state folder is on a file system of --size MiB made for this (root only); the provider is elsewhere. In each round programs
write, rename and remove until writes fail; the failures must be ENOSPC and nothing else, what had returned must be there, and
removing must work. Then room is given back, by removing some files or by eviction of what the provider has, and writing must
work again without anybody doing anything else. In the last round the daemon is killed while the disk is full, and started
again. At the end the provider equals the mount and `verify` is clean. Exit status 1 when anything is wrong.

> Writers get `ENOSPC`. Removing works:
"""
import argparse, errno, os, random, shutil, subprocess, sys, tempfile, time, traceback

from domain import Failed, Mount


class SmallDisk(Mount):
    """A domain whose state folder is on a file system of its own, which is made for it."""

    def __init__(self, options):
        folder = tempfile.mkdtemp(prefix="pfs-full-", dir="/var/tmp")
        self.disk = os.path.join(folder, "disk")
        os.mkdir(self.disk)
        if options.kind == "tmpfs":
            command("mount", "-t", "tmpfs", "-o", f"size={options.size}m,mode=700", "tmpfs", self.disk)
        else:
            image = os.path.join(folder, "image")
            with open(image, "wb") as file:
                file.truncate(options.size << 20)
            # In smaller blocks SQLite's shared memory file would not be allocated as it believes, and meet SIGBUS.
            command("mkfs.ext4", "-q", "-F", "-m", "0", "-b", "4096", image)
            command("mount", "-o", "loop", image, self.disk)
        super().__init__(options.executable, folder, ["--no-supervision"], name="full", upload_delay="100ms",
                         state=self.disk + "/state")

    def settle_again(self, seconds=60):
        end = time.time() + seconds
        while True:
            try:
                return self.settle()
            except Failed:
                if time.time() > end:
                    raise
                time.sleep(0.5)

    def clean_up(self):
        super().clean_up()
        subprocess.run(["umount", "-l", self.disk], capture_output=True)
        shutil.rmtree(self.folder, ignore_errors=True)


def command(*words):
    result = subprocess.run(words, capture_output=True, text=True)
    if result.returncode != 0:
        raise Failed(f"{words[0]} exits {result.returncode}: {result.stderr.strip()}")


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
    os.listdir(domain.top)
    domain.set_offline(True)
    writer.fill(1_000_000)
    writer.fill(5_000)
    writer.check("on the full disk", offline=True)
    if kills:
        domain.kill()
        domain.mount()
        writer.check("after a kill on the full disk", offline=True)
    writer.clear_parts()
    if number % 2 == 0:
        for name in sorted(writer.model)[: max(3, len(writer.model) // 4)]:
            writer.remove(name)
    else:
        # The provider gets it all, and what it has goes from here when room is needed.
        domain.set_offline(False)
        domain.settle_again()
        domain.run("evict", domain.top)
    writer.works_again(20, 500_000)
    writer.clear_parts()
    domain.set_offline(False)
    domain.settle_again()
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
    domain = SmallDisk(options)
    writer = Writer(domain.top, options.seed)
    try:
        domain.mount()
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
        domain.run("verify", domain.top)
        domain.run("unmount", domain.top)
        print("nothing was lost", flush=True)
    except (Failed, OSError) as problem:
        place = traceback.extract_tb(problem.__traceback__)
        print(f"WRONG {problem} ({' < '.join(frame.name for frame in reversed(place))})", flush=True)
        sys.exit(1)
    finally:
        domain.clean_up()


main()
