#!/usr/bin/env python3
"""Saves a document in the ways editors do, and with real editors, and checks that each save is one edit of that document.

usage: editor-saves.py --executable PROMISEFS [--folder DIR] [--only PATTERN] [--quick] [--all-editors] [--webdav] [--at-once]

Every way is tried on a document that the provider knows, undisturbed and with a change at the provider between reading and
saving. Undisturbed: the provider gets the new bytes as one new version under the same name; identifier, pin and tags stay as
they were, where the local file system would keep them; no temporary name was ever at the provider; nothing else is left.
Slow: some are tried so that the provider has seen the new file; it is the same document all the same. Disturbed: both contents are there, on both sides. Editors that are not installed are left out, and said; nano, emacs and
LibreOffice are tried only with --all-editors. --webdav: on an Apache of its own instead of a folder. --quick: the ways that
differ most. --at-once: without an upload delay, so that the provider may see each step; what it is shown is not looked at then.
Exit status 1 when anything is wrong.

> Each of these is one edit of one document:
> Extended attributes are kept where the local disk would keep them.
"""
import argparse, fnmatch, json, os, shutil, subprocess, sys, tempfile, time

from domain import Failed, Mount
from editor_ways import MORE, NEW, OLD, QUICK, REMOTE, SLOW, SUFFIXES, WAYS, missing, text_of, write_document


class WatchedMount(Mount):
    """With every name that its provider is shown."""

    def __init__(self, executable, folder, server, is_at_once):
        """`server`: what a server that serves `server/data` said when it was started; none: the provider is a folder."""
        options = {}
        if server:
            options = {
                "cloud": server["WEBDAV_ROOT"], "provider": "webdav+" + server["WEBDAV_URL"],
                "arguments": ["--poll-interval", "1s"],
                "environment": {"PROMISEFS_USER": server["WEBDAV_USER"], "PROMISEFS_PASSWORD": server["WEBDAV_PASSWORD"]},
            }
        self.is_at_once = is_at_once
        super().__init__(executable, folder, name="editors", upload_delay="0s" if is_at_once else "1500ms", **options)
        self.set_offline(False)
        self.mount()
        watcher = os.path.join(os.path.dirname(os.path.abspath(__file__)), "watch-names.py")
        self.seen, self.lines_known = folder + "/seen", 0
        self.watcher = subprocess.Popen([sys.executable, watcher, self.cloud, self.seen], stdout=subprocess.PIPE, text=True)
        self.watcher.stdout.readline()

    def names_seen(self):
        time.sleep(0.1)
        lines = open(self.seen).read().splitlines() if os.path.exists(self.seen) else []
        fresh, self.lines_known = lines[self.lines_known :], len(lines)
        return {os.path.basename(json.loads(line)) for line in fresh}

    def bytes_uploaded(self):
        return self.status()["bytesUploaded"]

    def clean_up(self):
        self.watcher.kill()
        self.watcher.wait()
        super().clean_up()


SERVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "servers", "apache-webdav")


def started(folder):
    """A server in a folder of its own, as it describes itself."""
    lines = subprocess.run([SERVER, "start", folder], check=True, capture_output=True, text=True).stdout.splitlines()
    return dict(line.split("=", 1) for line in lines)


def listed(folder):
    """Without what Apache keeps of its own."""
    return [name for name in os.listdir(folder) if name != ".DAV"]


def attribute(path, name):
    try:
        return os.getxattr(path, "user.promisefs." + name).decode()
    except OSError:
        return None


def tagged(path):
    try:
        return os.getxattr(path, "user.tag").decode()
    except OSError:
        return None


def kept_by_a_disk(save, suffix, top):
    """Whether the local file system keeps extended attributes in this way of saving."""
    folder = os.path.join(top, "plain", "documents")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "document" + suffix)
    for name in os.listdir(folder):
        os.unlink(os.path.join(folder, name))
    write_document(path, OLD)
    os.setxattr(path, "user.tag", b"red")
    save(path, lambda: None)
    return tagged(path)


def document(domain, number, suffix):
    """A fresh document in a folder of its own, known to both sides, its content here as after reading it."""
    name = "document" + suffix
    path = os.path.join(domain.top, f"work{number}", name)
    os.makedirs(os.path.dirname(path))
    write_document(path, OLD)
    domain.settle()
    os.setxattr(path, "user.promisefs.pin", b"pinned")
    os.setxattr(path, "user.tag", b"red")
    domain.names_seen()
    return path, os.path.join(domain.cloud, f"work{number}", name)


class Found:
    """A reference and a bookmark of a document, which are to lead to it whatever becomes of it."""

    def __init__(self, domain, path, number):
        self.domain, self.reference = domain, os.path.join(domain.top, f"found{number}")
        domain.run("reference", "add", path, self.reference)
        self.bookmark = domain.run("bookmark", "create", path, "--app", "com.example.editor").strip()

    def expect(self, path, when):
        if os.path.realpath(self.reference) != path:
            raise Failed(f"{when} the reference leads to {os.readlink(self.reference)}")
        place = self.domain.run("bookmark", "resolve", self.bookmark, "--app", "com.example.editor").strip()
        if place != path:
            raise Failed(f"{when} the bookmark leads to {place}")


# One grey pixel.
PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b550"
    "000000a49444154789c636800000082008177cd72b60000000049454e44ae426082")


def save_picture(domain, path):
    """As an application does that has saved a document."""
    file = os.path.join(domain.folder, "picture.png")
    with open(file, "wb") as output:
        output.write(PICTURE)
    domain.run("thumbnail", path, "--save", file)


def expect_picture(domain, path):
    file = os.path.join(domain.folder, "shown.png")
    domain.run("thumbnail", path, "-o", file)
    with open(file, "rb") as shown:
        if shown.read() != PICTURE:
            raise Failed("another picture is shown than was saved with the document")


def moved(domain, number, save, suffix):
    """The document gets another name and folder just before, of which the provider has not heard."""
    path, _ = document(domain, number, suffix)
    identifier, found = attribute(path, "identifier"), Found(domain, path, number)
    domain.settle()
    fresh = os.path.join(os.path.dirname(path), "fresh", "document" + suffix)
    os.makedirs(os.path.dirname(fresh))
    os.rename(path, fresh)
    save(fresh, lambda: None)
    found.expect(fresh, "after the save")
    domain.settle()
    found.expect(fresh, "in the end")
    if text_of(os.path.join(domain.cloud, f"work{number}", "fresh", "document" + suffix)) != NEW:
        raise Failed("the provider does not have what was saved")
    if attribute(fresh, "identifier") != identifier:
        raise Failed(f"the identifier was {identifier} and is {attribute(fresh, 'identifier')}")


def slow(domain, number, save):
    """The new file is at the provider before it gets the document's name."""
    path, there = document(domain, number, ".txt")
    identifier, found = attribute(path, "identifier"), Found(domain, path, number)
    domain.settle()
    domain.names_seen()
    save(path, lambda: None, domain.settle, "fresh")
    found.expect(path, "after the save")
    domain.settle()
    found.expect(path, "in the end")
    if text_of(path) != NEW or text_of(there) != NEW:
        raise Failed("not both sides have what was saved")
    if attribute(path, "identifier") != identifier:
        raise Failed(f"the identifier was {identifier} and is {attribute(path, 'identifier')}")
    if attribute(path, "pin") != "pinned":
        raise Failed(f"the pin is {attribute(path, 'pin')}")
    left = [listed(os.path.dirname(each)) for each in (path, there)]
    if left != [["document.txt"]] * 2:
        raise Failed(f"mount and provider hold {left}")
    if "fresh" not in domain.names_seen() and not domain.is_at_once:
        raise Failed("the provider has not seen the new file before")


def undisturbed(domain, number, save, suffix, tag):
    path, there = document(domain, number, suffix)
    identifier, found = attribute(path, "identifier"), Found(domain, path, number)
    domain.settle()
    domain.names_seen()
    uploaded = domain.bytes_uploaded()
    save(path, lambda: None)
    found.expect(path, "after the save")
    save_picture(domain, path)
    domain.settle()
    found.expect(path, "in the end")
    expect_picture(domain, path)
    uploaded = domain.bytes_uploaded() - uploaded
    if text_of(path) != NEW:
        raise Failed("the mount does not have what was saved")
    if text_of(there) != NEW:
        raise Failed("the provider does not have what was saved")
    if uploaded != os.path.getsize(path) and not domain.is_at_once:
        raise Failed(f"{uploaded} bytes were uploaded for a document of {os.path.getsize(path)}")
    if attribute(path, "identifier") != identifier:
        raise Failed(f"the identifier was {identifier} and is {attribute(path, 'identifier')}")
    if attribute(path, "pin") != "pinned":
        raise Failed(f"the pin is {attribute(path, 'pin')}")
    if tagged(path) != tag:
        raise Failed(f"user.tag is {tagged(path)}, on a local disk it is {tag}")
    if attribute(path, "state") != "current":
        raise Failed(f"the state is {attribute(path, 'state')}")
    left = set(listed(os.path.dirname(there)))
    if left != {"document" + suffix}:
        raise Failed(f"the provider holds {sorted(left)}")
    # Contents come to a server's own folder for uploads first, and Apache keeps notes of each file.
    kept = (".promisefs", "promisefs-", ".DAV", ".davfs.tmp", "document", "work")
    seen = {name for name in domain.names_seen() if name not in left and not name.startswith(kept if domain.arguments else kept[:1])}
    if seen and not domain.is_at_once:
        raise Failed(f"the provider was shown {sorted(seen)}")


def disturbed(domain, number, save, suffix):
    path, there = document(domain, number, suffix)

    def between():
        # The news must not be followed before the document is saved.
        domain.set_offline(True)
        # Not by a rename: that would be another item to a folder.
        write_document(there, REMOTE)

    save(path, between)
    domain.set_offline(False)
    end = time.time() + 30
    while True:
        domain.settle()
        both = [
            sorted(text_of(os.path.join(top, name)) for name in listed(top) if not name.endswith("~"))
            for top in (os.path.dirname(path), os.path.dirname(there))
        ]
        if both[0] == both[1] and len(both[0]) >= 2 or time.time() > end:
            break
        time.sleep(0.2)
    texts = both[1]
    if sorted([NEW, REMOTE]) != texts:
        shown = [text.splitlines()[6] + "/" + text.splitlines()[8] if text.count("\n") > 8 else repr(text[:40]) for text in texts]
        raise Failed(f"the provider holds {os.listdir(os.path.dirname(there))}: {shown}")
    if both[0] != texts:
        raise Failed(f"the mount holds {os.listdir(os.path.dirname(path))}, the provider {os.listdir(os.path.dirname(there))}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executable", required=True)
    parser.add_argument("--folder", default="/var/tmp")
    parser.add_argument("--only", default="*")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--all-editors", action="store_true")
    parser.add_argument("--webdav", action="store_true")
    parser.add_argument("--at-once", action="store_true")
    options = parser.parse_args()
    ways = dict(WAYS, **MORE) if options.all_editors else WAYS
    folder = tempfile.mkdtemp(prefix="pfs-edit-", dir=options.folder)
    server = started(folder + "/server") if options.webdav else None
    domain = WatchedMount(options.executable, folder, server, options.at_once)
    wrong = number = 0
    try:
        for name, save in ways.items():
            if not fnmatch.fnmatch(name, options.only) or options.quick and name not in QUICK:
                continue
            if absent := missing(name):
                print(f"left out, {absent} is not installed: {name}", flush=True)
                continue
            suffix = SUFFIXES.get(name, ".txt")
            tag = kept_by_a_disk(save, suffix, folder)
            tries = {
                "undisturbed": lambda: undisturbed(domain, number, save, suffix, tag),
                "disturbed": lambda: disturbed(domain, number, save, suffix),
                "just moved": lambda: moved(domain, number, save, suffix),
            }
            if name in SLOW:
                tries["slow"] = lambda: slow(domain, number, save)
            for kind, attempt in tries.items():
                number += 1
                try:
                    attempt()
                    print(f"right  {name}, {kind}", flush=True)
                except (Failed, OSError, subprocess.TimeoutExpired) as problem:
                    wrong += 1
                    print(f"WRONG  {name}, {kind}: {problem}", flush=True)
    finally:
        domain.clean_up()
        if server:
            subprocess.run([SERVER, "stop", folder + "/server"])
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{number} saves, {wrong} wrong", flush=True)
    sys.exit(1 if wrong or not number else 0)


main()
