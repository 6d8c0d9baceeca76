#!/usr/bin/env python3
"""The extension of Examples/PythonExtension gone wrong, for tests: contents are sent as their items are called.

    crash     the process ends          hang      nothing is ever sent     leak      bytes without end
    short     fewer bytes than it says  long      more bytes than it says  garbage   no HTTP
    other     another part than asked for

In the root it also shows an item that is in no folder, two with one name, one that cannot be a file name, and the root itself.
"""

import importlib.util
import os
import sys
import time

here = os.path.dirname(os.path.abspath(__file__))
path = os.path.join(here, "../../Examples/PythonExtension/extension.py")
specification = importlib.util.spec_from_file_location("extension", path)
extension = importlib.util.module_from_spec(specification)
specification.loader.exec_module(extension)


class Shelf(extension.Shelf):
    def children(self, identifier, page):
        document = super().children(identifier, page)
        if identifier == "1":
            wrong = {"identifier": "900", "parent": "1", "name": "x", "kind": "file", "size": 1, "version": "1"}
            document["items"] += [
                wrong | {"name": "a%2Fb"}, wrong | {"parent": "77"}, wrong | {"name": ".."}, wrong | {"size": -1},
                wrong | {"identifier": "1", "kind": "folder"}]
            # Without the first one it would not be wrong, but an item that somebody else has made.
            if any(item["name"] == "good" for item in document["items"]):
                document["items"].append(wrong | {"name": "good"})
        return document


class Handler(extension.Handler):
    def send_content(self, file):
        number = os.path.basename(file.name).split("-")[0]
        name = self.server.shelf.row(number)["name"].decode("utf-8", "replace")
        behaviour = getattr(self, "content_" + name, None)
        if behaviour is None:
            return super().send_content(file)
        # In one piece: others misbehave at the same moment.
        sys.stderr.write(f"misbehaving: {name}\n")
        sys.stderr.flush()
        behaviour(os.fstat(file.fileno()).st_size)
        self.close_connection = True

    def begin(self, length):
        self.send_response(200)
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.flush()

    def content_crash(self, size):
        os._exit(3)

    def content_hang(self, size):
        time.sleep(3600)

    def content_leak(self, size):
        self.begin(None)
        while True:
            self.wfile.write(b"x" * (1 << 20))

    def content_short(self, size):
        self.begin(size - 1)
        self.wfile.write(b"x" * (size - 1))

    def content_long(self, size):
        self.begin(size + 1)
        self.wfile.write(b"x" * (size + 1))

    def content_garbage(self, size):
        self.wfile.write(b"\x00\xff 220 hello\r\n\r\n" * 10)

    def content_other(self, size):
        self.send_response(206)
        self.send_header("Content-Range", f"bytes 1-{size - 1}/{size}")
        self.send_header("Content-Length", str(size - 1))
        self.end_headers()
        self.wfile.write(b"x" * (size - 1))


extension.Shelf, extension.Handler = Shelf, Handler
extension.main()
