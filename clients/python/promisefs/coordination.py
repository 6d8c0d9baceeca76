"""Reading and writing undisturbed, and being asked before others do."""
import contextlib
import contextvars
import http.client
import json
import os
import select

from .wire import PromiseError, _Connection, _wire


def reading(path, *options):
    """An item to be read: `withoutChanges`, `resolvesSymbolicLink`, `immediatelyAvailableMetadataOnly`, `forUploading`."""
    return {"path": _wire(path), "access": "read", "options": list(options)}


def writing(path, *options):
    """An item to be written: `forDeleting`, `forMoving`, `forMerging`, `forReplacing`, `contentIndependentMetadataOnly`.
    It need not be there yet: then the claim is about the place."""
    return {"path": _wire(path), "access": "write", "options": list(options)}


def _inherited_purpose():
    """Of the coordinated command that this process belongs to. An empty one is none."""
    return os.environ.get("PROMISEFS_PURPOSE") or None


def _inherited_claims():
    """The claims that the coordinated command runs in which this process belongs to."""
    for word in os.environ.get("PROMISEFS_CLAIMS", "").split():
        domain, _, number = word.rpartition(":")
        if number.isdigit():
            yield domain, int(number)


# The claims that this thread or task runs in: what is nested in them is refused where it would wait for one of them.
_surrounding = contextvars.ContextVar("surrounding", default=tuple(_inherited_claims()))


class Coordination:
    """The part of `Domain` that claims items and presents them."""

    @contextlib.contextmanager
    def coordinate(self, *intents, purpose=None, timeout=None):
        """Reads and writes items undisturbed: gives what was granted, with where the items are now. `purpose`: by default that of
        the coordinated command that this process belongs to. Raises `PromiseError` at the end when the claim ended before."""
        with self._access(intents, purpose, timeout, False) as granted:
            yield granted

    @contextlib.contextmanager
    def prepare(self, *intents, purpose=None, timeout=None):
        """Asks the presenters of all items at once; what is coordinated of them inside does not ask again. Nobody is kept out:
        each item is still to be coordinated."""
        with self._access(intents, purpose, timeout, True) as prepared:
            yield prepared

    @contextlib.contextmanager
    def _access(self, intents, purpose, timeout, is_preparation):
        purpose = purpose or _inherited_purpose()
        body = {"items": list(intents)} | ({"isPreparation": True} if is_preparation else {})
        if purpose is not None:
            body["purpose"] = purpose
        if timeout is not None:
            body["timeoutSeconds"] = timeout
        around = _surrounding.get()
        body["within"] = [number for place, number in around if place == self._domain_name()]
        connection, response = self._begin(body)
        mark = None
        try:
            granted = next((data for name, data in self._parsed(response) if name == "granted"), None)
            if granted is None:
                raise PromiseError("the daemon ended before the claim was granted")
            mark = _surrounding.set(around + ((self._domain_name(), granted["claim"]),))
            yield granted
            # The end of the request's body is the end of the access.
            try:
                connection.send(b"0\r\n\r\n")
                response.read()
            except (OSError, http.client.HTTPException) as problem:
                raise PromiseError("the claim ended before it was given back: its daemon has gone") from problem
            self._idle.append((os.getpid(), connection))
            connection = None
        finally:
            if mark is not None:
                _surrounding.set(around)
            if connection:
                connection.close()

    def _domain_name(self):
        return os.path.basename(os.fspath(self.socket_path)).removesuffix(".sock")

    def _begin(self, body):
        """Sends the beginning of an access, whose body stays open. Without a time limit."""
        connection = self._idle_connection() or _Connection(self.socket_path, None)
        line = json.dumps(body).encode() + b"\n"
        with self._problems(connection):
            connection.putrequest("POST", "/v1/accesses")
            connection.putheader("Content-Type", "application/json")
            connection.putheader("Transfer-Encoding", "chunked")
            connection.endheaders()
            connection.send(b"%x\r\n%b\r\n" % (len(line), line))
            return connection, self._checked(connection.answer())

    def _idle_connection(self):
        while True:
            try:
                process, connection = self._idle.pop()
            except IndexError:
                return None
            ending = select.poll()
            ending.register(connection.sock, select.POLLIN)
            # Of a daemon that has ended there is the end to read; that of the process which forked this one is not its own.
            if process == os.getpid() and not ending.poll(0):
                return connection
            connection.close()

    def present(self, path, purpose=None, id=None):
        """Events without end of whoever shows an item: `presenting`, `ask`, to be answered by `answer`, and `tell`. `id`: that of
        an earlier `presenting`, after the daemon was replaced; the item is presented wherever it is now, and the problem `gone`
        says that it is no more."""
        purpose = purpose or _inherited_purpose()
        body = {"path": _wire(path)} | ({} if purpose is None else {"purpose": purpose}) | ({} if id is None else {"id": id})
        yield from self._events("presenters", body)

    def answer(self, event, failed=False):
        """What a presenter was asked is done, or could not be done: then whoever asked does not get at the item. `event`: the
        document of the `ask`."""
        body = {"question": event["question"]} | ({"failed": True} if failed else {})
        return self._call("POST", f"presenters/{event['presenter']}/answers", body)["done"]
