"""Bytes that are not here yet: placeholders of the folder provider, and the same files read or copied from its folder."""
import os, pathlib
# By its own name: a step of another user imports nothing later.
from concurrent.futures.thread import ThreadPoolExecutor

from .. import system
from ..plan import Row, Stage, Step
from .common import Wrong, now, read_all, walk

SMALL_SIZE = 4096
READERS = 16
LATENCY_SECONDS = 0.020

ROWS = {row.name: row for row in (
    Row("whole", "s", False, "256 MiB from first to last byte; disk: dd into another file",
        "Copying: each byte is read from the provider's folder, written to the content file, and read by the program."),
    Row("first-byte", "ms", False, "the first byte of a cold 256 MiB file; disk: pread",
        "The first bytes of the first range fetched, and the wake-ups between the request, the fetch and the answer."),
    Row("range-read", "ms", False, "1 MiB at 200 MiB of a cold 256 MiB file; disk: pread", "As `first-byte`, and 1 MiB to copy."),
    Row("small-16", "s", False, "1,000 cold files of 4 KiB by 16 readers; disk: cp by 16 processes",
        "A fetch, a content file and a transaction of the index for each file."),
    Row("small-1", "s", False, "1,000 cold files of 4 KiB in order by one reader; disk: cp -r",
        "The same, one after the other, as far as the next file is not fetched ahead."),
    Row("list-cold", "s", False, "`ls -l` of 10,000 entries never listed before; disk: caches dropped",
        "The provider's listing, and one row in the index for each entry."),
    Row("walk-first", "s", False, "first walk and lstat of 100,000 files in 1,000 folders; disk: caches dropped",
        "One listing of the provider and one transaction of the index for each folder."),
    Row("walk-second", "s", False, "the same again, warm",
        "Attributes, names and listings are in the kernel's or the daemon's memory."),
    Row("latency-small", "s", False, "1,000 cold files of 4 KiB in order by one reader, 20 ms for each call of the provider; "
        "disk: 1,000 × 20 ms", "How far ahead of the reader the next files of a folder are fetched."),
    Row("latency-stream", "s", False, "256 MiB, 20 ms for each call of the provider; disk: on the mount without latency",
        "How many ranges are under way at once, and how large they are."),
)}


def whole(folder, configuration):
    path = f"{folder}/large/{configuration['large']}"
    start = now()
    if target := configuration.get("copies"):
        system.run(["dd", f"if={path}", f"of={target}/whole-{configuration['round']}", "bs=1M", "status=none"])
    elif read_all(path) != configuration["size"]:
        raise Wrong("the file has another size")
    return now() - start


def read_at(path, offset, size):
    """Milliseconds until `size` bytes at `offset` are here, from before open to after read."""
    start = now()
    descriptor = os.open(path, os.O_RDONLY)
    data = os.pread(descriptor, size, offset)
    elapsed = now() - start
    os.close(descriptor)
    if len(data) != size:
        raise Wrong(f"{len(data)} bytes instead of {size}")
    return elapsed * 1000


def first_byte(folder, configuration):
    return read_at(f"{folder}/large/{configuration['large']}", 0, 1)


def range_read(folder, configuration):
    size = min(1 << 20, configuration["size"] // 4)
    return read_at(f"{folder}/large/{configuration['large']}", configuration["size"] * 200 // 256, size)


def small_paths(folder, configuration):
    return [f"{folder}/small/{number:04}" for number in range(configuration["small"])]


def read_small(paths):
    for path in paths:
        if read_all(path, SMALL_SIZE) != SMALL_SIZE:
            raise Wrong("a file has another size")


def small_16(folder, configuration):
    paths = small_paths(folder, configuration)
    start = now()
    if target := configuration.get("copies"):
        target += f"/small-16-{configuration['round']}"
        os.mkdir(target)
        each = -(-len(paths) // READERS)
        parts = [paths[first : first + each] for first in range(0, len(paths), each)]
        read = lambda part: system.run(["cp", "-t", target, *part])
    else:
        parts = [paths[first::READERS] for first in range(READERS)]
        read = read_small
    with ThreadPoolExecutor(READERS) as pool:
        list(pool.map(read, parts))
    return now() - start


def small_1(folder, configuration):
    start = now()
    if target := configuration.get("copies"):
        system.run(["cp", "-r", folder + "/small", f"{target}/small-1-{configuration['round']}"])
    else:
        read_small(small_paths(folder, configuration))
    return now() - start


def list_cold(folder, configuration):
    start = now()
    output = system.run(["ls", "-l", f"{folder}/lists/{configuration['round']}"])
    elapsed = now() - start
    if output.count(b"\n") != configuration["listed"] + 1:
        raise Wrong("ls did not show every file")
    return elapsed


def walk_once(folder, configuration):
    start = now()
    count = walk(folder + "/walks/" + str(configuration["round"]))[0]
    elapsed = now() - start
    if count != configuration["walked"]:
        raise Wrong(f"{count} files were seen")
    return elapsed


walk_first = walk_second = walk_once


def latency_small(folder, configuration):
    if configuration.get("copies"):
        return configuration["small"] * LATENCY_SECONDS
    start = now()
    read_small(small_paths(folder, configuration))
    return now() - start


def latency_stream(folder, configuration):
    start = now()
    if read_all(f"{folder}/large/{configuration['large']}") != configuration["size"]:
        raise Wrong("the file has another size")
    return now() - start


# ---- the provider's folder ------------------------------------------------------------------------------------
def prepare_contents(top, size, small):
    """Random bytes: neither the disk nor a provider can make less of them."""
    os.makedirs(top + "/large")
    os.makedirs(top + "/small")
    with open(top + "/large/large", "wb") as file:
        for start in range(0, size, 1 << 20):
            file.write(os.urandom(min(1 << 20, size - start)))
    for number in range(small):
        pathlib.Path(f"{top}/small/{number:04}").write_bytes(os.urandom(SMALL_SIZE))


def prepare_names(top, rounds, listed, walked):
    """Each round lists and walks what nobody has looked at before."""
    for number in range(rounds):
        make_empty(f"{top}/lists/{number}", listed)
        for part, first in enumerate(range(0, walked, 100)):
            make_empty(f"{top}/walks/{number}/{part:05}", min(100, walked - first))


def make_empty(folder, count):
    os.makedirs(folder)
    for number in range(count):
        os.close(os.open(f"{folder}/file-{number:05}", os.O_CREAT | os.O_WRONLY, 0o644))


def stage(name, *steps):
    return Stage(name, "hydration", steps, has_folder=False)


STAGES = (
    stage("contents", *(Step(name, ROWS[name]) for name in ("whole", "first-byte", "range-read", "small-16", "small-1"))),
    stage("names", Step("list-cold", ROWS["list-cold"]), Step("walk-first", ROWS["walk-first"]),
          Step("walk-second", ROWS["walk-second"], needs=("walk-first",))),
    stage("latency", Step("latency-small", ROWS["latency-small"]), Step("latency-stream", ROWS["latency-stream"])),
)
