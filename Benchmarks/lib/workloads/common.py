"""What the workloads share."""
import os, stat, statistics, subprocess, time

from .. import system

now = time.perf_counter


class Wrong(Exception):
    """The file system did the work, and not correctly; the row has failed."""


def median_of(times, function, *arguments):
    """Median of the seconds that `function` takes."""
    elapsed = []
    for _ in range(times):
        start = now()
        function(*arguments)
        elapsed.append(now() - start)
    return statistics.median(elapsed)


def walk(top):
    """(files, folders, bytes) below a folder; lists and lstats everything."""
    files = folders = size = 0
    stack = [top]
    while stack:
        folder = stack.pop()
        with os.scandir(folder) as listing:
            names = [entry.name for entry in listing]
        for name in names:
            path = folder + "/" + name
            status = os.lstat(path)
            if stat.S_ISDIR(status.st_mode):
                folders += 1
                stack.append(path)
            else:
                files += 1
                size += status.st_size
    return files, folders, size


def read_all(path, block=1 << 20):
    """Reads a file to its end; its size."""
    total = 0
    buffer = bytearray(block)
    with open(path, "rb", buffering=0) as file:
        while got := file.readinto(buffer):
            total += got
    return total


def write_file(path, data):
    """open, write, close of a new file."""
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)


def scaled(number, configuration, least=1):
    return max(least, int(number * configuration["scale"]))


# ---- steps of the schedule itself -----------------------------------------------------------------------------
def make_folder(folder, configuration):
    os.mkdir(folder)


def remove(folder, configuration):
    subprocess.run(["rm", "-rf", folder], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=600)


def remove_timed(path):
    """Seconds of `rm -rf`."""
    start = now()
    system.run(["rm", "-rf", path])
    elapsed = now() - start
    if os.path.exists(path):
        raise Wrong("still there after rm -rf")
    return elapsed
