#!/usr/bin/env python3
"""Compares two trees by everything a user can see; prints the differences and exits 1 when there are any.

usage: compare-trees.py A B [--no-content] [--no-times] [--no-folder-times] [--no-modes] [--owners] [--links] [--ignore PATTERN]…

Always: names (bytes), kinds, sizes, targets of links. The provider's own .promisefs at the top is left out.
--links also compares which names share one file.
"""
import argparse, fnmatch, os, stat, sys


def entries(top, ignored):
    result = {}
    stack = [b""]
    while stack:
        folder = stack.pop()
        with os.scandir(os.path.join(top, folder)) as listing:
            for entry in listing:
                path = os.path.join(folder, entry.name)
                if path == b".promisefs" or any(fnmatch.fnmatchcase(entry.name, pattern) for pattern in ignored):
                    continue
                status = os.lstat(os.path.join(top, path))
                result[path] = status
                if stat.S_ISDIR(status.st_mode):
                    stack.append(path)
    return result


def same_content(first, second):
    with open(first, "rb", buffering=0) as one, open(second, "rb", buffering=0) as two:
        while True:
            left, right = one.read(1 << 20), two.read(1 << 20)
            while len(left) != len(right):
                shorter, file = (left, one) if len(left) < len(right) else (right, two)
                more = file.read(abs(len(left) - len(right)))
                if not more:
                    return False
                if shorter is left:
                    left += more
                else:
                    right += more
            if left != right:
                return False
            if not left:
                return True


def differences(path, one, two, options):
    kind = stat.S_IFMT(one.st_mode)
    if kind != stat.S_IFMT(two.st_mode):
        yield f"kind {oct(kind)} and {oct(stat.S_IFMT(two.st_mode))}"
        return
    if not options.no_modes and kind != stat.S_IFLNK and stat.S_IMODE(one.st_mode) != stat.S_IMODE(two.st_mode):
        yield f"mode {oct(stat.S_IMODE(one.st_mode))} and {oct(stat.S_IMODE(two.st_mode))}"
    if options.owners and (one.st_uid, one.st_gid) != (two.st_uid, two.st_gid):
        yield f"owner {one.st_uid}:{one.st_gid} and {two.st_uid}:{two.st_gid}"
    skips_times = options.no_times or (kind == stat.S_IFDIR and options.no_folder_times)
    if not skips_times and one.st_mtime_ns != two.st_mtime_ns:
        yield f"time {one.st_mtime_ns} and {two.st_mtime_ns}"
    if kind == stat.S_IFLNK and os.readlink(os.path.join(options.a, path)) != os.readlink(os.path.join(options.b, path)):
        yield "target"
    if kind == stat.S_IFREG:
        if one.st_size != two.st_size:
            yield f"size {one.st_size} and {two.st_size}"
        elif not options.no_content and not same_content(os.path.join(options.a, path), os.path.join(options.b, path)):
            yield "content"


def link_groups(found):
    groups = {}
    for path, status in found.items():
        if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
            groups.setdefault((status.st_dev, status.st_ino), set()).add(path)
    return {frozenset(group) for group in groups.values() if len(group) > 1}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("a", type=os.fsencode)
    parser.add_argument("b", type=os.fsencode)
    for name in ("content", "times", "folder-times", "modes"):
        parser.add_argument("--no-" + name, action="store_true")
    parser.add_argument("--owners", action="store_true")
    parser.add_argument("--links", action="store_true")
    parser.add_argument("--ignore", type=os.fsencode, action="append", default=[])
    options = parser.parse_args()
    first, second = entries(options.a, options.ignore), entries(options.b, options.ignore)
    found = []
    for path in sorted(set(first) | set(second)):
        if path not in second:
            found.append(f"{path!r}: only in {os.fsdecode(options.a)}")
        elif path not in first:
            found.append(f"{path!r}: only in {os.fsdecode(options.b)}")
        else:
            found += [f"{path!r}: {text}" for text in differences(path, first[path], second[path], options)]
    if options.links and link_groups(first) != link_groups(second):
        found.append(f"hard links: {sorted(map(sorted, link_groups(first) ^ link_groups(second)))}")
    for line in found[:30]:
        print(line)
    if len(found) > 30:
        print(f"… and {len(found) - 30} more")
    print(f"{len(first)} and {len(second)} entries, {len(found)} differences")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
