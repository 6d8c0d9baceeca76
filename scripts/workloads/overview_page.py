#!/usr/bin/env python3
"""Looks after a domain by the page of `promisefs web`: compares and resolves a conflict, evicts. Usage: overview_page.py ADDRESS MOUNT"""
import http.client
import json
import sys
import urllib.parse

url = urllib.parse.urlsplit(sys.argv[1])
here = f"http://127.0.0.1:{url.port}"


def ask(path, body=None, key="", expected=200):
    connection = http.client.HTTPConnection("127.0.0.1", url.port, timeout=30)
    headers = {"x-promisefs-key": key, "origin": here, "content-type": "application/json"}
    connection.request("GET" if body is None else "POST", path, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    content = answer.read()
    assert answer.status == expected, (path, body, answer.status, content)
    return json.loads(content) if expected == 200 else content


ask("/overview", expected=403)
key = ask("/session", {"token": url.fragment})["key"]
domains = ask("/overview", key=key)["domains"]
domain = next(domain for domain in domains if domain["mountPoint"] == sys.argv[2])
assert domain["status"]["connection"] == "online" and domain["status"]["conflicts"] == 1, domain
name = domain["name"]
versions = ask(f"/conflicts?domain={name}", key=key)["documents"][0]["versions"]
other = next(version for version in versions if version["kind"] == "conflict")
choice = {"domain": name, "path": versions[0]["pathBytes"], "version": other["identifier"]}
lines = {(line["kind"], line["text"]) for line in ask("/difference", choice, key=key)["lines"]}
assert ("same", "one") in lines and {("cut", "here"), ("add", "there")} <= lines or \
    {("cut", "there"), ("add", "here")} <= lines, lines
states = [version["state"] for version in versions if version.get("state")]
# What was decided on other versions than there are now is refused.
ask("/resolve", choice | {"action": "version", "states": ["0"]}, key=key, expected=409)
ask("/resolve", choice | {"action": "version", "states": states}, key=key)
kept = ask(f"/storage?domain={name}&order=largest", key=key)["items"]
assert kept[0]["path"].endswith("large.bin") and kept[0]["bytes"] >= 300_000, kept
folders = ask(f"/storage?domain={name}&order=folders", key=key)["items"]
assert folders[0]["path"] == "/" and folders[0]["count"] >= 2 and folders[0]["bytes"] >= kept[0]["bytes"], folders
fetched = {line["program"]: line for line in domain["status"]["hydrations"]}
assert fetched["cat"]["fetches"] >= 2 and fetched["cat"]["bytes"] >= 300_000, fetched
done = ask("/item", {"domain": name, "path": kept[0]["pathBytes"], "action": "evict"}, key=key)
assert done["text"] == "evicted", done
ask("/item", {"domain": name, "path": "/nothing", "action": "evict"}, key=key, expected=409)
ask("/item", {"domain": "nowhere", "path": "/", "action": "evict"}, key=key, expected=409)
