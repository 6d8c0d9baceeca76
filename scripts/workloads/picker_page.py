#!/usr/bin/env python3
"""Speaks to the page of `promisefs pick --web` as browsers and as attackers do. Usage: picker_page.py ADDRESS NAME"""
import http.client
import json
import sys
import urllib.parse

address, wanted = sys.argv[1:]
url = urllib.parse.urlsplit(address)
token, here = url.fragment, f"http://127.0.0.1:{url.port}"
JSON = {"content-type": "application/json"}


def ask(method, path, body=None, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", url.port, timeout=30)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, None if body is None else json.dumps(body), named)
    answer = connection.getresponse()
    return answer.status, answer.read(), dict((name.lower(), value) for name, value in answer.getheaders())


def expect(status, *arguments, **headers):
    got = ask(*arguments, **headers)
    assert got[0] == status, (status, arguments, headers, got)
    return got


# The page is nothing without its key, and is nobody's frame.
_, page, head = expect(200, "GET", "/")
assert token.encode() not in page
policy = head["content-security-policy"]
for rule in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "form-action 'none'", "base-uri 'none'",
             "frame-src 'self'"):
    assert rule in policy, policy
assert "unsafe" not in policy and "http" not in policy
assert head["x-frame-options"] == "DENY" and head["x-content-type-options"] == "nosniff"
assert head["cache-control"] == "no-store" and head["referrer-policy"] == "no-referrer"
assert "access-control-allow-origin" not in head and "set-cookie" not in head
for path in ("/state?after=-1", "/items?offset=0", "/thumbnail?domain=x&path=y", "/bye", "/" + token, "/pages"):
    expect(403, "GET", path)
# Another name of this address, another site, a form, a guess.
expect(403, "GET", "/", host=f"evil.example.com:{url.port}")
expect(403, "GET", "/", host=f"localhost:{url.port}")
expect(403, "POST", "/session", {"token": token}, origin="http://example.com", **JSON)
expect(403, "POST", "/session", {"token": token}, **JSON)
expect(403, "POST", "/session", {"token": token}, origin=here, content_type="text/plain")
expect(403, "POST", "/session", {"token": token[:-1] + "?"}, origin=here, **JSON)
expect(403, "POST", "/session", {"token": token}, origin=here, sec_fetch_site="cross-site", **JSON)
expect(404, "GET", "/frame/" + token)
expect(403, "OPTIONS", "/event", origin="http://example.com")
expect(405, "OPTIONS", "/event", origin=here)
# The page itself: once.
key = json.loads(expect(200, "POST", "/session", {"token": token}, origin=here, **JSON)[1])["key"]
expect(403, "POST", "/session", {"token": token}, origin=here, **JSON)
mine = {"x-promisefs-key": key}
expect(403, "GET", "/state?after=-1", x_promisefs_key=token)
expect(403, "GET", "/state?after=-1", host=f"evil.example.com:{url.port}", **mine)
expect(403, "POST", "/event", {"kind": "cancel"}, origin="null", **JSON, **mine)

state = json.loads(expect(200, "GET", "/state?after=-1", **mine)[1])
while not state["hasPlaces"]:
    state = json.loads(expect(200, "GET", f"/state?after={state['version']}", **mine)[1])
assert state["phase"] == "browsing" and state["folder"]["path"] == ""
_, rows, head = expect(200, "GET", "/items?offset=0&limit=100", **mine)
assert head["content-type"] == "application/json"
items = json.loads(rows)["items"]
assert any("<img" in item["name"] for item in items), "a name is text, whatever is in it"
_, script, _ = expect(200, "GET", "/page.js")
code = "\n".join(line for line in script.decode().splitlines() if not line.strip().startswith("//"))
for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "http://", "https://"):
    assert word not in code, word
expect(400, "POST", "/event", {"kind": "nonsense"}, origin=here, **JSON, **mine)
expect(400, "POST", "/event", {"kind": "enter", "item": {"domain": "x"}}, origin=here, **JSON, **mine)
expect(404, "GET", "/nowhere", **mine)
picked = next(item for item in items if item["name"] == wanted)
expect(200, "POST", "/event", {"kind": "confirm", "item": picked}, origin=here, **JSON, **mine)
while state["phase"] != "finished":
    state = json.loads(expect(200, "GET", f"/state?after={state['version']}", **mine)[1])
assert state["isPicked"]
expect(200, "GET", "/bye", **mine)
