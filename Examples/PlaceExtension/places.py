#!/usr/bin/env python3
"""An extension of PromiseFS for storages that know an item by its place only, as SFTP, FTP and SMB servers do: it shows a folder of
this machine and asks for everything by its path. For another storage, replace the methods of `Place`.

    promisefs mount 'extension+exec:/path/to/places.py?--folder=/srv/files' /mnt

The daemon gives an item a name of its own that stays when the item is moved here; it asks for `/` and `/folder/a%20file`, and needs
neither `identifier` nor `parent` in what is answered. There is no change feed: folders that were opened are listed again.
"""

import argparse
import http.server
import json
import os
import re
import socketserver
import stat
import sys
import tempfile
import threading
import urllib.parse

INCOMING = b".places-"


class Problem(Exception):
    """Answered as a problem document (RFC 9457)."""

    def __init__(self, status, detail):
        super().__init__(detail)
        self.status = status


class Place:
    """A folder as a storage. One lock: a version is looked at and changed in one step, as far as others leave it alone."""

    def __init__(self, folder):
        self.folder = os.fsencode(os.path.abspath(folder))
        self.lock = threading.Lock()
        for name in os.listdir(self.folder):
            if name.startswith(INCOMING):
                os.unlink(os.path.join(self.folder, name))

    def path(self, place):
        """Of `/a%20b/c`, as bytes. The daemon asks for no `..`; whoever else reaches the socket gets nothing outside either."""
        return os.path.join(self.folder, *(self.name(urllib.parse.unquote_to_bytes(name)) for name in place.split("/") if name))

    @staticmethod
    def name(name):
        if name in (b"", b".", b"..") or b"/" in name:
            raise Problem(404, "there is no such place")
        if name.startswith(INCOMING):
            raise Problem(403, f"names that begin with {INCOMING.decode()} are this program's own")
        return name

    def described(self, path):
        try:
            status = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            raise Problem(404, "there is nothing at this place") from None
        document = {"name": urllib.parse.quote_from_bytes(os.path.basename(path), safe=""), "mode": stat.S_IMODE(status.st_mode),
                    "owner": status.st_uid, "group": status.st_gid, "modified": status.st_mtime_ns}
        if stat.S_ISDIR(status.st_mode):
            document["kind"] = "folder"
        elif stat.S_ISLNK(status.st_mode):
            target = os.readlink(path)
            document.update(kind="link", size=len(target), version=f"{status.st_ino}-{status.st_mtime_ns}",
                            target=urllib.parse.quote_from_bytes(target, safe=""))
        elif stat.S_ISREG(status.st_mode):
            # Every new content is a new file.
            document.update(kind="file", size=status.st_size, version=f"{status.st_ino}-{status.st_size}-{status.st_ctime_ns}")
        else:
            raise Problem(404, "neither file nor folder")
        return document

    def item(self, place):
        return self.described(self.path(place))

    def children(self, place):
        path = self.path(place)
        if self.described(path)["kind"] != "folder":
            raise Problem(404, "this is no folder")
        items = []
        for name in os.listdir(path):
            if name.startswith(INCOMING):
                continue
            try:
                items.append(self.described(os.path.join(path, name)))
            except Problem:
                continue
        return {"items": items}

    def open_content(self, place, version):
        path = self.path(place)
        file = open(path, "rb")
        if self.described(path).get("version") != version:
            file.close()
            raise Problem(412, "this is another version")
        return file

    def expect(self, path, version):
        found = self.described(path)
        if version is not None and found["kind"] != "folder" and found["version"] != version:
            raise Problem(412, "it has another version now")
        return found

    @staticmethod
    def stamp(path, query):
        if "mode" in query and not os.path.islink(path):
            os.chmod(path, int(query["mode"]))
        if "modified" in query:
            os.utime(path, ns=(int(query["modified"]),) * 2, follow_symlinks=False)

    def create(self, folder, query, content):
        path = os.path.join(self.path(folder), self.name(os.fsencode(query["name"])))
        with self.lock:
            if os.path.lexists(path):
                raise Problem(409, "the name is taken")
            try:
                if query["kind"] == "folder":
                    os.mkdir(path)
                elif query["kind"] == "link":
                    os.symlink(os.fsencode(query["target"]), path)
                else:
                    self.stamp(content, query)
                    # Unlike a rename this takes no name that somebody else has just given.
                    os.link(content, path)
                    os.unlink(content)
            except (FileNotFoundError, NotADirectoryError):
                raise Problem(404, "there is no such folder") from None
            except FileExistsError:
                raise Problem(409, "the name is taken") from None
            if query["kind"] != "file":
                self.stamp(path, query)
            return self.described(path)

    def modify(self, place, query, content=None):
        path = self.path(place)
        with self.lock:
            found = self.expect(path, query.get("version"))
            if content:
                if found["kind"] != "file":
                    raise Problem(409, "this is no file")
                os.chmod(content, found["mode"])
                os.rename(content, path)
            if "target" in query:
                link = os.path.join(self.folder, INCOMING + b"link")
                os.symlink(os.fsencode(query["target"]), link)
                os.rename(link, path)
            if "name" in query:
                path = self.move(path, os.path.join(self.path(query["parent"]), self.name(os.fsencode(query["name"]))))
            self.stamp(path, query)
            return self.described(path)

    @staticmethod
    def move(path, new):
        if os.path.lexists(new) and new != path:
            raise Problem(409, "the name is taken")
        try:
            os.rename(path, new)
        except FileNotFoundError:
            raise Problem(404, "there is no such folder") from None
        except OSError as error:
            raise Problem(409, error.strerror) from None
        return new

    def delete(self, place, version):
        path = self.path(place)
        with self.lock:
            if self.expect(path, version)["kind"] != "folder":
                return os.unlink(path)
            try:
                os.rmdir(path)
            except OSError:
                raise Problem(409, "the folder is not empty") from None


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def answer(self, status, document):
        body = json.dumps(document).encode() if document is not None else b""
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def handle_request(self):
        address = urllib.parse.urlsplit(self.path)
        # A place is one word of the address, with its slashes encoded, too.
        words = [urllib.parse.unquote(word) for word in address.path.split("/")[2:]]
        # Bytes that are no UTF-8 become what os.fsencode() turns back.
        query = dict(urllib.parse.parse_qsl(address.query, keep_blank_values=True, errors="surrogateescape"))
        place, content = self.server.place, None
        try:
            content = self.receive()
            match [self.command] + words:
                case ["GET", "capabilities"]:
                    self.answer(200, {"capabilities": ["place-identifiers", "atomic-rename", "ranges", "metadata", "links", "quota"]})
                case ["GET", "root"]:
                    self.answer(200, place.item("/"))
                case ["GET", "items", at]:
                    self.answer(200, place.item(at))
                case ["GET", "items", at, "children"]:
                    self.answer(200, place.children(at))
                case ["GET", "items", at, "content"]:
                    self.send_content(place.open_content(at, query.get("version")))
                case ["POST", "items", at, "children"]:
                    self.answer(201, place.create(at, query, content))
                case ["PUT", "items", at, "content"]:
                    self.answer(200, place.modify(at, query, content))
                case ["PATCH", "items", at]:
                    self.answer(200, place.modify(at, query))
                case ["DELETE", "items", at]:
                    place.delete(at, query.get("version"))
                    self.answer(204, None)
                case ["GET", "quota"]:
                    room = os.statvfs(place.folder)
                    self.answer(200, {"total": room.f_blocks * room.f_frsize, "available": room.f_bavail * room.f_frsize})
                case _:
                    raise Problem(404, "there is nothing here")
        except Problem as problem:
            self.answer(problem.status, {"status": problem.status, "detail": str(problem)})
        except ConnectionError:
            self.close_connection = True
        except (FileNotFoundError, NotADirectoryError):
            self.answer(404, {"detail": "there is nothing at this place"})
        except OSError as error:
            self.answer(507 if error.errno in (28, 122) else 403 if error.errno == 13 else 500, {"detail": error.strerror})
        finally:
            if content and os.path.exists(content):
                os.unlink(content)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_request

    def receive(self):
        """The body in a file, on the disk; nothing that was cut off ever takes effect."""
        length = int(self.headers.get("Content-Length", 0))
        if self.command not in ("POST", "PUT"):
            return None
        descriptor, path = tempfile.mkstemp(prefix=INCOMING, dir=self.server.place.folder)
        with os.fdopen(descriptor, "wb") as file:
            while length > 0:
                piece = self.rfile.read(min(length, 1 << 20))
                if not piece:
                    os.unlink(path)
                    raise ConnectionError("the body was cut off")
                file.write(piece)
                length -= len(piece)
            file.flush()
            os.fsync(file.fileno())
        return path

    def send_content(self, file):
        with file:
            size = os.fstat(file.fileno()).st_size
            part = re.fullmatch("bytes=([0-9]+)-([0-9]+)", self.headers.get("Range", ""))
            start, end = (int(part[1]), min(int(part[2]) + 1, size)) if part else (0, size)
            if part and start >= end:
                raise Problem(416, "there are no such bytes")
            self.send_response(206 if part else 200)
            if part:
                self.send_header("Content-Range", f"bytes {start}-{end - 1}/{size}")
            self.send_header("Content-Length", str(end - start))
            self.end_headers()
            self.wfile.flush()
            if end > start:
                self.connection.sendfile(file, start, end - start)

    def address_string(self):
        return "promisefs"

    def log_message(self, *_):
        """Requests are not worth a line in the daemon's log."""


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", required=True, help="the folder to show")
    with Server(os.environ["PROMISEFS_EXTENSION_SOCKET"], Handler) as server:
        server.place = Place(parser.parse_args().folder)
        server.serve_forever()


if __name__ == "__main__":
    main()
