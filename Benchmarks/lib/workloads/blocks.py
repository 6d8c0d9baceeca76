"""One large file, by fio: local content."""
import json

from .. import system
from ..plan import Row, Stage, Step
from .common import read_all

ROWS = {row.name: row for row in (
    Row("seq-write", "MB/s", True, "fio write of a new file, 1 GiB, 1 MiB blocks, with a final fsync",
        "The disk: the kernel writes the content file itself; without passthrough each block goes through the daemon."),
    Row("seq-read", "MB/s", True, "fio read of it from the page cache, 1 MiB blocks",
        "Copying from the page cache; no request reaches the daemon with passthrough."),
    Row("randread-1", "IOPS", True, "fio pread of 4 KiB at random places from the page cache, 1 job",
        "The system call; the passthrough layer of the kernel adds a part of a microsecond to each."),
    Row("randread-4", "IOPS", True, "the same by 4 jobs", "As `randread-1`, on all processors."),
    Row("randwrite", "IOPS", True, "fio pwrite of 4 KiB at random places, an eighth of the file, with a final fsync",
        "The disk, as the final fsync writes every page; no request for each write with passthrough."),
)}


def fio(folder, configuration, *words):
    """One job's report. invalidate=0: fio would drop pages by posix_fadvise, which does not reach the content file below
    a passthrough open, and the subjects would not have the same pages in the cache."""
    command = ["fio", "--name=bench", f"--filename={folder}/large", f"--size={configuration['size']}", "--ioengine=psync",
               "--thread", "--fallocate=none", "--invalidate=0", "--group_reporting", "--randseed=7",
               "--output-format=json", *words]
    output = system.run(command, cwd=configuration["home"])
    return json.loads(output[output.index(b"{"):])["jobs"][0]


def seq_write(folder, configuration):
    return fio(folder, configuration, "--rw=write", "--bs=1M", "--end_fsync=1")["write"]["bw_bytes"] / 1e6


def seq_read(folder, configuration):
    read_all(folder + "/large")
    return fio(folder, configuration, "--rw=read", "--bs=1M", "--loops=2")["read"]["bw_bytes"] / 1e6


def random_read(folder, configuration, jobs):
    return fio(folder, configuration, "--rw=randread", "--bs=4k", "--norandommap", "--time_based",
               f"--runtime={configuration['seconds']}", f"--numjobs={jobs}")["read"]["iops"]


def randread_1(folder, configuration):
    read_all(folder + "/large")
    return random_read(folder, configuration, 1)


def randread_4(folder, configuration):
    read_all(folder + "/large")
    return random_read(folder, configuration, 4)


def randwrite(folder, configuration):
    # ext4 takes four times as long for 4 KiB into a large folio of the page cache as into a small one: the pages were
    # dropped before, and come back for every subject in the same way.
    read_all(folder + "/large")
    amount = max(1 << 20, configuration["size"] // 8)
    return fio(folder, configuration, "--rw=randwrite", "--bs=4k", "--norandommap", f"--io_size={amount}",
               "--end_fsync=1")["write"]["bw_bytes"] / 4096


STAGE = Stage(
    "fio", "blocks",
    (Step("seq-write", ROWS["seq-write"], leaves_uploads=True),
     Step("seq-read", ROWS["seq-read"], needs=("seq-write",)),
     Step("randread-1", ROWS["randread-1"], needs=("seq-write",)),
     Step("randread-4", ROWS["randread-4"], needs=("seq-write",)),
     Step("randwrite", ROWS["randwrite"], needs=("seq-write",), is_level=True, leaves_uploads=True)))
