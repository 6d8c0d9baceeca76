"""The control socket with bare sockets, so that what is measured is the daemon and not a library."""
import json, re, socket

from . import system

HEAD = "{} /v1/{} HTTP/1.1\r\nHost: promisefs\r\nContent-Type: application/json\r\n{}\r\n\r\n"
EVENT = re.compile(rb"event: (\w+)\ndata: ([^\n]*)\n\n")


class Connection:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.rest = b""

    def fileno(self):
        return self.socket.fileno()

    def send(self, method, route, body=b"", fields=None):
        fields = f"Content-Length: {len(body)}" if fields is None else fields
        self.socket.sendall(HEAD.format(method, route, fields).encode() + body)

    def receive(self):
        part = self.socket.recv(1 << 18)
        if not part:
            raise system.CommandFailed(f"the daemon closed the connection after {self.rest[-200:]!r}")
        self.rest += part

    def until(self, end):
        """What comes up to `end`; what follows it stays."""
        while end not in self.rest:
            self.receive()
        found, _, self.rest = self.rest.partition(end)
        return found

    def ask(self, document):
        self.send("POST", "queries", json.dumps(document).encode())

    def arrived(self):
        """The events that are complete, by name and bytes; waits for nothing. An event is never cut into two chunks."""
        place = 0
        for match in EVENT.finditer(self.rest):
            place = match.end()
            yield match.group(1).decode(), match.group(2)
        self.rest = self.rest[place:]

    def events(self):
        while True:
            yield from self.arrived()
            self.receive()
