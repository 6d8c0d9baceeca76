"""Checks the Python client against the document of the protocol and a daemon.

usage: check_client.py EXECUTABLE MOUNT OPENAPI

The mount holds `top.txt`, which is here, `docs/note-1.txt`, `pictures/a.jpg` with two tags, and a link. Promised values must
be the same by every way, and the document of the protocol must name every route that the client uses.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import promisefs  # noqa: E402

EXECUTABLE, MOUNT, OPENAPI = sys.argv[1:]


def equal(what, left, right):
    if left != right:
        sys.exit(f"{what}: {left!r} is not {right!r}")


def printed(*words):
    output = subprocess.run([EXECUTABLE, *words], check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in output.splitlines()]


def check_routes():
    with open(OPENAPI) as file:
        known = re.findall(r"^  /v1/(\S+):$", file.read(), re.MULTILINE)
    patterns = [re.sub(r"\{[^}]*\}", "[^/]+", route) for route in known]
    with open(promisefs.client.__file__) as file:
        used = re.findall(r'(?:"(?:GET|POST|PUT)", f?|_events\(|_last\()"([a-z][^"?]*)', file.read())
    for route in {re.sub(r"\{[^}]*\}", "x", route) for route in used}:
        if not any(re.fullmatch(pattern, route) for pattern in patterns):
            sys.exit(f"the document of the protocol has no {route}")
    if len(used) < 10:
        sys.exit("the client's routes were not found")


def check_values(domain):
    names = ["top.txt", "docs/note-1.txt", "pictures/a.jpg", "pictures", "link"]
    bulk = domain.values(names)
    equal("failures", bulk["failures"], [])
    for name, item in zip(names, bulk["items"]):
        path = os.path.join(MOUNT, name)
        whole = domain.information(name)
        equal(name + " by info", printed("info", "--json", path), [whole])
        equal(name + " of one", whole["values"], item["values"])
        keys = [word for key in item["values"] for word in ("--key", key)]
        equal(name + " by PromiseKit", printed("info", "--json", *keys, path), [item])
        status = os.lstat(path)
        equal(name + " by lstat", (item["values"]["kMDItemFSNodeID"], item["values"]["promisefs.mode"]),
              (status.st_ino, status.st_mode & 0o7777))
    states = [item["values"]["promisefs.state"] for item in bulk["items"]]
    equal("states", states, ["current", "placeholder", "placeholder", "current", "current"])
    equal("tags", bulk["items"][2]["values"]["kMDItemUserTags"], ["red", "blue"])
    equal("target", bulk["items"][4]["values"]["promisefs.linkTarget"], "top.txt")
    one = domain.values(["top.txt", "none"], keys=["kMDItemFSSize"])
    equal("one key", (one["items"][0]["values"], one["failures"][0]["code"]), ({"kMDItemFSSize": 2}, "notFound"))
    try:
        domain.values(["top.txt"], keys=["nonsense"])
        sys.exit("a key that there is not was taken")
    except promisefs.PromiseError as error:
        equal("unknown key", (error.status, error.exit_status), (400, 2))


def check_coordination(domain):
    asked = []

    def present():
        for name, data in domain.present("top.txt"):
            asked.append((name, data.get("what")))
            ready.set()
            if name == "ask":
                domain.answer(data)
            if data.get("what") == "reacquire":
                return

    ready = threading.Event()
    presenter = threading.Thread(target=present, daemon=True)
    presenter.start()
    ready.wait(30)
    with domain.coordinate(promisefs.writing("top.txt"), timeout=30) as granted:
        equal("granted", granted["items"][0]["path"], "/top.txt")
        refusals = []

        def read():
            try:
                with domain.coordinate(promisefs.reading(b"top.txt"), timeout=0.05):
                    sys.exit("two were inside at once")
            except promisefs.PromiseError as error:
                refusals.append(error.exit_status)

        # Another thread waits until its time is over; what is nested would wait for itself.
        reader = threading.Thread(target=read)
        reader.start()
        reader.join(30)
        read()
        equal("refusals", refusals, [4, 1])
    presenter.join(30)
    equal("asked", asked[:2], [("presenting", None), ("ask", "relinquishToWriter")])


def check_places():
    """As `promisefs` finds them: `..` is what the disk says, and a link outside stands for what it leads to in the mount."""
    with tempfile.TemporaryDirectory() as folder:
        links = {"docs": "docs", "one": "top.txt", "inside": "link"}
        for name, target in links.items():
            os.symlink(os.path.join(MOUNT, target), os.path.join(folder, name))
        wanted = {"docs/../top.txt": b"top.txt", "one": b"top.txt", "docs": b"docs", "docs/.": b"docs", "docs/..": b"",
                  "docs/note-1.txt/": b"docs/note-1.txt"}
        for path, place in wanted.items():
            equal(path, promisefs.locate(os.path.join(folder, path))[1], place)
    equal("a link in the mount", promisefs.locate(os.path.join(MOUNT, "link"))[1], b"link")


def check_shared_use(domain):
    """Threads share a client, and a process that was forked has no connection of its parent's."""
    done = []

    def work():
        for _ in range(30):
            with domain.coordinate(promisefs.reading("top.txt")):
                pass
        done.append(True)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    equal("threads that were done", len(done), 6)
    child = os.fork()
    if child == 0:
        with domain.coordinate(promisefs.reading("top.txt")):
            os._exit(0)
    with domain.coordinate(promisefs.reading("top.txt")):
        equal("the child's end", os.waitpid(child, 0)[1], 0)


if __name__ == "__main__":
    check_routes()
    found, below = promisefs.locate(os.path.join(MOUNT, "docs", "note-1.txt"))
    equal("located", (below, found.status()["mountPoint"]), (b"docs/note-1.txt", MOUNT))
    check_values(found)
    equal("query", [item["path"] for item in found.query("kMDItemFSName == %@", ["top.txt"])], ["/top.txt"])
    equal("live query", next(iter(found.live_query("FALSEPREDICATE")))[0], "gathered")
    equal("last change", found.changes()["isIncomplete"], False)
    check_places()
    check_shared_use(found)
    check_coordination(found)
