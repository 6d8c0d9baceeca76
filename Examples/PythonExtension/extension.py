#!/usr/bin/env python3
"""An extension of PromiseFS that needs nothing but Python: a shelf that keeps items in an SQLite database and their contents in
files beside it. It has everything that docs/extension-openapi.yaml describes.

    promisefs mount 'extension+exec:/path/to/extension.py?--store=/srv/shelf' /mnt

Without --store it keeps them below $XDG_DATA_HOME. With --links=127.0.0.1:8080 it hands out links to its files, and answers
whoever has one there.

The daemon starts it with the path of its socket in PROMISEFS_EXTENSION_SOCKET, and ends it. What it prints is in the daemon's log.
"""

import argparse
import base64
import html
import http.server
import json
import os
import re
import secrets
import shutil
import socketserver
import sqlite3
import sys
import tempfile
import threading
import time
import urllib.parse

SCHEMA = """
CREATE TABLE IF NOT EXISTS item (
    id INTEGER PRIMARY KEY AUTOINCREMENT, parent INTEGER REFERENCES item, name BLOB NOT NULL, kind TEXT NOT NULL,
    size INTEGER NOT NULL DEFAULT 0, version INTEGER NOT NULL DEFAULT 0, mode INTEGER NOT NULL, owner INTEGER NOT NULL,
    "group" INTEGER NOT NULL, modified INTEGER NOT NULL, target BLOB, UNIQUE (parent, name));
CREATE TABLE IF NOT EXISTS change (number INTEGER PRIMARY KEY AUTOINCREMENT, item INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS object (kind TEXT, name TEXT, version INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (kind, name));
CREATE TABLE IF NOT EXISTS mark (item INTEGER PRIMARY KEY, mark TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS earlier (item INTEGER NOT NULL, version INTEGER NOT NULL, size INTEGER NOT NULL, modified INTEGER NOT NULL,
    PRIMARY KEY (item, version));
CREATE TABLE IF NOT EXISTS removed (number INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL, time INTEGER NOT NULL, id INTEGER NOT NULL,
    name BLOB NOT NULL, kind TEXT NOT NULL, size INTEGER NOT NULL, version INTEGER NOT NULL, mode INTEGER NOT NULL, owner INTEGER NOT NULL,
    "group" INTEGER NOT NULL, modified INTEGER NOT NULL, target BLOB);
CREATE TABLE IF NOT EXISTS link (id INTEGER PRIMARY KEY AUTOINCREMENT, token TEXT NOT NULL UNIQUE, item INTEGER NOT NULL,
    until INTEGER);
CREATE TABLE IF NOT EXISTS shelf (token TEXT NOT NULL);
INSERT INTO item (id, parent, name, kind, mode, owner, "group", modified)
    SELECT 1, NULL, x'726f6f74', 'folder', 493, 0, 0, 0 WHERE NOT EXISTS (SELECT 1 FROM item);
INSERT INTO shelf SELECT lower(hex(randomblob(8))) WHERE NOT EXISTS (SELECT 1 FROM shelf);
"""
# What a person picks in: it may run scripts, has no network, and is told nothing.
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>The newest documents</title>
<style>:root { color-scheme: light dark; font: 15px system-ui, sans-serif } button { font: inherit }</style>
<h1>The newest documents</h1><ul>BUTTONS</ul><button id="cancel">None of these</button>
<script>
for (const button of document.querySelectorAll('button[data-id]'))
  button.onclick = () => parent.postMessage({ identifier: button.dataset.id }, '*');
document.getElementById('cancel').onclick = () => parent.postMessage({ cancel: true }, '*');
</script></html>
"""
PAGE_SIZE = 1000
CHANGES_KEPT = 100_000
VERSIONS_KEPT = 10
REMOVED_KEPT = 1000
REMOVED_BYTES_KEPT = 256 << 20


class Problem(Exception):
    """Answered as a problem document (RFC 9457)."""

    def __init__(self, status, detail):
        super().__init__(detail)
        self.status = status


def quoted(name):
    """Names are bytes, and JSON holds text: they travel percent-encoded."""
    return urllib.parse.quote_from_bytes(name, safe="")


def as_bytes(text):
    return text.encode("utf-8", "surrogateescape")


class Shelf:
    """The store. One lock: every method is one step for whoever looks."""

    def __init__(self, folder):
        self.contents = os.path.join(folder, "contents")
        self.incoming = os.path.join(folder, "incoming")
        self.pictures = os.path.join(folder, "pictures")
        for each in (self.contents, self.pictures):
            os.makedirs(each, exist_ok=True)
        # What a run before did not finish.
        shutil.rmtree(self.incoming, ignore_errors=True)
        os.makedirs(self.incoming)
        self.changed = threading.Condition()
        # Where links lead; none: none are made.
        self.address = None
        self.database = sqlite3.connect(
            os.path.join(folder, "shelf.sqlite"), check_same_thread=False, isolation_level=None)
        self.database.row_factory = sqlite3.Row
        self.database.execute("PRAGMA journal_mode = WAL")
        self.database.executescript(SCHEMA)
        self.token = self.database.execute("SELECT token FROM shelf").fetchone()[0]

    # Looking

    def row(self, identifier):
        row = None
        if re.fullmatch("[0-9]{1,18}", identifier):
            row = self.database.execute("SELECT * FROM item WHERE id = ?", (int(identifier),)).fetchone()
        if row is None:
            raise Problem(404, "there is no such item")
        return row

    def described(self, row):
        document = {
            "identifier": str(row["id"]), "name": quoted(row["name"]), "kind": row["kind"], "mode": row["mode"],
            "owner": row["owner"], "group": row["group"], "modified": row["modified"]}
        if row["parent"] is not None:
            document["parent"] = str(row["parent"])
        if row["kind"] != "folder":
            document.update(version=str(row["version"]), size=row["size"])
        if row["kind"] == "link":
            document["target"] = quoted(row["target"])
        return document

    def item(self, identifier):
        with self.changed:
            return self.described(self.row(identifier))

    def children(self, identifier, page):
        with self.changed:
            folder = self.row(identifier)
            if folder["kind"] != "folder":
                raise Problem(404, "this is no folder")
            rows = self.database.execute(
                "SELECT * FROM item WHERE parent = ? AND id > ? ORDER BY id LIMIT ?",
                (folder["id"], int(page or 0), PAGE_SIZE)).fetchall()
            document = {"items": [self.described(row) for row in rows]}
            if len(rows) == PAGE_SIZE:
                document["next"] = str(rows[-1]["id"])
            return document

    def open_content(self, identifier, version):
        with self.changed:
            row = self.row(identifier)
            if row["kind"] != "file" or str(row["version"]) != version:
                raise Problem(412, "this is another version")
            return open(self.content_path(row["id"], row["version"]), "rb")

    def content_path(self, number, version):
        return os.path.join(self.contents, f"{number}-{version}")

    def open_thumbnail(self, identifier, version):
        """PNG of a version, in the one size that was saved."""
        with self.changed:
            row = self.row(identifier)
            if str(row["version"]) != version or not os.path.exists(self.picture_path(row["id"], version)):
                raise Problem(404, "there is no picture of this version")
            return open(self.picture_path(row["id"], version), "rb")

    def picture_path(self, number, version):
        return os.path.join(self.pictures, f"{number}-{version}.png")

    # What PromiseFS keeps for itself

    def object(self, kind, name):
        return self.database.execute("SELECT * FROM object WHERE kind = ? AND name = ?", (kind, name)).fetchone()

    def object_names(self, kind):
        with self.changed:
            return [row["name"] for row in self.database.execute("SELECT name FROM object WHERE kind = ?", (kind,))]

    def read_object(self, kind, name):
        with self.changed:
            row = self.object(kind, name)
            if row is None:
                raise Problem(404, "there is no such object")
            return {"version": str(row["version"]), "bytes": base64.b64encode(row["bytes"]).decode()}

    def write_object(self, kind, name, version, content):
        """Compare and swap: the version that it must have, or none."""
        with self.changed:
            row = self.object(kind, name)
            if (None if row is None else str(row["version"])) != version:
                raise Problem(412, "this is another version")
            # No version comes twice, also not after a deletion.
            number = 1 + self.database.execute("SELECT coalesce(max(version), 0) FROM object").fetchone()[0]
            number = max(number, time.time_ns())
            with open(content, "rb") as file:
                self.database.execute("INSERT OR REPLACE INTO object VALUES (?, ?, ?, ?)", (kind, name, number, file.read()))
            return {"version": str(number)}

    def delete_object(self, kind, name, version):
        with self.changed:
            row = self.object(kind, name)
            if row is not None and str(row["version"]) != version:
                raise Problem(412, "this is another version")
            self.database.execute("DELETE FROM object WHERE kind = ? AND name = ?", (kind, name))

    # What an item is called for good

    def mark(self, identifier):
        """It stays with the item, also when the shelf gives that another number."""
        with self.changed:
            number = self.row(identifier)["id"]
            self.database.execute("INSERT OR IGNORE INTO mark VALUES (?, lower(hex(randomblob(16))))", (number,))
            return {"persistentIdentifier": self.database.execute("SELECT mark FROM mark WHERE item = ?", (number,)).fetchone()[0]}

    def marked(self, mark):
        with self.changed:
            row = self.database.execute("SELECT item FROM mark WHERE mark = ?", (mark,)).fetchone()
            if row is None:
                raise Problem(404, "no item is called so")
            # Of an item that is gone the mark stays, as it may come back.
            return {"identifier": str(self.row(str(row["item"]))["id"])}

    # What a file was before

    def versions(self, identifier):
        with self.changed:
            rows = self.database.execute("SELECT * FROM earlier WHERE item = ? ORDER BY version DESC", (self.row(identifier)["id"],))
            return {"versions": [{"identifier": str(row["version"]), "size": row["size"], "modified": row["modified"]} for row in rows]}

    def open_version(self, identifier, version):
        with self.changed:
            row = self.database.execute("SELECT * FROM earlier WHERE item = ? AND CAST(version AS TEXT) = ?",
                                        (self.row(identifier)["id"], version)).fetchone()
            if row is None:
                raise Problem(404, "this version is not kept")
            return open(self.content_path(row["item"], row["version"]), "rb")

    def set_aside(self, row):
        """Keeps what a file has for when it has something else. Returns the contents that go for it."""
        self.database.execute("INSERT INTO earlier VALUES (?, ?, ?, ?)", (row["id"], row["version"], row["size"], row["modified"]))
        return self.forget_versions(row["id"], VERSIONS_KEPT)

    def forget_versions(self, number, kept=0):
        rows = self.database.execute("SELECT version FROM earlier WHERE item = ? ORDER BY version DESC LIMIT -1 OFFSET ?",
                                     (number, kept)).fetchall()
        self.database.executemany("DELETE FROM earlier WHERE item = ? AND version = ?", [(number, row["version"]) for row in rows])
        return [self.content_path(number, row["version"]) for row in rows]

    # What was removed

    def removed(self):
        with self.changed:
            rows = self.database.execute("SELECT * FROM removed ORDER BY number DESC")
            return {"items": [{"identifier": str(row["number"]), "path": row["path"], "kind": row["kind"], "size": row["size"],
                               "modified": row["modified"], "removed": row["time"]} for row in rows]}

    def keep_removed(self, row):
        """The content stays where it is. Returns the contents that go for it."""
        self.database.execute(
            'INSERT INTO removed (path, time, id, name, kind, size, version, mode, owner, "group", modified, target) VALUES '
            "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (self.path(row), time.time_ns(), *(row[key] for key in (
                "id", "name", "kind", "size", "version", "mode", "owner", "group", "modified", "target"))))
        old = self.database.execute(
            "SELECT * FROM (SELECT *, sum(size) OVER newer AS bytes, count(*) OVER newer AS count FROM removed "
            "WINDOW newer AS (ORDER BY number DESC)) WHERE bytes > ? OR count > ?", (REMOVED_BYTES_KEPT, REMOVED_KEPT)).fetchall()
        self.database.executemany("DELETE FROM removed WHERE number = ?", [(row["number"],) for row in old])
        return [content for row in old for content in self.forget_versions(row["id"]) + [self.content_path(row["id"], row["version"])]]

    def bring_back(self, removed):
        """As the item that it was, with its earlier versions, into the folder that is where its folder was."""
        def body():
            row = self.database.execute("SELECT * FROM removed WHERE CAST(number AS TEXT) = ?", (removed,)).fetchone()
            if row is None:
                raise Problem(404, "this is not kept any more")
            folder = 1
            for name in row["path"].split("/")[1:-1]:
                found = self.database.execute("SELECT id FROM item WHERE parent = ? AND name = ? AND kind = 'folder'",
                                              (folder, urllib.parse.unquote_to_bytes(name))).fetchone()
                if found is None:
                    raise Problem(409, "its folder is gone: bring that back before")
                folder = found["id"]
            self.database.execute(
                'INSERT INTO item (id, parent, name, kind, size, version, mode, owner, "group", modified, target) VALUES '
                "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (row["id"], folder, *(row[key] for key in (
                    "name", "kind", "size", "version", "mode", "owner", "group", "modified", "target"))))
            self.database.execute("DELETE FROM removed WHERE number = ?", (row["number"],))
            self.note(row["id"])
            return row["id"], []
        self.change(body)

    # Links for strangers

    def path(self, row):
        return "" if row["parent"] is None else self.path(self.row(str(row["parent"]))) + "/" + quoted(row["name"])

    def described_link(self, link):
        row = self.row(str(link["item"]))
        document = {"id": str(link["id"]), "url": f"{self.address}/{link['token']}/{quoted(row['name'])}", "path": self.path(row)}
        return document if link["until"] is None else document | {"until": link["until"]}

    def link(self, identifier, until):
        with self.changed:
            if self.address is None:
                raise Problem(403, "this shelf makes no links: it was started without --links")
            row = self.row(identifier)
            if row["kind"] != "file":
                raise Problem(403, "this shelf has links to files only")
            number = self.database.execute("INSERT INTO link (token, item, until) VALUES (?, ?, ?)",
                                           (secrets.token_urlsafe(24), row["id"], until)).lastrowid
            return self.described_link(self.database.execute("SELECT * FROM link WHERE id = ?", (number,)).fetchone())

    def links(self):
        with self.changed:
            self.database.execute("DELETE FROM link WHERE until <= ? OR item NOT IN (SELECT id FROM item)", (time.time_ns(),))
            return {"links": [self.described_link(row) for row in self.database.execute("SELECT * FROM link ORDER BY id").fetchall()]}

    def revoke(self, link):
        with self.changed:
            if not self.database.execute("DELETE FROM link WHERE CAST(id AS TEXT) = ?", (link,)).rowcount:
                raise Problem(404, "there is no such link")

    def open_linked(self, token):
        """The file as it is now, for whoever has the link."""
        with self.changed:
            row = self.database.execute(
                "SELECT item.* FROM link JOIN item ON item.id = link.item WHERE token = ? AND (until IS NULL OR until > ?)",
                (token, time.time_ns())).fetchone()
            if row is None:
                raise Problem(404, "there is nothing here")
            return open(self.content_path(row["id"], row["version"]), "rb")

    # Picking

    def picker_page(self, mode):
        """The newest twenty documents as buttons. It is shown in a frame that reaches nothing, and answers which was picked."""
        if mode not in ("open", "import"):
            raise Problem(404, "there is no page for this")
        with self.changed:
            rows = self.database.execute("SELECT id, name FROM item WHERE kind = 'file' ORDER BY modified DESC LIMIT 20").fetchall()
        buttons = "".join(
            f'<li><button data-id="{row["id"]}">{html.escape(bytes(row["name"]).decode(errors="replace"))}</button></li>'
            for row in rows)
        return PAGE.replace("BUTTONS", buttons)

    # Changing

    def save_thumbnail(self, identifier, version, picture):
        with self.changed:
            row = self.row(identifier)
            self.expect(row, version)
            os.rename(picture, self.picture_path(row["id"], row["version"]))

    def change(self, body):
        """Runs body in a transaction; it returns the item's number, and which contents are to be removed from the disk afterwards."""
        with self.changed:
            self.database.execute("BEGIN IMMEDIATE")
            try:
                number, garbage = body()
                self.database.execute("DELETE FROM change WHERE number <= (SELECT max(number) FROM change) - ?",
                                      (CHANGES_KEPT,))
                self.database.execute("COMMIT")
            except BaseException as error:
                self.database.execute("ROLLBACK")
                if isinstance(error, sqlite3.IntegrityError):
                    raise Problem(409, "the name is taken") from None
                raise
            self.changed.notify_all()
            for content in garbage:
                for path in (content, self.picture_path(*os.path.basename(content).split("-"))):
                    if os.path.exists(path):
                        os.unlink(path)
            return self.described(self.row(str(number))) if number else None

    def note(self, number):
        return self.database.execute("INSERT INTO change (item) VALUES (?)", (number,)).lastrowid

    def expect(self, row, version):
        if version is not None and row["kind"] != "folder" and str(row["version"]) != version:
            raise Problem(412, "it has another version now")

    def create(self, folder, query, content):
        def body():
            parent = self.row(folder)
            if parent["kind"] != "folder":
                raise Problem(404, "this is no folder")
            target = as_bytes(query["target"]) if "target" in query else None
            number = self.database.execute(
                'INSERT INTO item (parent, name, kind, size, mode, owner, "group", modified, target) VALUES (?,?,?,?,?,?,?,?,?)',
                (parent["id"], as_bytes(query["name"]), query["kind"], len(target or b""), int(query["mode"]),
                 int(query["owner"]), int(query["group"]), int(query["modified"]), target)).lastrowid
            version = self.note(number)
            self.database.execute("UPDATE item SET version = ? WHERE id = ?", (version, number))
            if query["kind"] == "file":
                self.take(content, number, version)
            return number, []
        return self.change(body)

    def take(self, content, number, version):
        """The content is on the disk before the database says so."""
        os.rename(content, self.content_path(number, version))
        size = os.path.getsize(self.content_path(number, version))
        self.database.execute("UPDATE item SET size = ?, version = ? WHERE id = ?", (size, version, number))

    def modify(self, identifier, query, content=None):
        def body():
            row, garbage = self.row(identifier), []
            number = row["id"]
            self.expect(row, query.get("version"))
            change = self.note(number)
            if "name" in query:
                parent = self.row(query["parent"])
                self.refuse_circle(number, parent)
                self.database.execute("UPDATE item SET parent = ?, name = ? WHERE id = ?",
                                      (parent["id"], as_bytes(query["name"]), number))
            for key in ("mode", "owner", "group", "modified"):
                if key in query:
                    self.database.execute(f'UPDATE item SET "{key}" = ? WHERE id = ?', (int(query[key]), number))
            if "target" in query:
                target = as_bytes(query["target"])
                self.database.execute("UPDATE item SET target = ?, size = ?, version = ? WHERE id = ?",
                                      (target, len(target), change, number))
            if content:
                if row["kind"] != "file":
                    raise Problem(409, "this is no file")
                garbage = self.set_aside(row)
                self.take(content, number, change)
            return number, garbage
        return self.change(body)

    def refuse_circle(self, number, folder):
        while folder is not None:
            if folder["id"] == number:
                raise Problem(409, "a folder cannot be in itself")
            folder = self.row(str(folder["parent"])) if folder["parent"] else None

    def delete(self, identifier, version):
        def body():
            row = self.row(identifier)
            self.expect(row, version)
            if self.database.execute("SELECT 1 FROM item WHERE parent = ?", (row["id"],)).fetchone():
                raise Problem(409, "the folder is not empty")
            garbage = self.keep_removed(row)
            self.database.execute("DELETE FROM item WHERE id = ?", (row["id"],))
            self.note(row["id"])
            return None, garbage
        self.change(body)

    # The change feed

    def anchor(self):
        return f"{self.token}:{self.database.execute('SELECT max(number) FROM change').fetchone()[0] or 0}"

    def changes(self, since, seconds):
        with self.changed:
            token, _, number = since.partition(":")
            oldest = self.database.execute("SELECT min(number) FROM change").fetchone()[0] or 1
            if token != self.token or not number.isdigit() or int(number) < oldest - 1:
                raise Problem(410, "this anchor is not known any more")
            self.changed.wait_for(lambda: self.anchor() != since, timeout=seconds)
            rows = self.database.execute("SELECT DISTINCT item FROM change WHERE number > ?", (int(number),)).fetchall()
            document = {"updated": [], "deleted": [], "anchor": self.anchor()}
            for (item,) in rows:
                row = self.database.execute("SELECT * FROM item WHERE id = ?", (item,)).fetchone()
                if row is None:
                    document["deleted"].append(str(item))
                else:
                    document["updated"].append(self.described(row))
            return document


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body of a short answer go out together.
    wbufsize = -1

    def send_page(self, page):
        body = page.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def answer(self, status, document):
        body = json.dumps(document).encode() if document is not None else b""
        self.send_response(status)
        self.send_header("Content-Type", "application/json" if status < 400 else "application/problem+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def handle_request(self):
        address = urllib.parse.urlsplit(self.path)
        words = [urllib.parse.unquote(word) for word in address.path.split("/")[2:]]
        # Bytes that are no UTF-8 become what as_bytes() turns back.
        query = dict(urllib.parse.parse_qsl(address.query, keep_blank_values=True, errors="surrogateescape"))
        content = None
        try:
            content = self.receive()
            shelf = self.server.shelf
            match [self.command] + words:
                case ["GET", "capabilities"]:
                    capabilities = ["stable-identifiers", "atomic-rename", "conditional-write", "change-feed", "change-push",
                                    "ranges", "metadata", "quota", "links", "thumbnails", "picker-pages", "private-objects",
                                    "persistent-identifiers", "release", "versions", "removed-items"]
                    self.answer(200, {"capabilities": capabilities + (["sharing-links"] if shelf.address else [])})
                case ["GET", "root"]:
                    self.answer(200, shelf.item("1"))
                case ["GET", "items", identifier]:
                    self.answer(200, shelf.item(identifier))
                case ["GET", "items", identifier, "children"]:
                    self.answer(200, shelf.children(identifier, query.get("page")))
                case ["GET", "items", identifier, "content"]:
                    self.send_content(shelf.open_content(identifier, query.get("version")))
                case ["GET", "items", identifier, "thumbnail"]:
                    self.send_content(shelf.open_thumbnail(identifier, query.get("version")))
                case ["POST", "items", identifier, "release"]:
                    # What it serves is a file already: nothing was held ready.
                    self.answer(204, None)
                case ["GET", "items", identifier, "persistent-identifier"]:
                    self.answer(200, shelf.mark(identifier))
                case ["GET", "items", identifier, "versions"]:
                    self.answer(200, shelf.versions(identifier))
                case ["GET", "items", identifier, "versions", version, "content"]:
                    self.send_content(shelf.open_version(identifier, version))
                case ["POST", "items", identifier, "links"]:
                    self.answer(201, shelf.link(identifier, int(query["until"]) if "until" in query else None))
                case ["GET", "removed"]:
                    self.answer(200, shelf.removed())
                case ["POST", "removed", removed, "restore"]:
                    shelf.bring_back(removed)
                    self.answer(204, None)
                case ["GET", "links"]:
                    self.answer(200, shelf.links())
                case ["DELETE", "links", link]:
                    shelf.revoke(link)
                    self.answer(204, None)
                case ["GET", "persistent-identifiers", persistent]:
                    self.answer(200, shelf.marked(persistent))
                case ["PUT", "items", identifier, "thumbnail"]:
                    shelf.save_thumbnail(identifier, query.get("version"), content)
                    self.answer(204, None)
                case ["POST", "items", identifier, "children"]:
                    self.answer(201, shelf.create(identifier, query, content))
                case ["PUT", "items", identifier, "content"]:
                    self.answer(200, shelf.modify(identifier, query, content))
                case ["PATCH", "items", identifier]:
                    self.answer(200, shelf.modify(identifier, query))
                case ["DELETE", "items", identifier]:
                    shelf.delete(identifier, query.get("version"))
                    self.answer(204, None)
                case ["GET", "objects", kind]:
                    self.answer(200, {"names": shelf.object_names(kind)})
                case ["GET", "objects", kind, name]:
                    self.answer(200, shelf.read_object(kind, name))
                case ["PUT", "objects", kind, name]:
                    self.answer(200, shelf.write_object(kind, name, query.get("version"), content))
                case ["DELETE", "objects", kind, name]:
                    shelf.delete_object(kind, name, query.get("version"))
                    self.answer(204, None)
                case ["GET", "anchor"]:
                    self.answer(200, {"anchor": shelf.anchor()})
                case ["GET", "changes"]:
                    self.answer(200, shelf.changes(query["since"], min(int(query.get("wait", 0)), 60)))
                case ["GET", "picker-page"]:
                    self.send_page(shelf.picker_page(query.get("mode")))
                case ["GET", "quota"]:
                    room = os.statvfs(shelf.contents)
                    self.answer(200, {"total": room.f_blocks * room.f_frsize, "available": room.f_bavail * room.f_frsize})
                case _:
                    raise Problem(404, "there is nothing here")
        except Problem as problem:
            self.answer(problem.status, {"status": problem.status, "detail": str(problem)})
        except OSError as error:
            # A socket that has closed has nobody to tell; a full disk is the caller's to know.
            if isinstance(error, ConnectionError):
                self.close_connection = True
            else:
                self.answer(507 if error.errno in (28, 122) else 500, {"detail": error.strerror})
        finally:
            if content and os.path.exists(content):
                os.unlink(content)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_request

    def receive(self):
        """The body in a file, on the disk; nothing that was cut off ever takes effect."""
        length = int(self.headers.get("Content-Length", 0))
        if self.command not in ("POST", "PUT"):
            return None
        descriptor, path = tempfile.mkstemp(dir=self.server.shelf.incoming)
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
                # sendfile(2): the bytes do not pass through Python.
                self.connection.sendfile(file, start, end - start)

    def address_string(self):
        return "promisefs"

    def log_message(self, *_):
        """Requests are not worth a line in the daemon's log."""


class LinkHandler(http.server.BaseHTTPRequestHandler):
    """Answers whoever has a link: /TOKEN/NAME."""

    def do_GET(self):
        try:
            file = self.server.shelf.open_linked(self.path.split("/")[1] if "/" in self.path else "")
        except (Problem, OSError):
            return self.send_error(404)
        with file:
            self.send_response(200)
            self.send_header("Content-Length", str(os.fstat(file.fileno()).st_size))
            # A stranger's browser keeps it, and runs nothing that is in it.
            self.send_header("Content-Type", "application/octet-stream")
            self.end_headers()
            shutil.copyfileobj(file, self.wfile)

    def log_message(self, *_):
        """A line would have the link in it."""


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        # The daemon closes connections as it likes; everything else is for its log.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    data = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    parser.add_argument("--store", default=os.path.join(data, "promisefs/shelf"),
                        help="the folder of the shelf, which is made when it is missing")
    parser.add_argument("--links", metavar="HOST:PORT", help="where links to files lead, and are answered; without it none are made")
    arguments = parser.parse_args()
    os.makedirs(arguments.store, exist_ok=True)
    with Server(os.environ["PROMISEFS_EXTENSION_SOCKET"], Handler) as server:
        server.shelf = Shelf(arguments.store)
        if arguments.links:
            serve_links(server.shelf, *arguments.links.rsplit(":", 1))
        server.serve_forever()


def serve_links(shelf, host, port):
    server = http.server.ThreadingHTTPServer((host, int(port)), LinkHandler)
    server.shelf = shelf
    shelf.address = f"http://{host}:{port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()


if __name__ == "__main__":
    main()
