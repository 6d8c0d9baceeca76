"""What goes over the socket."""
import http.client
import os
import socket
import urllib.parse


class PromiseError(Exception):
    """What the daemon refused, and why. `status` is HTTP's, `exit_status` the one of the command line; 4: nobody answers."""

    def __init__(self, message, code="", status=0, exit_status=4):
        super().__init__(message)
        self.code, self.status, self.exit_status = code, status, exit_status


class _Connection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("promisefs", timeout=timeout)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _wire(path):
    """Any bytes as a path of the protocol."""
    return "/" + urllib.parse.quote(os.fsencode(path).strip(b"/"), safe="/")
