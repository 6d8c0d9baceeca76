#!/usr/bin/env python3
"""Saves documents in the ways editors do while programs show them, their folder and a live query.

usage: presented-saves.py --executable PROMISEFS [--folder DIR] [--only PATTERN] [--quick]

Every way is tried on a document that the provider knows, on one that it does not, on one with a second name, and at the
provider. Who shows the document hears that it changed, ends at its place, hears of no end, and goes on showing it; who shows its
second name hears what that name shows. Who shows the folder, or has a live query of it, has the names and the items that are
there. A document that is removed and made anew has gone for who shows it. Exit status 1 when anything is wrong.
"""
import argparse, fnmatch, os, sys, tempfile, threading, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "clients", "python"))
import promisefs
from domain import Failed, Mount
from editor_ways import NEW, OLD, QUICK, WAYS, missing, write

# The document is removed first.
REMOVING = {"delete, create", "git checkout"}
# At the provider the file that was the document is there still, and is it.
STAYING = {"backup by rename, rewrite, backup stays", "perl -i.bak~", "vim backupcopy=no"}
# The second name is the document's content still, or that of what it was.
IN_PLACE = {"write in place", "write in place, then truncate", "backup by copy, rewrite", "vim backupcopy=yes",
            "rsync --inplace", "vim"}


class Listener(threading.Thread):
    """Until the daemon ends."""

    def run(self):
        try:
            self.listen()
        except (promisefs.PromiseError, OSError):
            pass


class Heard(Listener):
    """What a presenter is told, in order; every question is answered."""

    def __init__(self, domain, path):
        super().__init__(daemon=True)
        self.domain, self.path, self.events, self.begun = domain, path, [], threading.Event()
        self.asked = []
        self.start()
        if not self.begun.wait(20):
            raise Failed(f"nobody shows {path}")

    def listen(self):
        for name, event in self.domain.present(self.path):
            if name == "presenting":
                self.begun.set()
            elif name == "ask":
                self.asked.append(event["what"])
                self.domain.answer(event)
            elif name == "tell" and event["what"] != "reacquire":
                self.events.append((event["what"], event.get("path"), event.get("oldPath")))

    def told(self, what, start=0):
        return [event for event in self.events[start:] if event[0] == what]

    def names(self, folder, names):
        """Those in the folder by what it was told, from those that were there."""
        names = set(names)
        for what, path, old in list(self.events):
            if what in ("subitemDidMove", "subitemDidDelete") and old:
                names.discard(old)
            if what in ("subitemDidMove", "subitemDidAppear", "subitemDidChange") and path:
                names.add(path)
        return {name for name in names if os.path.dirname(name) == folder}


class Results(Listener):
    """Of a live query: names and numbers of a folder's items."""

    def __init__(self, domain, folder):
        super().__init__(daemon=True)
        self.domain, self.folder, self.items, self.gathered = domain, folder, {}, threading.Event()
        self.start()
        if not self.gathered.wait(20):
            raise Failed("the live query does not begin")

    def listen(self):
        for kind, event in self.domain.live_query("TRUEPREDICATE", scope=self.folder):
            if kind == "gathered":
                self.gathered.set()
            if kind == "reset":
                self.items.clear()
            for number in event.get("removed") or []:
                self.items.pop(number, None)
            for item in event.get("items") or []:
                self.items[item["id"]] = item["path"]


def within(seconds, what, check):
    end = time.time() + seconds
    while not check():
        if time.time() > end:
            raise Failed(what() if callable(what) else what)
        time.sleep(0.02)


class Case:
    def __init__(self, mount, domain, way, number, kind):
        self.mount, self.domain, self.way, self.kind = mount, domain, way, kind
        self.name = f"work{number}"
        self.folder = os.path.join(mount.top, self.name)
        self.path = os.path.join(self.folder, "document.txt")
        self.place, self.at = f"/{self.name}/document.txt", f"/{self.name}"

    def try_it(self):
        os.makedirs(self.folder)
        write(self.path, OLD)
        if self.kind != "unsent":
            self.mount.settle()
        other = os.path.join(self.folder, "other name")
        if self.kind == "second":
            os.link(self.path, other)
            self.mount.settle()
        start = ["/" + self.name + "/" + name for name in os.listdir(self.folder)]
        shown, above = Heard(self.domain, self.place), Heard(self.domain, self.at)
        second = Heard(self.domain, self.at + "/other name") if self.kind == "second" else None
        self.save_and_look(shown, above, second, Results(self.domain, self.at), start)

    def save_and_look(self, shown, above, second, results, start):
        number = self.number(results)
        path = self.path
        if self.kind == "remote":
            path = os.path.join(self.mount.cloud, self.name, "document.txt")
        WAYS[self.way](path, lambda: None)
        if self.kind == "remote":
            within(20, "the provider's version does not come", lambda: self.looked() and open(self.path).read() == NEW)
        elif self.kind != "unsent":
            self.mount.settle()
        listed = lambda: {f"{self.at}/{name}" for name in os.listdir(self.folder)}
        if self.way in REMOVING and self.kind != "remote":
            within(5, lambda: f"heard of no end: {shown.events}", lambda: shown.told("didDelete"))
        else:
            within(5, lambda: f"heard of no change: {shown.events}", lambda: shown.told("didChange"))
            time.sleep(0.3)
            if shown.told("didDelete"):
                raise Failed(f"heard of an end: {shown.events}")
            moved = shown.told("didMove")
            if moved and moved[-1][1] != self.place:
                raise Failed(f"is shown elsewhere: {shown.events}")
            self.expect_next(shown)
            within(5, lambda: f"is number {self.number(results)} of the live query, and was {number}",
                   lambda: self.number(results) == number)
        if second:
            self.expect_second(second)
        within(5, lambda: f"the folder's presenter has {above.names(self.at, start)}: {above.events}",
               lambda: above.names(self.at, start) == listed())
        within(5, lambda: f"the live query has {results.items}", lambda: set(results.items.values()) == listed())

    def looked(self):
        self.mount.run("sync", self.mount.top)
        return True

    def number(self, results):
        found = [number for number, path in results.items.items() if path == self.place]
        return found[0] if len(found) == 1 else None

    def expect_next(self, shown):
        """It is shown still."""
        count = len(shown.events)
        with open(self.path, "a") as file:
            file.write("more\n")
        within(5, lambda: f"is not shown any more: {shown.events}", lambda: shown.told("didChange", count))
        os.rename(self.path, self.path + ".moved")
        within(5, lambda: f"is not shown where it is: {shown.events}",
               lambda: ("didMove", self.place + ".moved", None) in shown.events[count:])
        os.rename(self.path + ".moved", self.path)
        within(5, lambda: f"is not shown where it is again: {shown.events}",
               lambda: shown.told("didMove", count)[-1:] == [("didMove", self.place, None)])

    def expect_second(self, second):
        time.sleep(0.3)
        wrong = [event for event in second.events if event[0] in ("didMove", "didDelete")]
        if wrong:
            raise Failed(f"the second name's presenter heard {second.events}")
        if "accommodateDeletion" in second.asked:
            raise Failed("the second name's presenter was asked to close it")
        # Of an exchange it hears that its file has another name for a moment, too.
        if self.way not in IN_PLACE | {"exchange"} and second.told("didChange"):
            raise Failed(f"the second name's presenter heard of a change: {second.events}")
        count = len(second.events)
        with open(os.path.join(self.folder, "other name"), "a") as file:
            file.write("more\n")
        within(5, lambda: f"the second name is not shown any more: {second.events}", lambda: second.told("didChange", count))
        os.rename(os.path.join(self.folder, "other name"), os.path.join(self.folder, "third name"))
        within(5, lambda: f"the second name is not shown where it is: {second.events}",
               lambda: ("didMove", self.at + "/third name", None) in second.events[count:])
        os.unlink(os.path.join(self.folder, "third name"))
        within(5, lambda: f"the second name's end is not told: {second.events}", lambda: second.told("didDelete", count))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--executable", required=True)
    parser.add_argument("--folder")
    parser.add_argument("--only", default="*")
    parser.add_argument("--kinds", default="sent,unsent,second,remote")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="presented.", dir=options.folder)
    faults, number = [], 0
    for kind in options.kinds.split(","):
        delay = "1h" if kind == "unsent" else "300ms"
        mount = Mount(options.executable, os.path.join(folder, kind), name="presented-" + kind, upload_delay=delay)
        try:
            mount.mount()
            os.environ["XDG_RUNTIME_DIR"] = mount.environment["XDG_RUNTIME_DIR"]
            domain, _ = promisefs.locate(mount.top)
            for way in WAYS:
                if not fnmatch.fnmatch(way, options.only) or missing(way) or options.quick and way not in QUICK:
                    continue
                if kind == "remote" and way in STAYING:
                    continue
                number += 1
                try:
                    Case(mount, domain, way, number, kind).try_it()
                except (Failed, OSError) as fault:
                    faults.append(f"{kind}: {way}: {fault}")
                    print(faults[-1], flush=True)
        finally:
            mount.clean_up()
    print(f"{number} saves, {len(faults)} wrong")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
