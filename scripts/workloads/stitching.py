#!/usr/bin/env python3
"""Makes, renames and removes files on a mount while a live query follows, and looks after each call whether its event is there.

usage: stitching.py MOUNT SOCKET [--files 10000]

Files are made, then renamed, then removed, one call at a time; after each the socket of the query is read without waiting. Every
event must come once and in order. Printed: how many were there when the call returned, the median delay after the return of
those that came later and of all (0: it was there), and what a call took with and without the query. Status 1: an event was
missing, came twice or was another one, or more than a hundredth came late. The mount's uploads should be held back
(--upload-delay 10m), as they change items, too.
"""
import argparse, json, os, re, select, socket, statistics, sys, time

EVENT = re.compile(rb"event: (\w+)\ndata: ([^\n]*)\n\n")
LATE_SHARE_MAX = 0.01


class LiveQuery:
    def __init__(self, path, scope, predicate):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        body = json.dumps({"predicate": predicate, "scope": scope, "live": True}).encode()
        self.socket.sendall(b"POST /v1/queries HTTP/1.1\r\nHost: promisefs\r\nContent-Type: application/json\r\n"
                            b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.rest, self.sequence = b"", 0
        while self.next(30)[0] != "gathered":
            pass

    def next(self, seconds):
        """The next event, or None when there is none in time."""
        end = time.monotonic() + seconds
        while True:
            match = EVENT.search(self.rest)
            if match:
                self.rest = self.rest[match.end():]
                data = json.loads(match.group(2))
                self.sequence += 1
                if data["sequence"] != self.sequence:
                    sys.exit(f"event {data['sequence']} came instead of {self.sequence}")
                return match.group(1).decode(), data
            if not select.select([self.socket], [], [], max(end - time.monotonic(), 0))[0]:
                return None
            part = self.socket.recv(1 << 20)
            if not part:
                sys.exit("the daemon ended the query")
            self.rest += part


def expect(event, kind, number, name, known):
    """The one event of a call, about the one item."""
    if event is None:
        sys.exit(f"no event '{kind}' of {name} came within 30 s")
    items = event[1].get("removed") if kind == "removed" else event[1].get("items")
    if event[0] != kind or len(items or []) != 1:
        sys.exit(f"'{kind}' of {name} was expected and {event} came")
    identifier = items[0] if kind == "removed" else items[0]["id"]
    if kind != "removed" and not items[0]["path"].endswith("/" + name):
        sys.exit(f"'{kind}' of {name} was expected and {items[0]['path']} came")
    if known.setdefault(number, identifier) != identifier:
        sys.exit(f"{name} is another item than it was")


def calls(folder, count):
    """What to do, its event, and the file's number and name after it; in order."""
    for number in range(count):
        yield lambda n=number: os.mknod(f"{folder}/item{n}"), "added", number, f"item{number}"
    for number in range(count):
        name = f"item{number}"
        yield lambda name=name: os.rename(f"{folder}/{name}", f"{folder}/{name}.new"), "changed", number, name + ".new"
    for number in range(count):
        yield lambda n=number: os.unlink(f"{folder}/item{n}.new"), "removed", number, f"item{number}.new"


def run(folder, count, query=None):
    """Seconds of each call, and how long after its return each event came."""
    times, delays, known = [], [], {}
    for call, kind, number, name in calls(folder, count):
        start = time.perf_counter()
        call()
        end = time.perf_counter()
        times.append(end - start)
        if query:
            event = query.next(0)
            if event:
                delays.append(0)
            else:
                event = query.next(30)
                delays.append(time.perf_counter() - end)
            expect(event, kind, number, name, known)
    if query and query.next(0.2):
        sys.exit("an event came twice")
    return times, delays


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mount")
    parser.add_argument("socket")
    parser.add_argument("--files", type=int, default=10_000)
    options = parser.parse_args()
    folder = options.mount + "/stitching"
    os.mkdir(folder)
    without, _ = run(folder, options.files)
    times, delays = run(folder, options.files, LiveQuery(options.socket, "/stitching", "kMDItemFSName BEGINSWITH 'item'"))
    os.rmdir(folder)
    late = [delay for delay in delays if delay > 0]
    median = lambda values: statistics.median(values) * 1e6 if values else 0
    there = len(delays) - len(late)
    print(f"{len(delays)} calls, {len(delays)} events; there when the call returned: {there}, later: {len(late)}")
    print(f"median delay {median(delays):.0f} µs; of the late ones {median(late):.0f} µs, at most {max(delays) * 1e6:.0f} µs")
    print(f"median call {median(times):.0f} µs, without a live query {median(without):.0f} µs")
    if len(late) > LATE_SHARE_MAX * len(delays):
        sys.exit("too many events came after their call had returned")


if __name__ == "__main__":
    main()
