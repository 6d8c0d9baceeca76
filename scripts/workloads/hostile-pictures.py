"""Pictures that mean harm, and what becomes of whoever makes thumbnails of them.

usage: hostile-pictures.py make FOLDER | ask EXECUTABLE MOUNT DAEMON

`make` writes 20 files. `ask` asks for the picture of each and looks at the daemon and all that it started meanwhile: nothing
takes 300 MiB or ten seconds, nothing of the secret is in a picture, and the daemon goes on.
"""
import glob
import os
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def header(width, height, depth=8, colour=2):
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))


def zeros(count):
    packer, parts = zlib.compressobj(9), []
    piece = bytes(1 << 20)
    for _ in range(count >> 20):
        parts.append(packer.compress(piece))
    return b"".join(parts) + packer.flush()


def png(width, height, data, depth=8, colour=2, more=b""):
    return SIGNATURE + header(width, height, depth, colour) + more + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def svg(body, kind=""):
    return f'{kind}<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="100" ' \
           f'height="100">{body}</svg>'.encode()


def laughs():
    entities = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
    return svg("<text>&a9;</text>", f'<?xml version="1.0"?><!DOCTYPE svg [<!ENTITY a0 "lol">{entities}]>')


def nested_use():
    groups = '<g id="g0"><rect width="9" height="9"/></g>'
    for n in range(1, 12):
        groups += f'<g id="g{n}">' + f'<use xlink:href="#g{n - 1}"/>' * 10 + "</g>"
    return svg(groups + '<use xlink:href="#g11"/>')


def files(secret):
    small = zlib.compress(b"\0" + bytes(30))
    return {
        # 2.4 MB that are 2.5 GiB of points.
        "bomb.png": png(30000, 30000, zeros(2700 << 20)),
        "wide.png": png(2_000_000_000, 1, small),
        "high.png": png(1, 0x7FFFFFFF, small),
        "none.png": png(0, 0, small),
        "cut.png": png(4000, 4000, zeros(40 << 20))[:3000],
        "sum.png": png(10, 1, small)[:-20] + b"x" * 20,
        "depth.png": png(10, 1, small, depth=7, colour=5),
        "text.png": png(10, 1, small, more=chunk(b"zTXt", b"a\0\0" + zeros(600 << 20))),
        "profile.png": png(10, 1, small, more=chunk(b"iCCP", b"a\0\0" + zeros(600 << 20))),
        "many.png": SIGNATURE + header(10, 1) + chunk(b"tEXt", b"a\0b") * 200_000 + chunk(b"IDAT", small) + chunk(b"IEND", b""),
        "length.png": SIGNATURE + header(10, 1) + struct.pack(">I", 0xFFFFFFF0) + b"IDAT",
        "palette.png": png(20000, 20000, zeros(400 << 20), colour=3, more=chunk(b"PLTE", bytes(768))),
        "nothing.png": b"",
        "other.png": b"#!/bin/sh\ntouch /tmp/hostile\n",
        "canvas.gif": b"GIF89a" + struct.pack("<HHBBB", 65535, 65535, 0xF7, 0, 0) + bytes(768) + b",\0\0\0\0"
                      + struct.pack("<HHB", 65535, 65535, 0) + b"\x08\x01\x00\x00;",
        "canvas.bmp": b"BM" + struct.pack("<IHHI", 1 << 30, 0, 0, 54)
                      + struct.pack("<IiiHHIIiiII", 40, 60000, 60000, 1, 24, 0, 0, 0, 0, 0, 0) + bytes(1000),
        "laughs.svg": laughs(),
        "use.svg": nested_use(),
        "file.svg": svg(f'<image width="100" height="100" xlink:href="file://{secret}"/>'
                        f'<text><![CDATA[x]]></text><style>@import url("file://{secret}");</style>'),
        "network.svg": svg('<image width="100" height="100" xlink:href="http://127.0.0.1:9/x.png"/>'
                           '<style>@import url("http://127.0.0.1:9/x.css");</style>'),
    }


def make(folder):
    secret = os.path.join(os.path.dirname(folder), "secret.png")
    with open(secret, "wb") as file:
        file.write(png(1, 1, zlib.compress(b"\0\xfe\x01\xef")))
    for name, content in files(secret).items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)


def family(process):
    """The daemon and all that it started, with what each takes of memory, in KiB."""
    parents, sizes = {}, {}
    for path in glob.glob("/proc/[0-9]*/status"):
        try:
            with open(path) as file:
                fields = dict(line.split(":", 1) for line in file if ":" in line)
            number = int(fields["Pid"])
            parents[number] = int(fields["PPid"])
            sizes[number] = int(fields.get("RssAnon", "0 kB").split()[0])
        except (OSError, KeyError, ValueError):
            continue
    found = {process}
    while True:
        more = {number for number, parent in parents.items() if parent in found} - found
        if not more:
            return sum(sizes.get(number, 0) for number in found)
        found |= more


def ask(executable, mount, daemon):
    most, over = 0, threading.Event()

    def watch():
        nonlocal most
        while not over.is_set():
            most = max(most, family(daemon))
            time.sleep(0.02)

    names = sorted(os.listdir(os.path.join(mount, "hostile")))
    assert len(names) == 20, names
    watcher = threading.Thread(target=watch)
    watcher.start()
    made, slowest = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            path, picture = os.path.join(mount, "hostile", name), os.path.join(folder, name)
            with open(path, "rb") as file:
                while file.read(1 << 20):
                    pass
            start = time.monotonic()
            done = subprocess.run([executable, "thumbnail", path, "-o", picture], capture_output=True, timeout=60)
            slowest = max(slowest, time.monotonic() - start)
            if done.returncode == 0:
                made.append(name)
                with open(picture, "rb") as file:
                    data = file.read()
                assert data.startswith(SIGNATURE) and b"\xfe\x01\xef" not in data, name
    over.set()
    watcher.join()
    print(f"{len(made)} of {len(names)} have a picture ({', '.join(made)}); {most >> 10} MiB at most, {slowest:.1f} s at most")
    assert most < 300 << 10, f"{most >> 10} MiB"
    assert slowest < 12, slowest
    assert not os.path.exists("/tmp/hostile")


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2])
    else:
        ask(sys.argv[2], sys.argv[3], int(sys.argv[4]))
