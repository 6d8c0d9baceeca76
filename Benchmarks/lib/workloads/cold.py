"""Placeholders of a WebDAV server read through the mount, and the same requests made by curl on a connection that is kept."""

from .. import system
from ..clients import PROPERTIES, Curl
from ..plan import Row, Stage, Step
from . import hydration
from .common import Wrong, now, read_all

ROWS = {row.name: row for row in (
    Row("whole", "s", False, "256 MiB from first to last byte", "Every byte is stored on its way to the reader.", 1 / 1.1),
    Row("first-byte", "ms", False, "the first byte of a cold 256 MiB file; curl: a request for one byte",
        "The first bytes of the first range fetched, and the wake-ups between the request, the fetch and the answer.", 1 / 1.5),
    Row("range-read", "ms", False, "1 MiB at 200 MiB of a cold 256 MiB file", "As `first-byte`, and 1 MiB to copy.", 1 / 3),
    Row("small-1", "s", False, "1,000 cold files of 4 KiB in order by one reader; curl: one connection",
        "How far the next files are fetched ahead.", 1.0),
    Row("small-16", "s", False, "1,000 cold files of 4 KiB by 16 readers; curl: 16 connections",
        "A content file and a transaction of the index for each file.", 1 / 1.25),
    Row("list-cold", "s", False, "`ls -l` of 10,000 entries never listed before; curl: PROPFIND",
        "One row in the index for each entry, and `ls` asking for each.", 1 / 1.5),
)}


def curl_after_hello(curl, *request):
    """Seconds of a request on a connection that has been used."""
    hello = [("url", curl.base), ("request", "OPTIONS"), ("output", "/dev/null")]
    said = curl.run(hello, [*request, ("write-out", "%{time_total}")])
    return float(said.decode().split()[-1])


def of_curl(configuration):
    return Curl(configuration["settings"]) if configuration["client"] == "curl" else None


def whole(folder, configuration):
    if curl := of_curl(configuration):
        return curl_after_hello(curl, ("url", curl.base + "cold/large"), ("output", "/dev/null"))
    start = now()
    if read_all(folder + "/cold/large") != configuration["size"]:
        raise Wrong("the file has another size")
    return now() - start


def part(folder, configuration, offset, size):
    if curl := of_curl(configuration):
        return 1000 * curl_after_hello(curl, ("url", curl.base + "cold/large"), ("range", f"{offset}-{offset + size - 1}"),
                                       ("output", "/dev/null"))
    return hydration.read_at(folder + "/cold/large", offset, size)


def first_byte(folder, configuration):
    return part(folder, configuration, 0, 1)


def range_read(folder, configuration):
    return part(folder, configuration, configuration["size"] * 200 // 256, min(1 << 20, configuration["size"] // 4))


def names(configuration):
    return [f"cold/small/{number:04}" for number in range(configuration["small"])]


def small_1(folder, configuration):
    start = now()
    if curl := of_curl(configuration):
        curl.run([each for name in names(configuration) for each in (("url", curl.base + name), ("output", "/dev/null"))])
    else:
        hydration.read_small([f"{folder}/{name}" for name in names(configuration)])
    return now() - start


def small_16(folder, configuration):
    start = now()
    if curl := of_curl(configuration):
        curl.all([(name, "/dev/null") for name in names(configuration)], "output")
    else:
        paths = [f"{folder}/{name}" for name in names(configuration)]
        with hydration.ThreadPoolExecutor(hydration.READERS) as pool:
            tuple(pool.map(hydration.read_small, [paths[first :: hydration.READERS] for first in range(hydration.READERS)]))
    return now() - start


def list_cold(folder, configuration):
    if curl := of_curl(configuration):
        return curl_after_hello(
            curl, ("url", curl.base + "cold/list/"), ("request", "PROPFIND"), ("header", "Depth: 1"),
            ("header", "Content-Type: application/xml"), ("data", PROPERTIES.replace('"', '\\"')), ("output", "/dev/null"))
    start = now()
    output = system.run(["ls", "-l", folder + "/cold/list"])
    elapsed = now() - start
    if output.count(b"\n") != configuration["listed"] + 1:
        raise Wrong("ls did not show every file")
    return elapsed


STAGES = (Stage("cold", "cold", tuple(Step(name, row) for name, row in ROWS.items()), has_folder=False),)
