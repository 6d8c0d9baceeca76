#!/usr/bin/env python3
"""Cuts the power of the disk that holds a mount's state folder and its provider, at random moments, and looks what is there.

usage: power-cut.py --executable PROMISEFS [--cuts 20] [--seed N] [--size 256] [--folder DIR]

State folder and provider are on an ext4 image behind a loop device (root only). A worker writes, overwrites, renames and
removes in the mount, with and without fsync, and notes each call before and after it, elsewhere. At a random moment worker and
daemon are stopped in the middle of what they do, and the image is copied when the device is idle: so it holds what had reached
the disk, and nothing that the kernel only has in memory. The copy is mounted (the journal of ext4 is replayed) and a daemon is
started on it, as after another start of the machine. Then

- the mount works and `verify` is clean;
- what an fsync had covered is there: a file's bytes and its name, by the file's own; names, by the folder's;
- after `sync --wait` the provider has what the mount shows. A synced version may be the second side of a conflict with an
  upload of ours that the index does not know of any more; how many there were is said.

Worker and daemon go on from where they were, to the next cut. Exit status 1 when anything is wrong.

> After a power cut (another boot, and the index not closed in order) clean content is not trusted and becomes a placeholder,
"""
import argparse, json, os, random, shutil, signal, subprocess, sys, tempfile, time

from domain import Failed, Mount


def run(*words):
    result = subprocess.run(words, capture_output=True, text=True)
    if result.returncode != 0:
        raise Failed(f"{' '.join(words[:2])} exits {result.returncode}: {result.stderr.strip()}")
    return result.stdout.strip()


class Disk:
    """An image, mounted. `commit=300`: ext4 writes its journal when somebody syncs, and not by itself every 5 s."""

    def __init__(self, image, place):
        self.image, self.place = image, place
        os.makedirs(place, exist_ok=True)
        self.device = run("losetup", "--find", "--show", image)
        try:
            run("mount", "-t", "ext4", "-o", "commit=300", self.device, place)
        except Failed:
            run("losetup", "-d", self.device)
            raise

    def sectors(self):
        words = open(f"/sys/block/{os.path.basename(self.device)}/stat").read().split()
        return int(words[6]), int(words[8])

    def copy(self, target):
        """When nothing is under way, and nothing was written meanwhile."""
        for _ in range(200):
            before = self.sectors()
            time.sleep(0.01)
            if before[1] == 0 and self.sectors() == before:
                run("cp", "--sparse=always", self.image, target)
                if self.sectors() == before:
                    return
        raise Failed("the disk does not come to rest")

    def close(self):
        subprocess.run(["umount", "-l", self.place], capture_output=True)
        subprocess.run(["losetup", "-d", self.device], capture_output=True)


def mounted(options, disk, folder, boot):
    """A domain with state folder and provider on `disk`, started as after the boot of that name."""
    os.mkdir(folder)
    domain = Mount(options.executable, folder, ["--no-supervision"], name=os.path.basename(folder), upload_delay="300ms", cloud=disk.place + "/cloud",
                   state=disk.place + "/state", environment={"PROMISEFS_BOOT": boot})
    try:
        domain.mount()
    except Failed:
        domain.clean_up()
        raise
    return domain


# ---- the worker, a process of its own --------------------------------------------------------------------------
def work(top, log_path, seed):
    """A line of the log: [step, name, version]. `begin` before a change, `synced` after an fsync that covers the version,
    `named` after an fsync of the folder. Version 0: the name is gone."""
    log = open(log_path, "a", buffering=1)
    choose = random.Random(seed)
    versions, count = {}, 0

    def note(step, name, version):
        log.write(json.dumps([step, name, version]) + "\n")

    def sync_folder():
        descriptor = os.open(top, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)

    while True:
        kind = choose.random()
        # Not more than the disk holds twice.
        if kind < 0.45 and len(versions) < 800 or len(versions) < 5:
            count += 1
            name, version = f"file{count}", 1
        else:
            name = choose.choice(sorted(versions))
            version = versions[name] + 1
        if kind < 0.85:
            note("begin", name, version)
            path, data = os.path.join(top, name), content(name, version)
            if choose.random() < 0.5 and version > 1:
                # As editors save.
                path += ".new"
            with open(path, "wb") as file:
                file.write(data)
                file.flush()
                is_synced = choose.random() < 0.6
                if is_synced:
                    os.fsync(file.fileno())
            if path.endswith(".new"):
                os.rename(path, os.path.join(top, name))
                if is_synced:
                    sync_folder()
            versions[name] = version
            if is_synced:
                note("synced", name, version)
        elif kind < 0.95 and name in versions:
            note("begin", name, 0)
            os.unlink(os.path.join(top, name))
            del versions[name]
            if choose.random() < 0.5:
                sync_folder()
                note("synced", name, 0)
        else:
            known = dict(versions)
            sync_folder()
            for each in known:
                note("named", each, known[each])
        if choose.random() < 0.1:
            time.sleep(choose.random() * 0.3)


def content(name, version):
    return random.Random(f"{name} {version}").randbytes(random.Random(f"size {name} {version}").randrange(1, 60_000))


# ---- checking --------------------------------------------------------------------------------------------------
def expectations(log_path):
    """For each name: the version that is durable at least (None: nothing is said), and the versions begun after it."""
    durable, later, named = {}, {}, set()
    for line in open(log_path).read().splitlines():
        step, name, version = json.loads(line)
        if step == "begin":
            later.setdefault(name, []).append(version)
            if version == 0:
                named.discard(name)
        elif step == "synced":
            durable[name], later[name] = version, []
            named.discard(name)
        elif step == "named" and not any(each == 0 for each in later.get(name, [])):
            named.add(name)
    return durable, later, named


def check(top, log_path):
    durable, later, named = expectations(log_path)
    checked = 0
    for name in set(durable) | named:
        path = os.path.join(top, name)
        begun = later.get(name, [])
        if not os.path.exists(path):
            if name in durable and durable[name] == 0 or 0 in begun:
                continue
            raise Failed(f"{name} is gone; durable: {durable.get(name)}, begun later: {begun}")
        if name not in durable or begun and begun != [0]:
            continue
        checked += 1
        if durable[name] == 0 and 0 not in begun:
            raise Failed(f"{name} was removed, and that was synced, and is there again")
        # Our own upload, of which the index does not know any more, may look like somebody else's edit: then both are kept.
        sides = [path] + [os.path.join(top, other) for other in os.listdir(top) if other.startswith(name + " (conflict")]
        if not any(open(side, "rb").read() == content(name, durable[name]) for side in sides):
            raise Failed(f"{name} is not version {durable[name]}, which was synced")
    return checked


def compare(mount, cloud):
    def tree(top):
        found = {}
        for name in os.listdir(top):
            if name != ".promisefs":
                with open(os.path.join(top, name), "rb") as file:
                    found[name] = file.read()
        return found

    here, there = tree(mount), tree(cloud)
    if here != there:
        odd = [name for name in set(here) | set(there) if here.get(name) != there.get(name)]
        raise Failed(f"mount and provider differ in {sorted(odd)[:5]}")
    return len(here), sum("(conflict" in name for name in here)


def look(options, top, image, log_path, number):
    """What a start after the cut finds."""
    disk = domain = None
    try:
        disk = Disk(image, os.path.join(top, "copy"))
        domain = mounted(options, disk, os.path.join(top, f"after{number}"), f"boot {number}")
        checked = check(domain.top, log_path)
        domain.run("verify", domain.top)
        domain.settle()
        count, conflicts = compare(domain.top, domain.cloud)
        check(domain.top, log_path)
        domain.run("verify", "--provider", domain.top)
        # 1: a mount namespace that somebody has made meanwhile keeps a copy of the mount, and so the daemon.
        domain.run("unmount", domain.top, statuses=(0, 1))
        return checked, count, conflicts
    finally:
        if domain:
            domain.clean_up()
        if disk:
            disk.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executable", required=True)
    parser.add_argument("--cuts", type=int, default=20)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--size", type=int, default=256, help="of the image, in MiB")
    parser.add_argument("--folder", default="/var/tmp")
    parser.add_argument("--keep", help="where the image of a cut that lost something goes")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    choose = random.Random(options.seed)
    top = tempfile.mkdtemp(prefix="pfs-cut-", dir=options.folder)
    image, log_path = os.path.join(top, "image"), os.path.join(top, "log")
    with open(image, "wb") as file:
        file.truncate(options.size << 20)
    run("mkfs.ext4", "-q", "-F", "-m", "0", "-b", "4096", image)
    disk = Disk(image, os.path.join(top, "disk"))
    domain = worker = None
    wrong = 0
    try:
        os.makedirs(disk.place + "/cloud")
        domain = mounted(options, disk, os.path.join(top, "before"), "boot 0")
        [daemon] = domain.processes()
        run("sync", "-f", disk.place)
        worker = os.fork()
        if worker == 0:
            try:
                work(domain.top, log_path, options.seed)
            finally:
                os._exit(3)
        for number in range(1, options.cuts + 1):
            time.sleep(0.2 + choose.random() * 2)
            if os.waitpid(worker, os.WNOHANG)[0]:
                worker = None
                raise Failed("the worker met an error")
            # The daemon first: the worker may be in a call that it then does not answer.
            os.kill(daemon, signal.SIGSTOP)
            os.kill(worker, signal.SIGSTOP)
            noted = os.path.join(top, "noted")
            shutil.copy(log_path, noted)
            # A file of its own for each: a mount of the last one may still be on its way out.
            cut = os.path.join(top, f"cut{number}")
            disk.copy(cut)
            os.kill(daemon, signal.SIGCONT)
            try:
                checked, count, conflicts = look(options, top, cut, noted, number)
                print(
                    f"cut {number}: {checked} synced versions and {count} files in all as they must be, {conflicts} conflicts",
                    flush=True)
            except (Failed, OSError) as problem:
                wrong += 1
                print(f"WRONG cut {number}: {problem}", flush=True)
                if options.keep:
                    shutil.copy(cut, f"{options.keep}/cut-{options.seed}-{number}")
            os.unlink(cut)
            os.kill(worker, signal.SIGCONT)
    except Failed as problem:
        wrong += 1
        print(f"WRONG {problem}", flush=True)
    finally:
        if worker:
            os.kill(worker, signal.SIGCONT)
            os.kill(worker, signal.SIGKILL)
            os.waitpid(worker, 0)
        if domain:
            domain.clean_up()
        disk.close()
        shutil.rmtree(top, ignore_errors=True)
    print(f"{options.cuts} cuts, {wrong} wrong", flush=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
