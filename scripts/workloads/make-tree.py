#!/usr/bin/env python3
"""Makes a tree of files as real ones are: documents of this system and names nobody expects.

usage: make-tree.py TARGET --files N [--seed S] [--plain]

Real files come from /usr/share/doc and /usr/include; the rest is generated from the seed: names of every kind
of bytes, empty and odd sizes, modes, old and future times with nanoseconds, links of every kind, empty and deep
folders. --plain leaves the strange names out.
"""
import argparse, os, random, stat

NAMES = [
    b"plain.txt", b"with space.txt", b" leading", b"trailing ", b"new\nline.txt", b"tab\there", b"quote'\".txt",
    b"back\\slash", b"star*?[x].txt", b"-rf", b"$HOME", b"`id`", b"%41%00", b"semi;colon|pipe&", b"#hash",
    b"invalid-\xff.bin", b"invalid-\xfe.bin", b"\xff", b"latin1-\xe9t\xe9", b"nfc-\xc3\xa9.txt", b"nfd-e\xcc\x81.txt",
    b"\xf0\x9f\x8c\x8a wave", b"\xe6\xb5\xb7\xe5\xb2\xb8.md", b"CASE.txt", b"case.txt", b"Case.txt", b"...", b".hidden",
    b"con", b"aux.txt", b"colon:name", b"x" * 255, b"y" * 251 + b".txt", b"ends.", b"\x01control", b"right\xe2\x80\xaeltr",
]
MODES = [0o644, 0o600, 0o755, 0o444, 0o640, 0o4755, 0o2755, 0o777, 0o400]
SIZES = [0, 1, 2, 511, 4095, 4096, 4097, 65536, 100_000, (1 << 20) - 1, 1 << 20, (1 << 20) + 1]


def content(generator, size):
    return generator.randbytes(size)


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


def copy_real(target, limit, generator):
    """Copies documents with modes and times until `limit` files are there; returns how many."""
    made = 0
    for top in (b"/usr/share/doc", b"/usr/include"):
        for folder, folders, files in os.walk(top):
            folders.sort()
            for name in sorted(files):
                if made >= limit:
                    return made
                source = os.path.join(folder, name)
                status = os.lstat(source)
                if not stat.S_ISREG(status.st_mode) or status.st_size > 512 * 1024:
                    continue
                copy = os.path.join(target, b"real", os.path.relpath(source, b"/usr"))
                os.makedirs(os.path.dirname(copy), exist_ok=True)
                with open(source, "rb") as file:
                    write(copy, file.read())
                os.chmod(copy, stat.S_IMODE(status.st_mode))
                os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))
                made += 1
    return made


def generate(target, count, generator, plain):
    folders = [target]
    names = [name for name in NAMES if not plain or name.isascii() and name.isalnum()]
    made = 0
    while made < count:
        if made % 40 == 0:
            parent = generator.choice(folders)
            folder = os.path.join(parent, b"folder %d" % len(folders))
            os.mkdir(folder)
            folders.append(folder)
        folder = generator.choice(folders)
        name = generator.choice(names) if names and generator.random() < 0.5 else b"file-%d.dat" % made
        path = os.path.join(folder, name)
        if os.path.lexists(path):
            path = os.path.join(folder, b"file-%d.dat" % made)
        size = generator.choice(SIZES) if generator.random() < 0.15 else generator.randrange(0, 12_000)
        write(path, content(generator, size))
        os.chmod(path, generator.choice(MODES))
        made += 1
    return folders


def links(target, folders, generator):
    for index, aim in enumerate([b"plain.txt", b"../missing", b"/etc/hostname", b"/nonexistent", b".", b"a" * 1000, b"\xff\xfe"]):
        os.symlink(aim, os.path.join(generator.choice(folders), b"link %d" % index))
    first = os.path.join(target, b"hard one")
    write(first, b"two names, one file\n")
    os.link(first, os.path.join(folders[-1], b"hard two"))
    os.mkdir(os.path.join(target, b"empty"))
    deep = target
    for level in range(200):
        deep = os.path.join(deep, b"d")
        os.mkdir(deep)
    write(os.path.join(deep, b"bottom"), b"200 levels down\n")


def set_times(target, generator):
    """Files first, folders bottom up, as making a file changes its folder's time."""
    for folder, _, files in os.walk(target, topdown=False):
        for name in files:
            path = os.path.join(folder, name)
            if os.path.relpath(path, target).startswith(b"real/"):
                continue
            moment = generator.randrange(0, 2_000_000_000) * 10**9 + generator.randrange(10**9)
            os.utime(path, ns=(moment, moment), follow_symlinks=False)
        if folder != target:
            moment = generator.randrange(10**9, 1_700_000_000) * 10**9 + generator.randrange(10**9)
            os.utime(folder, ns=(moment, moment))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("target", type=os.fsencode)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plain", action="store_true")
    arguments = parser.parse_args()
    generator = random.Random(arguments.seed)
    os.makedirs(arguments.target, exist_ok=True)
    real = copy_real(arguments.target, arguments.files * 3 // 4, generator)
    folders = generate(arguments.target, arguments.files - real, generator, arguments.plain)
    if not arguments.plain:
        links(arguments.target, folders, generator)
    set_times(arguments.target, generator)
    print(f"{arguments.files} files, {real} of them copies, seed {arguments.seed}")


if __name__ == "__main__":
    main()
