#!/usr/bin/env python3
"""Answers a WebDAV mount with nonsense, a million times, and watches the daemon's memory.

usage: hostile-replies.py --executable PROMISEFS [--replies 1000000] [--limit 200] [--seed N] [--keep]

A server of its own shows a tree, and when that is known answers nine of ten requests with something else: XML that is nested,
long, cut off or of other items, sizes and times that cannot be, pages of HTML, statuses of all kinds, wrong lengths, content of
another version. Programs list, read and write meanwhile. Fails when the daemon's resident memory is over --limit MiB, when
the second half of the run has more at its peak than the first one by a tenth, or when the daemon died. Prints the seed first.
"""
import multiprocessing, os, random, socketserver, threading, time

import domain
from domain import Failed

KINDS = ["nested", "attributes", "text", "entities", "rows", "others", "cut", "numbers", "times", "html", "status", "length",
         "controls", "no rows", "twice", "range", "endless names"]
FOLDERS, FILES, CONTENT = 40, 25, b"content of a file\n" * 20
HEAD = b'<?xml version="1.0"?><D:multistatus xmlns:D="DAV:">'
TIME = "Mon, 01 Jan 2024 00:00:00 GMT"


def row(path, is_folder, size=str(len(CONTENT)), tag='"a"', changed=TIME):
    kind = "<D:resourcetype><D:collection/></D:resourcetype>"
    if not is_folder:
        kind = f"<D:resourcetype/><D:getcontentlength>{size}</D:getcontentlength>"
    return (f"<D:response><D:href>{path}</D:href><D:propstat><D:prop>{kind}<D:getetag>{tag}</D:getetag>"
            f"<D:getlastmodified>{changed}</D:getlastmodified></D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat>"
            "</D:response>").encode()


def listing(path, depth):
    path = "/" + path.strip("/")
    parts = [part for part in path.split("/") if part]
    is_folder = not parts or len(parts) == 1 and parts[0].startswith("d")
    rows = [row(path if path == "/" or not is_folder else path + "/", is_folder)]
    if depth != "0" and not parts:
        rows += [row(f"/d{number}/", True) for number in range(FOLDERS)]
    if depth != "0" and len(parts) == 1:
        rows += [row(f"{path}/f{number}", False) for number in range(FILES)]
    return 207, HEAD + b"".join(rows) + b"</D:multistatus>", []


def rows(*items):
    return HEAD + b"".join(items) + b"</D:multistatus>"


# What does not depend on the request, made once: of each kind a small one, and one that is large, which is sent seldom.
SIZED = {
    "nested": [HEAD + b"<D:x>" * count for count in (70, 100_000)],
    "attributes": [HEAD + b"<D:x " + b" ".join(b'a%d="v"' % n for n in range(count)) + b"/>" for count in (70, 20_000)],
    "text": [HEAD + b"<D:response><D:href>/" + b"x" * count for count in (10_000, 2_000_000)],
    "entities": [b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "' + b"c" * 500 + b'">]><a>' + b"&b;" * count + b"</a>"
                 for count in (5, 500)],
    "rows": [rows(*(row(f"/d1/r{n}", False) for n in range(count))) for count in (10, 3_000)],
    "others": [rows(*(row(f"/other/{n}", n % 2 == 0) for n in range(count))) for count in (10, 500)],
    "endless names": [rows(*(row(f"/{n * 7_919 % 10**9}", False) for n in range(count))) for count in (20, 1_000)],
}
LARGE_SHARE = 0.02


def hostile(generator, method, path, depth):
    """A status, a body, and headers; a length that is not the body's is among these."""
    numbers = ["-1", "99999999999999999999", "9223372036854775807", "18446744073709551615", "1e9", "", "0x10", " 7 "]
    kind = generator.choice(KINDS)
    if kind in SIZED:
        return 207, SIZED[kind][generator.random() < LARGE_SHARE], []
    if kind == "cut":
        whole = listing(path, depth)[1]
        return 207, whole[:generator.randrange(len(whole))], []
    if kind == "numbers":
        return 207, rows(row(path, False, size=generator.choice(numbers))), []
    if kind == "times":
        times = ["never", "Mon, 01 Jan 99999 00:00:00 GMT", "1"]
        return 207, rows(row(path, False, changed=generator.choice(times))), []
    if kind == "html":
        return 200, b"<html><body>log in" + b" here" * 1000 + b"</body></html>", [("Content-Type", "text/html")]
    if kind == "status":
        return generator.choice([200, 204, 206, 301, 302, 304, 400, 403, 404, 405, 409, 412, 423, 424, 429, 500, 507]), b"", \
            [("Location", path), ("Retry-After", "0")]
    if kind == "length":
        return 200, CONTENT, [("Content-Length", str(len(CONTENT) + generator.choice([-1, 1, 1 << 40])))]
    if kind == "controls":
        return 207, rows(row(path + "/%00%1b%5b31m%0a", False, tag='"\x1b[31m"')), []
    if kind == "no rows":
        return 207, rows(), []
    if kind == "twice":
        return 207, rows(row(path, True) * 30), []
    return 206, CONTENT, [("Content-Range", f"bytes {generator.choice(numbers)}-{generator.choice(numbers)}/*"), ("ETag", '"b"')]


class Server(socketserver.ThreadingTCPServer):
    """Answers in processes of its own, which share the port: one of Python's does little at a time."""
    allow_reuse_address, allow_reuse_port, daemon_threads, request_queue_size = True, True, True, 128

    def __init__(self, seed, port=0):
        super().__init__(("127.0.0.1", port), Handler)
        self.seed = seed

    def begin(self, count, share):
        self.count, self.share = count, share
        self.serve_forever()


class Servers:
    def __init__(self, seed, processes):
        self.counts = [multiprocessing.Value("q", 0) for _ in range(processes)]
        self.share = multiprocessing.Value("d", 0)
        first = Server(seed)
        self.port = first.server_address[1]
        servers = [first] + [Server(seed + number, self.port) for number in range(1, processes)]
        self.processes = [multiprocessing.Process(target=server.begin, args=(count, self.share), daemon=True)
                          for server, count in zip(servers, self.counts)]
        for process in self.processes:
            process.start()
        for server in servers:
            server.socket.close()

    @property
    def replies(self):
        return sum(count.value for count in self.counts)


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        self.generator = random.Random(f"{self.server.seed} {self.client_address[1]}")
        try:
            while self.answer():
                pass
        except OSError:
            pass

    def answer(self):
        line = self.rfile.readline(65_536).split()
        if len(line) < 2:
            return False
        method, path, headers = line[0].decode(), line[1].decode(), {}
        while True:
            text = self.rfile.readline(65_536).strip()
            if not text:
                break
            name, _, value = text.partition(b":")
            headers[name.lower()] = value.strip()
        if headers.get(b"transfer-encoding") == b"chunked":
            while size := int(self.rfile.readline().split(b";")[0] or b"0", 16):
                self.rfile.read(size + 2)
            self.rfile.readline()
        else:
            self.rfile.read(int(headers.get(b"content-length", b"0")))
        depth = headers.get(b"depth", b"0").decode()
        if self.generator.random() < self.server.share.value:
            with self.server.count.get_lock():
                self.server.count.value += 1
            status, body, more = hostile(self.generator, method, path, depth)
        else:
            status, body, more = self.honest(method, path, depth)
        names = {name for name, _ in more}
        head = f"HTTP/1.1 {status} X\r\nDAV: 1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in more)
        if "Content-Length" not in names:
            head += f"Content-Length: {len(body)}\r\n"
        self.wfile.write(head.encode() + b"\r\n" + (b"" if method == "HEAD" or status in (204, 304) else body))
        return "Content-Length" not in names or method == "HEAD"

    def honest(self, method, path, depth):
        if method == "PROPFIND":
            return listing(path, depth)
        if method in ("GET", "HEAD"):
            return 200, CONTENT, [("ETag", '"a"'), ("Last-Modified", TIME)]
        if method in ("PUT", "MKCOL"):
            return 201, b"", [("ETag", '"a"')]
        return (200 if method == "OPTIONS" else 204), b"", []


def resident(processes):
    total = 0
    for process in processes:
        try:
            with open(f"/proc/{process}/status") as file:
                total += sum(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))
        except OSError:
            pass
    return total / 1024


def programs(top, seed, threads):
    """In a process of its own, which ends with its parent."""
    def work(generator):
        while True:
            folder = f"{top}/d{generator.randrange(FOLDERS)}"
            try:
                step = generator.random()
                if step < 0.4:
                    os.listdir(folder)
                elif step < 0.8:
                    with open(f"{folder}/f{generator.randrange(FILES)}", "rb") as file:
                        file.read(100)
                elif step < 0.9:
                    os.stat(f"{folder}/none {generator.randrange(10**6)}")
                else:
                    with open(f"{folder}/new {generator.randrange(20)}", "wb") as file:
                        file.write(b"new")
            except OSError:
                time.sleep(0.001)

    for number in range(1, threads):
        threading.Thread(target=work, args=(random.Random(f"{seed} {number}"),), daemon=True).start()
    work(random.Random(seed))


def evictions(mount, is_over):
    while not is_over():
        for words in (["evict", mount.top], ["sync", mount.top]):
            try:
                mount.run(*words, statuses=(0, 1, 4, 5, 7), timeout=60)
            except Failed:
                time.sleep(0.5)


def body(mount, arguments, generator):
    server = Servers(generator.randrange(10**9), arguments.servers)
    mount.provider = f"webdav+http://127.0.0.1:{server.port}/"
    mount.mount()
    for number in range(FOLDERS):
        os.listdir(f"{mount.top}/d{number}")
    is_over = threading.Event()
    server.share.value = arguments.share
    worker = multiprocessing.Process(target=programs, args=(mount.top, generator.random(), arguments.programs), daemon=True)
    worker.start()
    threading.Thread(target=evictions, args=(mount, is_over.is_set), daemon=True).start()
    (daemon,) = mount.processes()
    begun, samples, told = time.monotonic(), [], 0
    while server.replies < arguments.replies and time.monotonic() - begun < arguments.seconds:
        time.sleep(0.5)
        if mount.processes() != [daemon]:
            raise Failed(f"the daemon died after {server.replies} replies")
        samples.append((server.replies, resident([daemon])))
        if server.replies - told >= arguments.replies / 20:
            told = server.replies
            print(f"{told} replies, {samples[-1][1]:.0f} MiB, {time.monotonic() - begun:.0f} s", flush=True)
    is_over.set()
    worker.kill()
    worker.join()
    replies = server.replies
    first = max((size for count, size in samples if count < replies / 2), default=0)
    second = max((size for count, size in samples if count >= replies / 2), default=0)
    if max(first, second) > arguments.limit:
        raise Failed(f"{max(first, second):.0f} MiB after {replies} replies")
    if second > first * 1.1 + 5:
        raise Failed(f"the memory grows: {first:.0f} MiB at most in the first half of {replies} replies, {second:.0f} in the second")
    return (f"{replies} replies in {time.monotonic() - begun:.0f} s: at most {first:.0f} MiB in the first half and {second:.0f} in "
            f"the second, {samples[-1][1]:.0f} at the end")


def add_arguments(parser):
    parser.add_argument("--replies", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=3600, help="at most")
    parser.add_argument("--limit", type=float, default=200, help="MiB that the daemon may have")
    parser.add_argument("--share", type=float, default=0.9, help="of all answers that are nonsense")
    parser.add_argument("--servers", type=int, default=2, help="processes that answer")
    parser.add_argument("--programs", type=int, default=12, help="that work at once")
    parser.add_argument("--mount", action="append", default=["--poll-interval", "500ms"], help="an option of mount")
    parser.add_argument("--kills", type=int, default=0, help="none")


if __name__ == "__main__":
    domain.run(__doc__, "pfs-hostile-", add_arguments, body)
