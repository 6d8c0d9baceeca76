#!/usr/bin/env python3
"""Compares how long `adopt` takes of a folder of many files with `cp -r` of it, turn by turn.

usage: adopt-speed.py --executable PROMISEFS [--files 10000] [--bytes 2000] [--rounds 7] [--cold] [--folder DIR]

Each round copies the folder and adopts it, with a state folder of its own; then the mount must have all files, and nothing may have been
sent. With --cold (root only) the kernel's cache is emptied before each of both, and `cp -r` is followed by `sync -f`: what a copy costs
that is on the disk. Prints both medians; exit status 1 when adopting takes more than a fifth of the copy, or something is wrong.
"""
import argparse, json, os, shutil, statistics, subprocess, sys, tempfile, time

from domain import Failed, Mount


def make(folder, options):
    for number in range(options.files):
        place = os.path.join(folder, f"d{number // 200}")
        os.makedirs(place, exist_ok=True)
        with open(os.path.join(place, str(number)), "wb") as file:
            file.write(os.urandom(options.bytes))


def timed(options, *words, environment=None, then=None):
    subprocess.run(["sync"], check=True)
    if options.cold:
        with open("/proc/sys/vm/drop_caches", "w") as file:
            file.write("3\n")
    start = time.perf_counter()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, env=environment)
    if then:
        subprocess.run(then, check=True)
    return time.perf_counter() - start


def adopt(options, top, cloud, number):
    domain = Mount(options.executable, os.path.join(top, f"round{number}"), name=f"adopt{os.getpid()}n{number}", cloud=cloud)
    environment = dict(domain.environment, PROMISEFS_STATE_DIR=domain.state)
    try:
        seconds = timed(options, domain.executable, "adopt", cloud, domain.top, "--domain", domain.name, environment=environment)
        count = sum(len(files) for _, _, files in os.walk(domain.top))
        sent = json.loads(domain.run("status", "--json", domain.top))["bytesUploaded"]
        if count != options.files or sent:
            raise Failed(f"the mount has {count} files, and {sent} bytes were sent")
        return seconds
    finally:
        domain.clean_up()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executable", required=True)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--bytes", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--folder", default="/var/tmp")
    options = parser.parse_args()
    top = tempfile.mkdtemp(prefix="pfs-adopt-", dir=options.folder)
    try:
        cloud, copies, adoptions = os.path.join(top, "cloud"), [], []
        make(cloud, options)
        for number in range(options.rounds):
            copy = os.path.join(top, "copy")
            copies.append(timed(options, "cp", "-r", cloud, copy, then=["sync", "-f", copy] if options.cold else None))
            shutil.rmtree(copy)
            adoptions.append(adopt(options, top, cloud, number))
        copy, adoption = statistics.median(copies), statistics.median(adoptions)
        print(f"{options.files} files of {options.bytes} bytes: cp -r {copy:.3f} s, adopt {adoption:.3f} s, {adoption / copy:.2f} of it")
        wrong = adoption > copy / 5
    except (Failed, OSError, subprocess.CalledProcessError) as problem:
        print(f"WRONG {problem}")
        wrong = True
    finally:
        shutil.rmtree(top, ignore_errors=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
