#!/usr/bin/env python3
"""Fifty live queries and a reader of the journal follow a domain while everything about it changes, and daemons are killed.

usage: live-queries.py --executable PROMISEFS [--changes 50000] [--queries 50] [--kills 10] [--seed N]

Programs make, write, rename, move, link, tag, pin, evict and remove items in the mount, somebody changes the provider's folder,
the provider is slow at times. Each event of a query must come once and in order: nothing is added twice, and nothing is changed
or removed that was not there. After every batch the domain comes to rest; then each live query has what a new one finds,
attributes included, and what the journal has told, one change after the other, gives the tree. Status 1: it was not so.
"""
import argparse, json, os, random, shutil, signal, sys, tempfile, threading, time, urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "clients", "python"))
import promisefs
from domain import Failed, Mount

ATTRIBUTES = ["kMDItemFSSize", "promisefs.state", "promisefs.pin", "kMDItemUserTags", "kMDItemFSContentChangeDate",
              "NSMetadataUbiquitousItemIsUploadedKey", "promisefs.links"]
PREDICATES = [
    "TRUEPREDICATE", "promisefs.kind == 'file'", "promisefs.kind == 'folder'", "promisefs.kind == 'link'",
    "NSMetadataUbiquitousItemIsUploadedKey == NO", "NSMetadataUbiquitousItemIsUploadedKey == YES",
    "NSMetadataUbiquitousItemIsUploadingKey == YES", "promisefs.state == 'placeholder'", "promisefs.state == 'uploading'",
    "promisefs.pin == 'pinned'", "kMDItemUserTags == 'red'", "ANY kMDItemUserTags IN {'blue', 'green'}",
    "promisefs.links > 1", "kMDItemFSSize == 0", "kMDItemFSSize > 1000 AND promisefs.state != 'placeholder'",
    "NSMetadataUbiquitousItemDownloadingStatusKey == 'NSMetadataUbiquitousItemDownloadingStatusNotDownloaded'",
    "promisefs.mode == 384", "NSMetadataUbiquitousItemHasUnresolvedConflictsKey == YES", "kMDItemFSName MATCHES '.*[0-4]'",
    "promisefs.linkTarget != NIL",
]


class LiveQuery:
    """What one live query has told, replayed in a thread of its own; daemons that come after another are asked anew."""

    def __init__(self, socket, predicate, scope):
        self.socket, self.predicate, self.scope = socket, predicate, scope
        self.lock = threading.Lock()
        self.items, self.gathered, self.problem, self.events = {}, False, None, 0
        threading.Thread(target=self.follow, daemon=True).start()

    def follow(self):
        while self.problem is None:
            sequence = 0
            with self.lock:
                self.items, self.gathered = {}, False
            try:
                domain = promisefs.Domain(self.socket)
                for kind, data in domain.live_query(self.predicate, scope=self.scope, attributes=ATTRIBUTES):
                    sequence += 1
                    with self.lock:
                        self.take(kind, data, sequence)
            except (OSError, ValueError, promisefs.PromiseError) as problem:
                if getattr(problem, "code", "") not in ("", "interrupted", "notFound"):
                    self.problem = f"it ended: {problem}"
                time.sleep(0.1)
            except Failed as problem:
                self.problem = str(problem)
            except Exception as problem:  # a connection that breaks in the middle of a line
                if type(problem).__module__ not in ("http.client",):
                    self.problem = repr(problem)
                time.sleep(0.1)

    def take(self, kind, data, sequence):
        self.events += 1
        if data.get("sequence") != sequence:
            raise Failed(f"event {data.get('sequence')} came instead of {sequence}")
        if kind == "gathered":
            self.gathered = True
        elif kind == "reset":
            self.items, self.gathered = {}, False
        for item in data.get("items", []):
            is_known = item["id"] in self.items
            if is_known != (kind == "changed"):
                raise Failed(f"'{kind}' of {item['path']}, which {'is' if is_known else 'is not'} there")
            if is_known and self.items[item["id"]] == item:
                raise Failed(f"'changed' of {item['path']}, in which nothing changed")
            self.items[item["id"]] = item
        for identifier in data.get("removed", []):
            if self.items.pop(identifier, None) is None:
                raise Failed(f"'removed' of {identifier}, which is not there")

    def difference(self):
        """From what a new query finds; None: there is none."""
        if self.problem:
            raise Failed(f"{self.predicate!r} in {self.scope}: {self.problem}")
        domain = promisefs.Domain(self.socket)
        fresh = {each["id"]: each for each in domain.query(self.predicate, scope=self.scope, attributes=ATTRIBUTES)}
        with self.lock:
            if not self.gathered:
                return "it has not gathered"
            wrong = [(self.items.get(key), fresh.get(key)) for key in {*self.items, *fresh}
                     if self.items.get(key) != fresh.get(key)]
        return f"{len(wrong)} of {len(fresh)} differ, e.g. {wrong[0]}" if wrong else None


class Journal:
    """The tree as the journal of changes tells it: paths of names that are there."""

    def __init__(self, socket):
        self.names, self.told, self.last, self.problem = {}, [], 0, None
        self.lock = threading.Lock()
        threading.Thread(target=self.follow, args=(socket,), daemon=True).start()

    def follow(self, socket):
        try:
            for page in promisefs.Domain(socket).follow_changes(since=0, patience=60):
                if page["isIncomplete"]:
                    self.problem = "changes are missing"
                    return
                with self.lock:
                    for change in page["changes"]:
                        self.take(change)
        except Exception as problem:
            self.problem = repr(problem)

    def take(self, change):
        # What a listing brought has one number.
        if change["sequence"] < self.last:
            self.problem = f"number {change['sequence']} came after {self.last}"
        self.last = change["sequence"]
        kind, place = change["kind"], (change.get("parent"), change.get("nameBytes"))
        if place[1] is None:
            return  # The root, or a file that is open and has no name.
        if kind == "deleted":
            if self.names.get(place) == change["node"]:
                self.names.pop(place)
        elif kind == "moved":
            if "oldNameBytes" in change:
                old = (change.get("oldParent"), change["oldNameBytes"])
                if self.names.get(old) == change["node"]:
                    self.names.pop(old)
                self.names[place] = change["node"]
            elif self.names.get(place) == change["node"]:
                self.names.pop(place)
        elif kind == "created" or "oldNode" in change:
            self.names[place] = change["node"]
        self.told.append(change)

    def about(self, paths):
        """The last things that were told of nodes with the name of one of `paths`."""
        names = {urllib.parse.quote(os.path.basename(os.fsencode(path))) for path in paths}
        nodes = {change["node"] for change in self.told if change.get("nameBytes") in names}
        return "\n".join(str(change) for change in self.told if change["node"] in nodes)[-4000:]

    def paths(self, root):
        """Of all names that the journal knows."""
        folders = {root: ""}
        with self.lock:
            names = dict(self.names)
        found, rest = set(), names
        while True:
            known = {place: node for place, node in rest.items() if place[0] in folders}
            if not known:
                return found, rest
            for (parent, name), node in known.items():
                path = folders[parent] + "/" + urllib.parse.unquote(name, errors="surrogateescape")
                found.add(path)
                folders[node] = path
            rest = {place: node for place, node in rest.items() if place not in known}


class Programs:
    """What happens to the domain, from a seed."""

    def __init__(self, mount, generator):
        self.mount, self.pick, self.count = mount, generator, 0
        self.folders = ["", "a", "b", "a/deep", "b/deep"]
        for top in self.folders[1:]:
            os.makedirs(os.path.join(mount.cloud, top), exist_ok=True)

    def name(self):
        return os.path.join(self.pick.choice(self.folders), f"f{self.pick.randint(0, 120)}")

    def change(self):
        self.count += 1
        try:
            self.pick.choice(self.there if self.pick.random() < 0.15 else self.here)()
        except OSError:
            pass  # What others have made, moved or removed in between is so; and a daemon may just be killed.

    def write(self, top, name):
        with open(os.path.join(top, name), "w") as file:
            file.write("x" * self.pick.choice([0, 10, 100, 2000, 9000]) + str(self.count))

    @property
    def here(self):
        top, pick = self.mount.top, self.pick
        one, other = os.path.join(top, self.name()), os.path.join(top, self.name())
        folder = os.path.join(top, pick.choice(self.folders), f"d{pick.randint(0, 4)}")

        def save():
            self.write(top, one + ".new~")
            os.rename(one + ".new~", one)

        def append():
            with open(one, "a") as file:
                file.write("more")

        def pin():
            os.setxattr(one, "user.promisefs.pin", pick.choice([b"pinned", b"unpinned"]))

        def evict():
            promisefs.Domain(self.socket).evict([os.path.relpath(one, top)])

        def read():
            with open(one) as file:
                file.read()

        def quietly(call):
            try:
                call()
            except promisefs.PromiseError:
                pass

        return [lambda: self.write(top, one), lambda: self.write(top, one), append, save, lambda: os.rename(one, other),
                lambda: os.rename(one, other), lambda: os.unlink(one), lambda: os.unlink(one), lambda: os.mkdir(folder),
                lambda: os.rmdir(folder), lambda: os.rename(folder, os.path.join(top, pick.choice(self.folders), "d9")),
                lambda: os.rename(one, os.path.join(folder, os.path.basename(one))), lambda: os.link(one, other),
                lambda: os.symlink("f1", one), lambda: os.chmod(one, pick.choice([0o600, 0o644])), lambda: os.utime(one),
                lambda: os.truncate(one, pick.choice([0, 5])), read,
                lambda: os.setxattr(one, "user.xdg.tags", pick.choice([b"red", b"blue", b"green,red"])),
                lambda: os.removexattr(one, "user.xdg.tags"), lambda: quietly(pin), lambda: quietly(evict)]

    @property
    def there(self):
        top = self.mount.cloud
        one, other = os.path.join(top, self.name()), os.path.join(top, self.name())
        return [lambda: self.write(top, one), lambda: self.write(top, one), lambda: os.rename(one, other),
                lambda: os.unlink(one)]


def faults(mount, line):
    with open(mount.provider_faults + ".new", "w") as file:
        file.write(line)
    os.rename(mount.provider_faults + ".new", mount.provider_faults)


def walk(top):
    found = set()
    for folder, folders, files in os.walk(top):
        for name in folders + files:
            found.add(os.path.join(folder, name)[len(top):])
    return found


def at_rest(mount, queries, journal, patience=30):
    """Waits until nothing is under way; then everything must be the same within `patience` seconds."""
    faults(mount, "")
    # What was written to a file whose other bytes are gone at the provider waits, and is said to.
    mount.run("sync", "--wait", mount.top, statuses=(0, 7), timeout=300)
    deadline = time.monotonic() + patience
    while True:
        said = next((f"{each.predicate!r} in {each.scope}: {said}" for each in queries if (said := each.difference())), None)
        if said is None:
            there = walk(mount.top)
            paths, lost = journal.paths(os.stat(mount.top).st_ino)
            if journal.problem:
                raise Failed(f"the journal: {journal.problem}")
            wrong = sorted(there ^ paths)
            if not wrong and not lost:
                return
            said = f"the journal's tree differs: {wrong[:5]}, {len(lost)} names in no folder; {journal.about(wrong[:1])}"
        if time.monotonic() > deadline:
            raise Failed(said)
        time.sleep(0.3)


def check(mount, arguments, generator):
    programs = Programs(mount, generator)
    mount.mount()
    socket = promisefs.locate(mount.top)[0].socket_path
    programs.socket = socket
    for folder in programs.folders:
        os.listdir(os.path.join(mount.top, folder))
    journal = Journal(socket)
    queries = [LiveQuery(socket, PREDICATES[number % len(PREDICATES)], [None, "/a", "/b/deep"][number // len(PREDICATES) % 3])
               for number in range(arguments.queries)]
    batch = max(arguments.changes // (arguments.kills + 10), 1)
    kills = 0
    while programs.count < arguments.changes:
        faults(mount, generator.choice(["", "", "delay=50ms\n", "delay=300ms\nfail=5\n"]))
        at = generator.randrange(batch) if kills < arguments.kills and programs.count else -1
        for number in range(batch):
            programs.change()
            if number == at:
                mount.send(signal.SIGKILL, mount.processes())
                kills += 1
        at_rest(mount, queries, journal)
        events = sum(each.events for each in queries)
        print(f"{programs.count} changes, {kills} kills, {events} events: all agree", flush=True)
    return f"{programs.count} changes, {kills} kills: every query and the journal agree with the tree"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--executable", required=True)
    parser.add_argument("--changes", type=int, default=50_000)
    parser.add_argument("--queries", type=int, default=50)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    parser.add_argument("--folder", default=None, help="where the temporary folder is made")
    parser.add_argument("--keep", action="store_true", help="keep the folder when something failed")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    folder = tempfile.mkdtemp(prefix="live-queries-", dir=arguments.folder)
    mount = Mount(arguments.executable, folder, name=f"live{os.getpid()}")
    os.environ.update(mount.environment)
    failed = False
    try:
        print(check(mount, arguments, random.Random(arguments.seed)), flush=True)
    except Failed as problem:
        failed = True
        print(f"FAILED (seed {arguments.seed}): {problem}", flush=True)
        print("the daemon's last words:\n" + mount.last_words(), flush=True)
    finally:
        mount.clean_up()
        if not (failed and arguments.keep):
            shutil.rmtree(folder, ignore_errors=True)
    sys.stdout.flush()
    os._exit(1 if failed else 0)  # The readers' threads wait for ever.


if __name__ == "__main__":
    main()
