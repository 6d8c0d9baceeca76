"""What goes over the socket."""
import http.client
import os
import select
import socket
import time
import urllib.parse

# A daemon that is stopped or stuck takes requests and answers none. Who has waited so long asks it something that takes no time.
_PAUSE_SECONDS = 2
_PATIENCE_SECONDS = 6


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

    def answer(self):
        """The head of the answer, waited for as long as the daemon answers at all."""
        begun, poll = time.monotonic(), select.poll()
        poll.register(self.sock, select.POLLIN)
        while not poll.poll(_PAUSE_SECONDS * 1000):
            if self.timeout is not None and time.monotonic() - begun > self.timeout:
                raise TimeoutError("timed out")
            _ping(self._path)
        return self.getresponse()


def _ping(path):
    connection = _Connection(path, _PATIENCE_SECONDS)
    try:
        connection.request("GET", "/v1/ping")
        connection.getresponse().read()
    except TimeoutError:
        raise TimeoutError("it does not answer; it is stopped or stuck") from None
    except (OSError, http.client.HTTPException):
        # The call itself meets what else is wrong.
        pass
    finally:
        connection.close()


def _wire(path):
    """Any bytes as a path of the protocol."""
    return "/" + urllib.parse.quote(os.fsencode(path).strip(b"/"), safe="/")
