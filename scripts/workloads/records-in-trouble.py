#!/usr/bin/env python3
"""Makes containers, references, bookmarks and values while the power is cut, or the disk is full, and looks which are there then.

usage: records-in-trouble.py --executable PROMISEFS [--cuts 5] [--seed N] [--full]

What was answered is there, and of what was not there is all or nothing: each value is the last one that was set, each container is
in the list, each bookmark finds its document, a reference whose folder was synced leads to its document, and no other one is half
there. No store is empty, and `verify` is clean. Cuts are made as by power-cut.py; with --full the state folder is on a tmpfs that is
filled, and the daemon is killed there. Root only. Exit status 1 when anything is wrong.
"""
import importlib.util, json, os, random, sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../../clients/python")]
import promisefs
from domain import Failed

specification = importlib.util.spec_from_file_location("trouble", os.path.join(HERE, "grants-in-trouble.py"))
trouble = importlib.util.module_from_spec(specification)
specification.loader.exec_module(trouble)

APPLICATION, KEYS, CONTAINERS = trouble.APPLICATION, 20, 6


class Worker:
    """Notes each change before it ([kind, name, what]), after it (["done", kind, name, what]), and when it failed (["failed"]); ["synced"] when the folder
    of all references was."""

    def __init__(self, found, log, seed):
        self.client, self.log, self.choose = found, log, random.Random(seed)
        self.count, self.containers, self.top = 0, set(), found.status()["mountPoint"]
        self.prefix = f"link{seed}-"

    def note(self, *words):
        self.log.write(json.dumps(words) + "\n")
        self.log.flush()

    def step(self):
        kind, name, what, change = self.choice()
        self.note(kind, name, what)
        try:
            made = change()
        except promisefs.PromiseError:
            self.note("failed")
            return False
        # A bookmark is what the answer says.
        self.note("done", kind, name, [what, made] if kind == "bookmark" else what)
        if kind == "reference" and self.choose.random() < 0.5:
            self.synchronize()
        return True

    def synchronize(self):
        folder = os.open(self.top, os.O_RDONLY)
        try:
            os.fsync(folder)
            self.note("synced")
        except OSError:
            # A full disk.
            pass
        finally:
            os.close(folder)

    def choice(self):
        """What is changed next: its kind, its name, what it is then, and the change."""
        self.count += 1
        chance, path = self.choose.random(), f"f{self.choose.randrange(trouble.FILES)}"
        if chance < 0.4:
            key = f"key{self.choose.randrange(KEYS)}"
            return "value", key, self.count, lambda: self.client.keep_value(APPLICATION, key, {"integer": self.count})
        if chance < 0.55:
            name = f"com.example.a{self.choose.randrange(CONTAINERS)}"
            if name in self.containers:
                self.containers.discard(name)
                return "container", name, False, lambda: self.client.remove_container(name)
            self.containers.add(name)
            return "container", name, True, lambda: self.client.add_container(name)
        if chance < 0.8:
            link = self.prefix + str(self.count)
            return "reference", link, path, lambda: self.client.add_reference(path, link)
        return "bookmark", str(self.count), path, lambda: self.client.bookmark(path, APPLICATION)


def expectation(lines):
    """By kind and name: what it is, and what it may be instead, the one change that was not answered; which references must be there."""
    known, unsure, synced = {}, {}, []
    for words in map(json.loads, lines):
        if words[0] == "done":
            known[words[1], words[2]] = words[3]
            unsure = {}
        elif words[0] == "synced":
            synced = [name for kind, name in known if kind == "reference"]
        elif words[0] == "failed":
            # It may be there all the same, and the next change of it starts from that.
            unsure = {}
        else:
            unsure = {(words[0], words[1]): words[2]}
    return known, unsure, synced


def may_be(lines):
    """What a change may have left that was refused: a container's folder is made before its record."""
    refused, last = {}, None
    for words in map(json.loads, lines):
        if words[0] == "failed":
            refused.setdefault(last[:2], set()).add(json.dumps(last[2]))
        elif words[0] == "synced":
            continue
        elif words[0] == "done":
            refused.pop((words[1], words[2]), None)
        else:
            last = tuple(words)
    return refused


def look(domain, lines, verifies=True):
    found = trouble.client(domain)
    known, unsure, synced = expectation(lines)
    refused = may_be(lines)

    def check(kind, name, seen, wanted):
        allowed = [wanted] + ([unsure[kind, name]] if (kind, name) in unsure else [])
        if seen not in allowed and json.dumps(seen) not in refused.get((kind, name), ()):
            raise Failed(f"the {kind} {name} is {seen!r}, and was {wanted!r}")

    values = found.kept_values(APPLICATION)
    for number in range(KEYS):
        seen = values.get(f"key{number}", {}).get("integer")
        check("value", f"key{number}", seen, known.get(("value", f"key{number}")))
    listed = {each["application"] for each in found.containers()["containers"]}
    for number in range(CONTAINERS):
        name = f"com.example.a{number}"
        check("container", name, name in listed, known.get(("container", name), False))
    for (kind, name), what in known.items():
        if kind == "bookmark":
            place = found.resolve_bookmark(what[1], APPLICATION).get("path", "nowhere")
            if place.lstrip("/") != what[0]:
                raise Failed(f"the bookmark {name} of {what[0]} leads to {place}")
    references(domain, known, unsure, refused, synced)
    if verifies:
        domain.run("verify", domain.top)
    return f"{len(values)} values, {len(listed)} containers, {len(known)} things in all"


def references(domain, known, unsure, refused, synced):
    """A name that was not synced may be gone; what is there leads to its document."""
    wanted = {name: what for (kind, name), what in [*known.items(), *unsure.items()] if kind == "reference"}
    for (kind, name), what in refused.items():
        if kind == "reference":
            wanted.setdefault(name, json.loads(next(iter(what))))
    names = set(os.listdir(domain.top))
    for name in synced:
        if name not in names:
            raise Failed(f"the reference {name} is gone, and its folder was synced")
    for name in names:
        if name.startswith("link"):
            target = os.readlink(os.path.join(domain.top, name))
            if target != wanted.get(name):
                raise Failed(f"the reference {name} leads to {target}, not to {wanted.get(name)}")


trouble.Worker, trouble.look = Worker, look
if __name__ == "__main__":
    trouble.main()
