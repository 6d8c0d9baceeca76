"""The client of one domain's control socket."""
import base64
import contextlib
import http.client
import json
import time
import urllib.parse

from .coordination import Coordination, _inherited_purpose
from .wire import PromiseError, _Connection, _wire


class Domain(Coordination):
    """One domain by its socket. Each call has a connection of its own, so threads may share it."""

    def __init__(self, socket_path, timeout=120):
        self.socket_path, self.timeout = socket_path, timeout
        # Connections of accesses that have ended, for the next ones.
        self._idle = []

    def pick(self, request):
        """Asks the person for documents; by the socket of a launch. What `promisefs.pick` calls inside a sandbox."""
        return self._last("picks", request)

    # Questions: nothing is fetched. Events without end end with the mount; where the daemon was killed or replaced meanwhile
    # `PromiseError` is raised, and who wants to go on asks again.

    def status(self):
        return self._call("GET", "status")

    def information(self, path):
        return self._call("GET", "items?path=" + _wire(path))

    def values(self, paths, keys=None):
        """Promised values of many items, in their order: `items`, each with `values`, and `failures`."""
        body = {"paths": [_wire(path) for path in paths]}
        return self._call("POST", "items/values", body | ({} if keys is None else {"keys": list(keys)}))

    def versions(self, path):
        """The versions of a document that are known, the current one first."""
        return self._call("GET", "items/versions?path=" + _wire(path))["versions"]

    def resolve(self, path, action, version=None, states=None):
        """Does something with an unresolved version, by its `identifier`, or with all: `replace` the document with it, `remove`
        it, or `markResolved`, so that it is a document of its own. `states`: of the versions, when this was decided; what was
        written since stays, and the problem is `conflict`. Gives the versions that are left."""
        body = {"path": _wire(path), "action": action} | ({} if version is None else {"version": version})
        body |= {} if states is None else {"states": list(states)}
        purpose = _inherited_purpose()
        body |= {} if purpose is None else {"purpose": purpose}
        return self._work("items/versions", body)["versions"]

    def thumbnail(self, path, size=1024):
        """A PNG of at most `size` pixels a side."""
        connection, response = self._open("GET", f"items/thumbnail?size={size}&path=" + _wire(path), None, self.timeout)
        with contextlib.closing(connection):
            return response.read()

    def save_thumbnail(self, path, picture):
        """Keeps a PNG as the picture of a document as it is now."""
        return self._call("PUT", "items/thumbnail?path=" + _wire(path), picture)["done"]

    def kept_values(self, application):
        """What an application keeps, by key: each a document of one field that names the kind, as `{"string": "text"}`."""
        found = self._call("GET", "values?application=" + urllib.parse.quote(application, safe=""))["values"]
        return {entry["key"]: entry["value"] for entry in found}

    def keep_value(self, application, key, value):
        """Sets a value; None removes it. True when there was something to do; it is on the disk then."""
        body = {"application": application, "key": key} | ({} if value is None else {"value": value})
        return self._call("POST", "values", body)["done"]

    def synchronize_values(self, application):
        """Looks at the provider now. False when that cannot be done."""
        return self._call("POST", "values/synchronize", {"application": application})["done"]

    def value_events(self, application):
        """Events without end: `watching`, then `changed` for what other machines change."""
        yield from self._events("values/events?application=" + urllib.parse.quote(application, safe=""), None)

    def containers(self):
        """The containers of applications, and whether the domain can be used now."""
        return self._call("GET", "containers")

    def availability_events(self):
        """Events without end: `availability` now, and whenever the domain becomes reachable or not, or somebody else's."""
        yield from self._events("availability/events", None)

    def add_container(self, application, name=None, public=None, icon=None):
        """An application's own folder: that which it has on any machine, or a new one. `icon`: bytes of a small PNG."""
        body = {"application": application, "name": name, "isPublic": public}
        body["icon"] = None if icon is None else base64.b64encode(icon).decode()
        return self._call("POST", "containers", {key: value for key, value in body.items() if value is not None})

    def remove_container(self, application):
        """The folder stays, and is an ordinary one. Returns what it was."""
        return self._call("DELETE", "containers?application=" + urllib.parse.quote(application, safe=""))

    def add_reference(self, document, place, other=None):
        """Makes a link that stands for a document and follows it: at `place`, or in it where that is a folder. `other`: the
        domain of the document, where that is not this one."""
        if other is None:
            return self._call("POST", "references", {"target": _wire(document), "path": _wire(place)})
        card = other._call("GET", "references/card?path=" + _wire(document))
        return self._call("POST", "references", {"record": card["record"], "path": _wire(place)})

    def references(self, folder="/"):
        """Below a folder, with why those that lead nowhere do."""
        return self._call("GET", "references?path=" + _wire(folder))["references"]

    def remove_reference(self, place):
        """The document stays. Returns what it was."""
        return self._call("DELETE", "references?path=" + _wire(place))

    def bookmark(self, path, application=None, read_only=False):
        """One line that finds an item again on this machine; of use to that application alone."""
        body = {"path": _wire(path), "isReadOnly": read_only} | ({} if application is None else {"application": application})
        return self._call("POST", "bookmarks", body)["bookmark"]

    def resolve_bookmark(self, bookmark, application=None):
        """What it leads to, or why nowhere, with the attributes that it carries and, where it is stale, the renewed one."""
        body = {"bookmark": bookmark} | ({} if application is None else {"application": application})
        return self._call("POST", "bookmarks/resolve", body)

    def grants(self, application=None):
        """What applications were given, a list of objects; of an application's socket its own."""
        query = "" if application is None else "?application=" + urllib.parse.quote(application)
        return self._call("GET", "grants" + query)["grants"]

    def give(self, path, application, rights="read-write", until=None, launch=None):
        """Gives an application an item, and what is below it; `until` is a date, as 2027-01-31T12:00:00Z."""
        body = {"path": _wire(path), "application": application, "rights": rights, "until": until, "launch": launch}
        return self._call("POST", "grants", {key: value for key, value in body.items() if value is not None})

    def pass_on(self, grant, application, rights="read", path=None, until=None):
        """Hands a grant on to another application: never more of it, and for no longer."""
        body = {"application": application, "rights": rights, "until": until, "path": path and _wire(path)}
        return self._call("POST", f"grants/{grant}/pass", {key: value for key, value in body.items() if value})

    def revoke(self, grant):
        """With all that was made from it; returns what went."""
        return self._call("DELETE", f"grants/{grant}")["grants"]

    def audit(self, application=None, limit=1000):
        """The newest lines of the audit log, oldest first."""
        about = "" if application is None else "&application=" + urllib.parse.quote(application)
        return self._call("GET", f"grants/audit?limit={limit}{about}")["lines"]

    def launch(self, application, mount_namespace=None):
        """Begins a launch: the first event has its socket; it ends with the iterator. `bind_launch` opens the socket."""
        body = {"application": application, "mountNamespace": mount_namespace}
        return self._events("launches", {key: value for key, value in body.items() if value is not None})

    def bind_launch(self, launch, mount_namespace):
        """Whose calls the launch's socket takes: processes of that mount namespace (`os.stat("/proc/PID/ns/mnt").st_ino`)."""
        return self._call("PUT", f"launches/{launch}", {"mountNamespace": mount_namespace})["done"]

    def stop_scope(self, scope):
        """Ends one access that resolving a bookmark has started; returns how many are left."""
        return self._call("POST", f"scopes/{scope}/stop", {})["remaining"]

    def pause(self):
        """Nothing is sent and nothing is fetched by itself, also after the next mount, until `resume`."""
        return self._call("POST", "pause")

    def resume(self):
        return self._call("POST", "resume")

    def set_limits(self, cache=None, upload=None, download=None):
        """Bytes that are kept here at most, and bytes a second that go up and down; `"none"`, or for the cache `"default"`."""
        body = {"cache": cache, "upload": upload, "download": download}
        return self._call("POST", "limits", {key: str(value) for key, value in body.items() if value is not None})

    def pending(self, path=None):
        return self._call("GET", "pending" + ("" if path is None else "?path=" + _wire(path)))["items"]

    def changes(self, since=0, journal=None):
        """Some changes after a number. `journal`: whose number that is, as the answer says; another one's is refused."""
        return self._call("GET", f"changes?since={since}" + self._whose(journal))

    def follow_changes(self, since=0, journal=None, patience=10):
        """Changes without end, also from the daemon that comes after this one: documents as `changes` gives. Ends when the
        domain was unmounted and not mounted again in `patience` seconds; raises `PromiseError`, of exit status 4, when the
        daemon has died and no other one came in that time."""
        waiting_since = parting_since = loss = None
        while True:
            is_open, problem = False, None
            try:
                path = f"changes?since={since}&follow=true" + self._whose(journal)
                connection, response = self._open("GET", path, None, None)
                is_open = True
                with contextlib.closing(connection), contextlib.closing(response):
                    for _, page in self._parsed(response):
                        parting_since = None
                        since = page["changes"][-1]["sequence"] if page["changes"] else since
                        journal = page["journal"]
                        yield page
            except (OSError, http.client.HTTPException, PromiseError) as error:
                has_begun = is_open or waiting_since is not None
                if not has_begun or getattr(error, "code", "") not in ("", "interrupted"):
                    raise
                problem = error
            now = time.monotonic()
            # However long nothing happened before that.
            if is_open:
                waiting_since = now
                # One that said that it ends still takes a question for a moment, and breaks off its answer.
                is_parting = parting_since is not None and now - parting_since < patience
                if not is_parting and (problem is None or getattr(problem, "code", "") == "interrupted"):
                    is_parting, parting_since = True, now
                loss = None if is_parting else problem
            if now - waiting_since >= patience:
                break
            time.sleep(0.2)
        if loss is not None:
            sentence = "has died and no other one came: look at its log, and mount again"
            raise PromiseError(f"the daemon at {self.socket_path} {sentence}") from loss

    @staticmethod
    def _whose(journal):
        return "" if journal is None else "&journal=" + urllib.parse.quote(journal, safe="")

    def query(self, predicate, arguments=(), scope=None, sort=(), attributes=(), limit=None, external=False,
              area=None, application=None):
        """The items that satisfy a predicate, as they come. `area`: "documents" or "data" of containers, of one application
        or of all, or "external": references, which others leave out, as with `external`."""
        body = self._query(predicate, arguments, scope, sort, attributes, area, application) | {"external": external}
        for name, data in self._events("queries", body if limit is None else body | {"limit": limit}):
            if name == "added":
                yield from data["items"]
            elif name == "gathered":
                return
        raise PromiseError("the daemon ended before it had told all items")

    def live_query(self, predicate, arguments=(), scope=None, attributes=(), batching=0, area=None, application=None):
        """Events without end: `added`, `gathered`, `changed`, `removed`, `reset`, each with its document."""
        body = self._query(predicate, arguments, scope, (), attributes, area, application)
        body |= {"live": True, "batchingSeconds": batching}
        yield from self._events("queries", body)

    @staticmethod
    def _query(predicate, arguments, scope, sort, attributes, area, application):
        body = {"predicate": predicate, "arguments": list(arguments), "sort": list(sort), "attributes": list(attributes)}
        wanted = {"scope": None if scope is None else _wire(scope), "area": area, "application": application}
        return body | {name: value for name, value in wanted.items() if value is not None}

    def trace(self):
        """Events without end: `tracing`, then a `request` for each that the mount has answered."""
        yield from self._events("trace", None)

    # What changes something.

    def fetch(self, paths):
        """Brings content here. Gives the last progress, with `failures`."""
        return self._last("items/fetch", {"paths": [_wire(path) for path in paths]})

    def revert(self, paths):
        return self._work("items/revert", self._held(paths))

    def share(self, path, until=None):
        """A link by which anybody reaches the item at the provider. `until`: a date, or a time as RFC 3339 has it."""
        body = {"path": _wire(path)} | ({} if until is None else {"until": until})
        return self._call("POST", "links", body)

    def links(self):
        return self._call("GET", "links")["links"]

    def revoke_link(self, link):
        """By the `id` of a link."""
        return self._call("DELETE", "links/" + urllib.parse.quote(link, safe=""))

    def trash(self, path=None, provider=False):
        """What was removed on the mount, the newest first; not `isKept`: it was not here, and cannot come back. `provider`: what the
        provider keeps, whoever removed it."""
        fields = ([] if path is None else ["path=" + _wire(path)]) + (["provider=true"] if provider else [])
        return self._call("GET", "trash" + ("?" + "&".join(fields) if fields else ""))["items"]

    def restore(self, paths, to=None, provider=False):
        """Brings back what was removed at these paths; `to`: into this folder, under a free name. `provider`: of what the provider
        keeps, to where it was."""
        body = self._held(paths) | ({"atProvider": True} if provider else {})
        return self._work("trash/restore", body if to is None else body | {"to": _wire(to)})

    def evict(self, paths):
        return self._work("items/evict", self._held(paths))

    @staticmethod
    def _held(paths):
        """What waits for the claims of others, and for none of the command that this one is within."""
        purpose = _inherited_purpose()
        body = {"paths": [_wire(path) for path in paths]}
        return body if purpose is None else body | {"purpose": purpose}

    def pin(self, paths, pin):
        """`pin`: pinned, online-only or automatic."""
        return self._work("items/pin", {"paths": [_wire(path) for path in paths], "pin": pin})

    def sync(self, path=None, wait=False, timeout=None):
        body = {"wait": wait}
        if path is not None:
            body["path"] = _wire(path)
        if timeout is not None:
            body["timeoutSeconds"] = timeout
        return self._last("sync", body) if wait else self._work("sync", body)

    # Requests.

    def _open(self, method, path, body, timeout):
        connection = _Connection(self.socket_path, timeout)
        with self._problems(connection):
            kind = "image/png" if isinstance(body, bytes) else "application/json"
            content = body if body is None or isinstance(body, bytes) else json.dumps(body)
            connection.request(method, "/v1/" + path, content, {"Content-Type": kind})
            return connection, self._checked(connection.answer())

    @contextlib.contextmanager
    def _problems(self, connection):
        """Closes the connection when something goes wrong, and says it in our words."""
        try:
            yield
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise PromiseError(f"no daemon answers at {self.socket_path}: {error}") from error
        except BaseException:
            connection.close()
            raise

    def _checked(self, response):
        if response.status >= 300:
            try:
                document = json.loads(response.read())
            except ValueError:
                raise PromiseError(f"the daemon replied {response.status} without saying why") from None
            raise self._problem(document, response.status)
        return response

    @staticmethod
    def _problem(document, status=0):
        return PromiseError(document["detail"], document["code"], status or document["status"], document["exitStatus"])

    def _call(self, method, path, body=None):
        return self._read(method, path, body, self.timeout)

    def _work(self, path, body):
        """What waits for others, or brings content here, takes as long as it takes: a daemon that answers nothing else either
        is noticed all the same."""
        return self._read("POST", path, body, None)

    def _read(self, method, path, body, timeout):
        connection, response = self._open(method, path, body, timeout)
        with contextlib.closing(connection):
            return json.loads(response.read())

    def _events(self, path, body):
        """Server-sent events, as pairs of name and document. Without a time limit: the daemon sends signs of life."""
        connection, response = self._open("GET" if body is None else "POST", path, body, None)
        with contextlib.closing(connection), contextlib.closing(response):
            yield from self._parsed(response)

    def _parsed(self, response):
        name = ""
        for line in self._lines(response):
            field, _, value = line.decode().partition(": ")
            if field == "event":
                name = value
            elif field == "data":
                if name == "problem":
                    raise self._problem(json.loads(value))
                yield name, json.loads(value)

    def _lines(self, response):
        """An answer that breaks off is no end of it. `for line in response` does not tell the two apart."""
        rest = b""
        while True:
            try:
                part = response.read1(65536)
            except (OSError, http.client.HTTPException) as problem:
                raise PromiseError("the daemon ended in the middle of its answer") from problem
            if not part:
                return
            *lines, rest = (rest + part).split(b"\n")
            yield from lines

    def _last(self, path, body):
        for name, data in self._events(path, body):
            if name == "done":
                return data
        raise PromiseError("the daemon ended before it was done")
