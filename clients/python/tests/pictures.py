"""Makes PNG files and looks at thumbnails.

usage: pictures.py make FOLDER COUNT | check FILE SIDE | save MOUNT PATH FILE | cached CACHE MOUNT COUNT
"""
import hashlib
import os
import pathlib
import struct
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import promisefs  # noqa: E402


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def picture(width, height, shade):
    rows = (b"\0" + bytes((shade, x % 256, y % 256) * 1)[:3] * width for y in range(height) for x in (y,))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(b"".join(rows))) + chunk(b"IEND", b""))


def chunks(data):
    assert data[:8] == b"\x89PNG\r\n\x1a\n", data[:8]
    place = 8
    while place < len(data):
        length, kind = struct.unpack(">I4s", data[place:place + 8])
        body, total = data[place + 8:place + 8 + length], data[place + 8 + length:place + 12 + length]
        assert struct.unpack(">I", total)[0] == zlib.crc32(kind + body), kind
        yield kind, body
        place += 12 + length


def side(data):
    return max(struct.unpack(">II", next(chunks(data))[1][:8]))


def cached(cache, mount, count):
    found = 0
    for path in pathlib.Path(mount, "pictures").glob("*.png"):
        uri = path.as_uri()
        name = hashlib.md5(uri.encode()).hexdigest() + ".png"
        for folder, most in (("normal", 128), ("large", 256), ("x-large", 512), ("xx-large", 1024)):
            file = pathlib.Path(cache, "thumbnails", folder, name)
            if not file.exists():
                break
            data = file.read_bytes()
            texts = [(kind, body.split(b"\0")) for kind, body in chunks(data) if b"Thumb::" in body]
            assert file.stat().st_mode & 0o777 == 0o600 and file.parent.stat().st_mode & 0o777 == 0o700, file
            seconds, nanoseconds = divmod(path.stat().st_mtime_ns, 10**9)
            # GLib reads the whole seconds, tumbler the microseconds, which therefore come before the URI.
            assert texts[0] == (b"iTXt", [b"Thumb::MTime", b"", b"", b"", b"", b"%d.%06d" % (seconds, nanoseconds // 1000)]), texts
            assert texts[1:] == [(b"tEXt", [b"Thumb::URI", uri.encode()]), (b"tEXt", [b"Thumb::MTime", b"%d" % seconds])], texts
            assert side(data) <= most, file
        else:
            found += 1
    assert found == count, f"{found} documents have all their pictures, not {count}"


if __name__ == "__main__":
    command, *words = sys.argv[1:]
    if command == "make":
        for number in range(int(words[1])):
            pathlib.Path(words[0], f"{number}.png").write_bytes(picture(300 + number, 200, number))
    elif command == "check":
        assert side(pathlib.Path(words[0]).read_bytes()) == int(words[1])
    elif command == "save":
        domain, path = promisefs.locate(os.path.join(words[0], words[1]))
        data = pathlib.Path(words[2]).read_bytes()
        assert domain.save_thumbnail(path, data) and domain.thumbnail(path) == data
        assert side(domain.thumbnail(path, 50)) == 50
    else:
        cached(words[0], words[1], int(words[2]))
