#!/usr/bin/env python3
"""What a sandboxed program can try by its launch's socket, and by sockets that are not its own: each is refused, and has a
line in the audit log.

grant-attacks.py MOUNT: as the owner of a mounted domain. A second process in namespaces of its own makes the attempts. Where the
daemon has a file of PROMISEFS_PROVIDER_FAULTS, which is named here, too, a fetch is made to fail.
"""
import ctypes
import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../clients/python"))
import promisefs  # noqa: E402
from promisefs.client import PromiseError, _Connection  # noqa: E402

EDITOR, OTHER = "com.example.editor", "com.example.other"


def request(path, method, target, body=None, connection=None):
    """The status and the answer, or the first events of a stream. `connection`: one that is there."""
    own = None if connection else _Connection(path, 10)
    connection = connection or own
    try:
        content = None if body is None else body.encode("latin-1") if isinstance(body, str) else json.dumps(body).encode()
        connection.request(method, "/v1/" + target, content, {"Content-Type": "application/json"})
        response = connection.getresponse()
        if response.getheader("Content-Type") != "text/event-stream":
            return response.status, response.read().decode("utf-8", "replace")
        text = ""
        for line in response:
            text += line.decode()
            if any(f"event: {name}" in text and text.endswith("\n\n") for name in ("problem", "granted", "presenting", "done", "gathered", "launched", "availability")):
                break
        return response.status, text
    except OSError as error:
        return 0, str(error)
    finally:
        if own:
            own.close()


class Sandbox:
    """Another process, in a mount namespace of its own, that sends what it is told to send: by a connection to the owner's
    socket, made before it entered the namespace, where no other is named; "ended": by one of a process that has ended;
    "nested" before a path: from a process in one more namespace, which it has made itself."""

    def __init__(self, owners):
        words = [sys.executable, os.path.abspath(__file__), "--inside", owners]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.namespace = int(self.process.stdout.readline())

    def __call__(self, *words):
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()
        return tuple(json.loads(self.process.stdout.readline()))

    def many(self, path, method, target, count):
        """The same again and again, on one connection."""
        return self(path, method, target, None, count)

    def listen(self, path):
        """Begins a live query of everything, and has what there is."""
        return self("listen", path)

    def heard(self, word):
        """What the query has told since, up to that word, and in how many seconds."""
        return self("heard", word)

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def enter_namespaces():
    user, group = os.getuid(), os.getgid()
    # CLONE_NEWUSER | CLONE_NEWNS of unshare(2).
    if ctypes.CDLL(None, use_errno=True).unshare(0x10020000) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def connection_of_ended(owners):
    """To the owner's socket, by a process that has handed it on and ended."""
    here, there = socket.socketpair()
    process = os.fork()
    if process == 0:
        line = socket.socket(socket.AF_UNIX)
        line.connect(owners)
        socket.send_fds(there, [b"x"], [line.fileno()])
        os._exit(0)
    _, (number,), _, _ = socket.recv_fds(here, 1, 1)
    os.waitpid(process, 0)
    connection = _Connection(owners, 10)
    connection.sock = socket.socket(fileno=number)
    connection.sock.settimeout(10)
    return connection


def answer_of_nested(path, *words):
    """Of a process that has made namespaces once more, and so is in none that a launch was bound to."""
    here, there = os.pipe()
    process = os.fork()
    if process == 0:
        enter_namespaces()
        with open(there, "w") as file:
            json.dump(request(path, *words), file)
        os._exit(0)
    os.close(there)
    with open(here) as file:
        text = file.read()
    os.waitpid(process, 0)
    return json.loads(text)


def live_query(path):
    """The answer, behind what there is."""
    connection = _Connection(path, 60)
    body = json.dumps({"predicate": "TRUEPREDICATE", "live": True})
    connection.request("POST", "/v1/queries", body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    read_on(response, "event: gathered")
    return response


def read_on(response, word):
    """Up to a line with that word, or the end."""
    text = ""
    for line in response:
        text += line.decode()
        if word in text:
            break
    return text


def inside(owners):
    before = _Connection(owners, 10)
    assert request(None, "GET", "status", connection=before)[0] == 200
    enter_namespaces()
    ended = connection_of_ended(owners)
    print(os.stat("/proc/self/ns/mnt").st_ino, flush=True)
    stream, begun = None, 0
    for line in sys.stdin:
        words = json.loads(line)
        if words[0] in ("listen", "heard"):
            if words[0] == "listen":
                stream, begun = live_query(words[1]), time.monotonic()
            print(json.dumps((read_on(stream, words[1]) if words[0] == "heard" else "", time.monotonic() - begun)), flush=True)
            continue
        if words[0] and words[0].startswith("nested "):
            print(json.dumps(answer_of_nested(words[0][7:], *words[1:])), flush=True)
            continue
        count = words.pop() if len(words) > 4 else 1
        connection = before if words[0] is None else ended if words[0] == "ended" else _Connection(words[0], 10) if count > 1 else None
        for _ in range(count):
            answer = request(*words, connection=connection)
        print(json.dumps(answer), flush=True)


class Launch:
    """Of an application, for as long as this process reads the stream."""

    def __init__(self, domain, application):
        self.events = domain.launch(application)
        name, self.document = next(self.events)
        assert name == "launched", name
        self.id, self.socket = self.document["launch"], self.document["socket"]
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        try:
            for _ in self.events:
                pass
        except (PromiseError, ValueError):
            pass


class Attack:
    def __init__(self, mount):
        self.mount = mount
        self.domain, _ = promisefs.locate(mount)
        self.count, self.problems = 0, []

    def put(self, name, text):
        path = os.path.join(self.mount, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
        return path

    def refusals(self):
        return sum(1 for line in self.domain.audit(limit=10000) if line["outcome"] == "refused")

    def refused(self, what, answer, before, codes=(400, 403, 404), audited=True):
        status, text = answer
        self.count += 1
        isProblem = status in codes or status == 200 and "event: problem" in text and '"code":"refused"' in text
        if not isProblem:
            self.problems.append(f"{what}: {status} {text[:300]}")
        if "secret" in text and "secret" not in what:
            self.problems.append(f"{what}: it tells of a secret: {text[:300]}")
        if audited and self.refusals() <= before:
            self.problems.append(f"{what}: no line in the audit log")

    def check(self, what, truth):
        self.count += 1
        if not truth:
            self.problems.append(what)

    def attempt(self, sandbox, path, method, target, body=None, **options):
        before = self.refusals()
        self.refused(f"{method} {target} {body or ''}", sandbox(path, method, target, body), before, **options)


def owners_routes(launch):
    for target in ("status", "pending", "changes", "grants/audit", "grants/audit?limit=5", "trace", "items/versions/content", "nothing", "status/", "grants/../status"):
        yield "GET", target, None
    for target, body in (
        ("pending/step", {}), ("sync", {"wait": True}), ("verify", {"repair": True}), ("unmount", {"lazy": True}), ("restart", {}),
        ("items/evict", {"paths": ["/granted/doc.txt"]}), ("items/pin", {"paths": ["/granted/doc.txt"], "pin": "pinned"}),
        ("items/versions", {"path": "/granted/doc.txt", "action": "remove"}), ("launches", {"application": EDITOR}),
        ("views", {"application": EDITOR}), ("grants", {"path": "/granted/doc.txt", "application": EDITOR, "rights": "read-write"}),
    ):
        yield "POST", target, body
    yield "PUT", f"launches/{launch.id}", {"mountNamespace": 1}
    yield "DELETE", f"launches/{launch.id}", None
    yield "DELETE", f"grants?application={EDITOR}", None


def items(secret):
    for path in ("/", "", "/secret.txt", "/granted", "/granted/secret.txt", "/granted/doc.txt/../../secret.txt", "/container/..%2Fsecret.txt",
                 "/granted/doc.txt%00", "/granted/doc.txt%2F..", "/folder/inside.txt", "/secrets/deep/secret.txt"):
        yield "GET", f"items?path={path}", None
        yield "GET", f"items/thumbnail?path={path}", None
    for node in (secret, 1, 99999999, 18446744073709551615):
        yield "GET", f"items?node={node}", None
        yield "GET", f"items/thumbnail?node={node}", None
        yield "GET", f"items/versions?node={node}", None
    yield "PUT", f"items/thumbnail?node={secret}", "png"
    yield "PUT", "items/thumbnail?path=/granted/read.txt", "png"
    yield "POST", "queries", {"predicate": "TRUEPREDICATE", "scope": "/secrets"}
    yield "GET", "queries?predicate=TRUEPREDICATE&scope=/secrets", None
    for access, path in (("read", "/secret.txt"), ("read", "/secrets/deep"), ("write", "/granted/read.txt"), ("write", "/granted/new"), ("write", "/new")):
        yield "POST", "claims", {"items": [{"path": path, "access": access}], "timeoutSeconds": 5}
        yield "POST", "accesses", {"items": [{"path": path, "access": access}], "timeoutSeconds": 5}
    for option in ("resolvesSymbolicLink", "forUploading"):
        yield "POST", "claims", {"items": [{"path": "/container/link", "access": "read", "options": [option]}], "timeoutSeconds": 5}
    yield "POST", "claims", {"items": [{"path": "/granted/doc.txt", "access": "read", "options": ["forUploading"]}], "timeoutSeconds": 5}
    yield "POST", "presenters", {"path": "/secret.txt"}
    yield "POST", "presenters", {"path": "/secrets"}


def documents(foreign, owners, other_grant):
    for target in (f"values?application={OTHER}", f"containers?application={OTHER}", f"grants?application={OTHER}", f"grants/{other_grant}", "grants/999999", "grants/-1", "grants/x"):
        yield "GET", target, None
    yield "POST", "values", {"application": OTHER, "key": "a", "value": {"bool": True}}
    yield "POST", "containers", {"application": OTHER}
    yield "DELETE", f"containers?application={OTHER}", None
    yield "DELETE", f"grants/{other_grant}", None
    yield "POST", f"grants/{other_grant}/pass", {"application": EDITOR, "rights": "read"}
    yield "POST", f"scopes/{other_grant}/stop", {}
    yield "POST", "scopes/1/stop", {}
    yield "GET", "references?path=/", None
    yield "GET", "references?path=/secrets", None
    yield "POST", "references", {"target": "/secret.txt", "path": "/container/stolen"}
    yield "POST", "references", {"target": "/granted/doc.txt", "path": "/secrets/link"}
    yield "POST", "references", {"target": "/granted/doc.txt", "path": "/granted/read.txt"}
    yield "DELETE", "references?path=/secrets/reference", None
    yield "POST", "bookmarks", {"path": "/secret.txt"}
    yield "POST", "bookmarks", {"path": "/granted/doc.txt", "application": OTHER}
    yield "POST", "bookmarks", {"path": "/granted/read.txt", "isReadOnly": False}
    edited = foreign[:20] + ("A" if foreign[20] != "A" else "B") + foreign[21:]
    for text in (foreign, owners, edited, foreign[:-8], foreign + "AAAA", "", "x" * 70000, "AQ", "ünknown"):
        yield "POST", "bookmarks/resolve", {"bookmark": text}
        yield "POST", "bookmarks/resolve", {"bookmark": text, "application": EDITOR}
    yield "POST", "bookmarks/resolve", {"bookmark": foreign, "application": OTHER}
    for text in ("", "{", "[]", '{"bookmark": 5}', "\xff\xfe", "{" * 5000):
        yield "POST", "bookmarks/resolve", text


def listening(attack, sandbox, launch):
    """It learned when others' items changed: the stream said at each change that it was alive."""
    attack.put("heard.txt", "before")
    attack.domain.give("heard.txt", EDITOR, "read")
    sandbox.listen(launch.socket)
    for turn in range(30):
        attack.put("secrets/deep/secret.txt", "secret" * turn)
        time.sleep(0.05)
    attack.put("heard.txt", "something longer")
    text, seconds = sandbox.heard("heard.txt")
    signs = sum(line.startswith(":") for line in text.splitlines())
    attack.check(f"a query tells of what it was given: {text[-300:]}", "heard.txt" in text)
    attack.check(f"a query says nothing when others' items change: {signs} signs in {seconds} s", signs <= 2 * seconds + 4)
    attack.check(f"a query tells nothing of others' items: {text[-300:]}", "secret" not in text)


def learning(attack, sandbox, launch):
    """What it learned of others' items, and of where its own are, by questions about these."""
    domain = attack.domain

    def ask(method, target, body=None):
        return sandbox(launch.socket, method, target, body)

    # What others have came first, and used the limit up: with each limit it saw how many are before its own.
    for order in ("", "&sort=-kMDItemFSName", "&sort=kMDItemFSSize,kMDItemFSName"):
        status, text = ask("GET", "queries?predicate=TRUEPREDICATE&limit=1" + order)
        found = json.loads(text)
        attack.check(
            f"a limit counts what it may see{order}: {text[:300]}",
            status == 200 and len(found["items"]) == 1 and not found["isComplete"])
    for key in ("kMDItemPath", "-promisefs.pathBytes", "promisefs.identifier"):
        attack.attempt(sandbox, launch.socket, "GET", "queries?predicate=TRUEPREDICATE&sort=" + key, audited=False)

    # What is said of content that does not come names the place that it has.
    attack.put("secrets/shared/in.txt", "shared")
    domain.give("secrets/shared", EDITOR, "read")
    status, text = ask("POST", "bookmarks/resolve", {"bookmark": bookmark_with_places(domain, "secrets/shared/in.txt")})
    attack.check(f"a bookmark carries no place but its own: {text[:600]}", status == 200 and "secret" not in text)
    found = json.loads(text)
    attack.check(
        f"a bookmark carries the place that it has: {text[:600]}",
        found["attributes"]["promisefs.pathBytes"] == found["pathBytes"] and "promisefs.identifier" not in found["attributes"])
    ask("POST", f"scopes/{found['scope']}/stop", {})
    faults = os.environ.get("PROMISEFS_PROVIDER_FAULTS")
    if not faults:
        return
    domain.sync(wait=True)
    attack.check("what is to be fetched is not here", domain.evict(["/secrets/shared"])["evicted"] == 1)
    with open(faults, "w") as file:
        file.write("offline=true\nonly=fetchContents\n")
    status, text = ask("POST", "items/fetch", {"paths": ["/granted/shared"]})
    text = text.replace("\\/", "/")
    attack.check(
        f"a fetch that fails tells no place but its own: {text[:600]}",
        status == 200 and "/granted/shared/in.txt" in text and "secret" not in text)
    open(faults, "w").close()
    while domain.fetch(["/secrets/shared"]).get("failures"):
        time.sleep(0.1)


def bookmark_with_places(domain, path):
    """As the owner makes it, who may note where things are."""
    keys = ["kMDItemPath", "promisefs.pathBytes", "promisefs.identifier", "NSMetadataUbiquitousItemURLInLocalContainerKey"]
    return domain._call("POST", "bookmarks", {"path": "/" + path, "application": EDITOR, "attributes": keys})["bookmark"]


def main(mount):
    attack = Attack(mount)
    domain = attack.domain
    for name in ("secret.txt", "secrets/deep/secret.txt"):
        attack.put(name, "secret")
    for name in ("doc.txt", "read.txt", "passing.txt", "brief.txt", "folder/inside.txt", "revoked.txt", "other.txt"):
        attack.put(name, name)
    domain.add_container(EDITOR, name="Editor")
    domain.add_container(OTHER)
    os.symlink("../secret.txt", os.path.join(mount, "Editor/link"))
    doc, read = domain.give("doc.txt", EDITOR), domain.give("read.txt", EDITOR, "read")
    domain.give("folder", EDITOR, "read")
    revoked, foreign_grant = domain.give("revoked.txt", EDITOR), domain.give("other.txt", OTHER)
    brief = domain.give("brief.txt", EDITOR, until=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 8)))
    bookmarks = {name: domain.bookmark(name, EDITOR) for name in ("doc.txt", "revoked.txt")}
    foreign, owners = domain.bookmark("other.txt", OTHER), domain.bookmark("doc.txt")
    sandbox, stranger = Sandbox(domain.socket_path), Sandbox(domain.socket_path)
    launch, second = Launch(domain, EDITOR), Launch(domain, OTHER)

    # Before it was said whose it is, and from processes whose it is not.
    attempt = attack.attempt
    attempt(sandbox, launch.socket, "GET", "grants")
    for namespace, code in ((os.stat("/proc/self/ns/mnt").st_ino, 400),):
        try:
            domain.bind_launch(launch.id, namespace)
            attack.problems.append("a launch was bound to the namespace of the daemon")
        except PromiseError as error:
            attack.check("a launch is not bound to the daemon's namespace", error.status == code)
    domain.bind_launch(launch.id, sandbox.namespace)
    domain.bind_launch(second.id, stranger.namespace)
    for process in (request, stranger):
        for method, target in (("GET", "grants"), ("GET", "items?path=/granted/doc.txt"), ("POST", "unmount"), ("GET", "status")):
            attempt(process, launch.socket, method, target)
    attempt(sandbox, second.socket, "GET", "grants")
    for method, target in (("GET", "status"), ("POST", "unmount"), ("GET", "grants/audit"), ("GET", f"items?node=1"), ("POST", "grants")):
        attempt(sandbox, domain.socket_path, method, target)
        attempt(sandbox, None, method, target)
        attempt(sandbox, "ended", method, target)
    try:
        domain.bind_launch(launch.id, stranger.namespace)
        attack.problems.append("a launch was bound twice")
    except PromiseError as error:
        attack.check("a launch is bound once", error.status == 404)

    # What it was given is there.
    def ask(method, target, body=None):
        return sandbox(launch.socket, method, target, body)

    status, text = ask("GET", "items?path=/granted/doc.txt")
    attack.check(f"what was given is there: {text[:200]}", status == 200 and json.loads(text)["path"] == "/granted/doc.txt")
    attack.check("below a folder, too", ask("GET", "items?path=/granted/folder/inside.txt")[0] == 200)
    attack.check("its container is there", ask("GET", "items?path=/container/Documents")[0] == 200)
    status, text = ask("GET", "queries?predicate=TRUEPREDICATE&attributes=kMDItemPath")
    found = json.loads(text)["items"]
    attack.check(f"a query finds what was given, and no secret: {text[:300]}", status == 200 and len(found) >= 5 and "secret" not in text and "/other" not in text)
    status, text = ask("POST", "items/values", {"paths": ["/granted/doc.txt"], "attributes": ["promisefs.pathBytes", "kMDItemPath"]})
    attack.check(f"its values are by its own paths: {text[:300]}", text.count('"\\/granted\\/doc.txt"') + text.count('"/granted/doc.txt"') >= 3)
    for predicate in ('kMDItemPath CONTAINS "secret"', 'promisefs.pathBytes BEGINSWITH "/"', 'promisefs.identifier CONTAINS "/"'):
        attempt(sandbox, launch.socket, "GET", "queries?predicate=" + urllib.parse.quote(predicate), audited=False)
    status, text = ask("GET", "availability/events")
    attack.check(f"where the storage is, is not told: {text[:200]}", '"provider":"folder"' in text and "/" not in text)
    attack.check("a claim is granted", "event: granted" in ask("POST", "claims", {"items": [{"path": "/granted/doc.txt", "access": "write"}]})[1])
    status, text = ask("POST", "items/values", {"paths": ["/secret.txt", "/granted/doc.txt"]})
    attack.check(f"values of a secret: {text[:200]}", status == 200 and len(json.loads(text)["items"]) == 1)
    status, text = ask("POST", "items/fetch", {"paths": ["/secret.txt"]})
    attack.check(f"a secret is not fetched: {text[:200]}", '"code":"refused"' in text or '"failures":[{' in text)
    own = json.loads(ask("GET", "grants")[1])["grants"]
    attack.check("it sees its own grants", own and all(grant["application"] == EDITOR for grant in own))

    secret = domain.information("secret.txt")["node"]
    for rows in (owners_routes(launch), items(secret), documents(foreign, owners, foreign_grant["id"])):
        for method, target, body in rows:
            attempt(sandbox, launch.socket, method, target, body)
    status, text = ask("DELETE", "claims/1")
    attack.check("a guessed claim is not ended", status == 200 and not json.loads(text)["done"])
    status, text = ask("POST", "presenters/1/answers", {"question": 1})
    attack.check("a guessed presenter is not answered for", status == 200 and not json.loads(text)["done"])

    # Rights that are narrowed, end, are revoked.
    status, text = ask("POST", "bookmarks", {"path": "/granted/brief.txt"})
    attack.check(f"an application notes what it was given: {text[:100]}", status == 200)
    ending = json.loads(text).get("bookmark", "")
    attempt(sandbox, launch.socket, "POST", f"grants/{read['id']}/pass", {"application": OTHER, "rights": "read-write"})
    attempt(sandbox, launch.socket, "POST", f"grants/{read['id']}/pass", {"application": OTHER, "rights": "read", "path": "/granted/doc.txt"})
    status, text = ask("POST", f"grants/{brief['id']}/pass", {"application": OTHER, "rights": "read", "until": "2200-01-01T00:00:00Z"})
    attack.check(f"what is passed on ends with what it was made from: {text[:200]}", status == 200 and json.loads(text)["until"] == brief["until"])
    status, text = ask("POST", "bookmarks/resolve", {"bookmark": bookmarks["revoked.txt"]})
    scope = json.loads(text).get("scope")
    attack.check(f"a bookmark starts an access: {text[:200]}", status == 200 and scope and json.loads(text)["path"] == "/granted/revoked.txt")
    attempt(stranger, second.socket, "POST", f"scopes/{scope}/stop", {})
    domain.revoke(revoked["id"])
    attack.check("the access goes on", ask("GET", "items?path=/granted/revoked.txt")[0] == 200)
    for grant in domain.grants(EDITOR):
        if grant["kind"] == "bookmark" and grant["path"] == "/revoked.txt":
            domain.revoke(grant["id"])
    attempt(sandbox, launch.socket, "GET", "items?path=/granted/revoked.txt")
    attempt(sandbox, launch.socket, "POST", "bookmarks/resolve", {"bookmark": bookmarks["revoked.txt"]})
    attempt(sandbox, launch.socket, "POST", f"scopes/{scope}/stop", {})
    scope = json.loads(ask("POST", "bookmarks/resolve", {"bookmark": bookmarks["doc.txt"]})[1])["scope"]
    attack.check("an access is stopped", ask("POST", f"scopes/{scope}/stop", {})[0] == 200)
    attempt(sandbox, launch.socket, "POST", f"scopes/{scope}/stop", {})
    while domain.grants(EDITOR) and any(grant["id"] == brief["id"] and grant["rights"] != "none" for grant in domain.grants(EDITOR)):
        time.sleep(0.1)
    attempt(sandbox, launch.socket, "POST", "bookmarks/resolve", {"bookmark": ending})
    attempt(sandbox, launch.socket, "GET", "items?path=/granted/brief.txt")
    attempt(stranger, second.socket, "GET", "items?path=/granted/brief.txt")

    # It follows its item, and nothing that takes its name.
    os.rename(os.path.join(mount, "doc.txt"), os.path.join(mount, "folder/moved.txt"))
    attack.put("doc.txt", "secret")
    status, text = ask("GET", "items?path=/granted/doc.txt")
    attack.check("a grant follows its item", status == 200 and json.loads(text)["size"] == len("doc.txt"))
    taker = domain.information("doc.txt")["node"]
    attempt(sandbox, launch.socket, "GET", f"items?node={taker}")

    # It is in no namespace of a launch when it has made one of its own, and yet it is not the owner.
    for target in ("status", "grants", "grants/audit", "items?path=/secret.txt"):
        attempt(sandbox, "nested " + domain.socket_path, "GET", target)
    attempt(sandbox, "nested " + domain.socket_path, "POST", "unmount")
    attempt(sandbox, "nested " + launch.socket, "GET", "grants")
    listening(attack, sandbox, launch)
    learning(attack, sandbox, launch)

    # Lines without end would make the log forget what others did.
    last = max(line["time"] for line in domain.audit(limit=100000))
    sandbox.many(launch.socket, "GET", "x" * 900, 1500)
    lines = domain.audit(limit=100000)
    attack.check("an application's lines of an hour are bounded", sum(line["by"] == EDITOR for line in lines) <= 1001)
    attack.check("what was there before is there", any(line["time"] == last for line in lines))
    attack.check("it says that there were more", any(line["call"] == "audit.more" for line in lines))

    # A start that is never stopped; the end of a launch.
    ask("POST", "bookmarks/resolve", {"bookmark": bookmarks["doc.txt"]})
    domain._call("DELETE", f"launches/{launch.id}")
    launch.thread.join(10)
    attack.check("the stream of a launch ends with it", not launch.thread.is_alive())
    attack.check("its socket is gone", ask("GET", "grants")[0] == 0 and not os.path.exists(launch.socket))
    attack.check("its grants are gone", not any("launch" in grant for grant in domain.grants(EDITOR)))
    unbalanced = domain._call("GET", "grants")["unbalanced"]
    attack.check(f"a start that nobody stopped is counted: {unbalanced}", unbalanced == {EDITOR: 1})
    for process in (sandbox, stranger):
        process.end()
    second.events.close() if not second.thread.is_alive() else None
    print(f"{attack.count} attempts and checks")
    for problem in attack.problems:
        print("FAILED", problem)
    return 1 if attack.problems else 0


if __name__ == "__main__":
    inside(sys.argv[2]) if sys.argv[1] == "--inside" else sys.exit(main(sys.argv[1]))
