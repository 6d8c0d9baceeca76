#!/usr/bin/env python3
"""Compares what is below a prefix of a bucket with a mounted folder: names, contents, modes and times.

    compare-s3.py ENDPOINT/BUCKET PREFIX FOLDER

Reads with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (Signature Version 4), and prints what differs.
"""

import datetime
import hashlib
import hmac
import os
import stat
import sys
import urllib.parse
import urllib.request
import xml.etree.ElementTree as xml
from concurrent.futures import ThreadPoolExecutor

ESCAPE = "\u201b"


class Bucket:
    def __init__(self, address):
        self.address = urllib.parse.urlsplit(address)
        self.key = os.environ.get("AWS_ACCESS_KEY_ID", "promisefs-access")
        self.secret = os.environ.get("AWS_SECRET_ACCESS_KEY", "promisefs-secret-key")

    def request(self, method, key="", query=()):
        path = self.address.path + ("/" + urllib.parse.quote(key, safe="/~") if key else "")
        text = "&".join(f"{name}={urllib.parse.quote(value, safe='~')}" for name, value in sorted(query))
        time = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        headers = {"host": self.address.netloc, "x-amz-content-sha256": "UNSIGNED-PAYLOAD", "x-amz-date": time}
        names = ";".join(headers)
        canonical = "\n".join([method, path, text, *(f"{k}:{v}" for k, v in headers.items()), "", names, "UNSIGNED-PAYLOAD"])
        scope = f"{time[:8]}/us-east-1/s3/aws4_request"
        to_sign = "\n".join(["AWS4-HMAC-SHA256", time, scope, hashlib.sha256(canonical.encode()).hexdigest()])
        code = ("AWS4" + self.secret).encode()
        for step in scope.split("/"):
            code = hmac.new(code, step.encode(), hashlib.sha256).digest()
        signature = hmac.new(code, to_sign.encode(), hashlib.sha256).hexdigest()
        headers["Authorization"] = f"AWS4-HMAC-SHA256 Credential={self.key}/{scope}, SignedHeaders={names}, Signature={signature}"
        url = f"{self.address.scheme}://{self.address.netloc}{path}" + (f"?{text}" if text else "")
        with urllib.request.urlopen(urllib.request.Request(url, method=method, headers=headers), timeout=60) as reply:
            return reply.headers, reply.read()

    def keys(self, prefix):
        token = None
        while True:
            query = [("encoding-type", "url"), ("list-type", "2"), ("prefix", prefix)]
            if token:
                query.append(("continuation-token", token))
            root = xml.fromstring(self.request("GET", query=query)[1])
            space = root.tag[: root.tag.index("}") + 1]
            for row in root.iter(space + "Contents"):
                yield urllib.parse.unquote_plus(row.find(space + "Key").text)
            token = root.findtext(space + "NextContinuationToken")
            if not token:
                return


def file_name(key):
    """The bytes of the name that a key stands for."""
    pieces = key.split(ESCAPE)
    result = pieces[0].encode()
    for piece in pieces[1:]:
        result += bytes([int(piece[:2], 16)]) + piece[2:].encode()
    return result


def compare(bucket, key, path):
    status = os.lstat(path)
    headers, body = bucket.request("GET", key)
    if stat.S_ISDIR(status.st_mode):
        mine, here = None, None
    elif stat.S_ISLNK(status.st_mode):
        mine, here = body, os.readlink(path)
    else:
        with open(path, "rb") as file:
            mine, here = body, file.read()
    if mine != here:
        return f"{path!r}: other content ({len(mine)} bytes at the server, {len(here)} here)"
    mode = headers.get("x-amz-meta-mode")
    if mode and int(mode) != status.st_mode:
        return f"{path!r}: mode {int(mode):o} at the server, {status.st_mode:o} here"
    time = headers.get("x-amz-meta-mtime")
    if time and not stat.S_ISDIR(status.st_mode) and abs(float(time) - status.st_mtime) > 0.001:
        return f"{path!r}: time {time} at the server, {status.st_mtime} here"
    return None


def main():
    address, prefix, folder = sys.argv[1:]
    bucket = Bucket(address)
    root = os.fsencode(folder)
    there = {}
    for key in bucket.keys(prefix):
        inside = key[len(prefix):]
        if inside and not inside.startswith(".promisefs/"):
            there[os.path.join(root, file_name(inside.rstrip("/")))] = key
            parent = inside.rstrip("/").rpartition("/")[0]
            while parent:
                there.setdefault(os.path.join(root, file_name(parent)), None)
                parent = parent.rpartition("/")[0]
    here = set()
    for parent, folders, files in os.walk(root):
        here.update(os.path.join(parent, name) for name in folders + files)
    problems = [f"{path!r}: not at the server" for path in sorted(here - there.keys())]
    problems += [f"{path!r}: not in the mount" for path in sorted(there.keys() - here)]
    pairs = [(key, path) for path, key in there.items() if key and path in here]
    with ThreadPoolExecutor(8) as pool:
        problems += [problem for problem in pool.map(lambda pair: compare(bucket, *pair), pairs) if problem]
    print("\n".join(problems[:40]))
    sys.exit(1 if problems else 0)


main()
