#!/usr/bin/env python3
"""Picks by the page of a picker, as its script does.
Usage: pick_by_page.py ADDRESS [--choose CHOICE=OPTION]… [--mark NAME]… NAME|--cancel|--here|--look|--wait [FOLDER…]

--look ends as a browser that is killed when it has seen the page; --wait does nothing, as a person who has gone, until it is over."""
import http.client
import json
import sys
import urllib.parse

url = urllib.parse.urlsplit(sys.argv[1])
words, choices, marks = sys.argv[2:], [], []
while words[0] in ("--choose", "--mark"):
    if words[0] == "--mark":
        marks.append(words[1])
    else:
        choices.append([int(part) for part in words[1].split("=")])
    words = words[2:]
wanted, folders = words[0], words[1:]
own = {"content-type": "application/json", "origin": f"http://127.0.0.1:{url.port}"}


def ask(method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", url.port, timeout=60)
    connection.request(method, path, None if body is None else json.dumps(body), own)
    answer = connection.getresponse()
    text = answer.read()
    assert answer.status < 300, (method, path, answer.status, text)
    return json.loads(text or b"null")


own["x-promisefs-key"] = ask("POST", "/session", {"token": url.fragment})["key"]
state = ask("GET", "/state?after=-1")


def until(met):
    global state
    while not met(state):
        state = ask("GET", f"/state?after={state['version']}")


def items():
    return ask("GET", f"/items?generation={state['generation']}&offset=0&limit=500")["items"]


until(lambda now: now["hasPlaces"])
if wanted == "--look":
    items()
    sys.exit()
if wanted == "--wait":
    until(lambda now: now["phase"] == "finished")
    assert not state["isPicked"]
    sys.exit()
for folder in folders:
    before = state["generation"]
    ask("POST", "/event", {"kind": "enter", "item": next(item for item in items() if item["name"] == folder)})
    until(lambda now: now["generation"] != before)
for choice, option in choices:
    assert option < len(state["choices"][choice]["names"]), state["choices"]
    ask("POST", "/event", {"kind": "choose", "choice": choice, "option": option})
for name in marks:
    ask("POST", "/event", {"kind": "mark", "item": next(item for item in items() if item["name"] == name)})
if wanted == "--cancel":
    ask("POST", "/event", {"kind": "cancel"})
elif wanted == "--here":
    ask("POST", "/event", {"kind": "confirm"})
else:
    ask("POST", "/event", {"kind": "confirm", "item": next(item for item in items() if item["name"] == wanted)})
until(lambda now: now["phase"] == "finished" or now.get("message"))
assert state["phase"] == "finished", state
assert state["isPicked"] == (wanted != "--cancel"), state
ask("GET", "/bye")
