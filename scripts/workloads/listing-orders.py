#!/usr/bin/env python3
"""Lists one folder in each order of `GET /v1/items/children`, compares that with Python's own sort, and says how long the first
window of each took. Usage: listing-orders.py MOUNT FOLDER [--count N] [--limit MS] [--cloud DIR]

Makes N documents in FOLDER of the mount, of several sizes, times, types and tags; with --cloud in the folder that is the storage, and
without tags: none is sent or fetched then. With --limit it is a fault when a window takes
longer. Ends with status 1 when it found something."""
import argparse
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../clients/python"))
import promisefs  # noqa: E402

arguments = argparse.ArgumentParser()
arguments.add_argument("mount")
arguments.add_argument("folder")
arguments.add_argument("--count", type=int, default=3000)
arguments.add_argument("--limit", type=float)
arguments.add_argument("--cloud")
arguments = arguments.parse_args()

ENDS = {".txt": "public.plain-text", ".png": "public.png", ".pdf": "com.adobe.pdf", "": "public.data"}
TAGS = [b"", b"blue", b"red"]
chance = random.Random(1)
shown = os.path.join(arguments.mount, arguments.folder)
place = os.path.join(arguments.cloud, arguments.folder) if arguments.cloud else shown
os.makedirs(place, exist_ok=True)
items = {}
for number in range(arguments.count):
    end = chance.choice(list(ENDS))
    # The first sixteen bytes say nothing of the order of some.
    name = f"{chance.choice(['a common beginning ', 'B', ''])}{chance.randrange(10**9)}-{number}{end}"
    is_folder = number % 50 == 0
    path = os.path.join(place, name)
    size, date, tag = chance.randrange(300), chance.randrange(10**9), chance.choice(TAGS)
    if is_folder:
        os.mkdir(path)
    else:
        with open(path, "wb") as file:
            file.write(b"x" * size)
    tag = b"" if arguments.cloud else tag
    if tag:
        os.setxattr(path, "user.xdg.tags", tag)
    os.utime(path, (date, date))
    kind = "public.folder" if is_folder else ENDS[end]
    items[name] = dict(folder=is_folder, size=0 if is_folder else size, date=date, tags=tag, kind=kind.encode())
domain, _ = promisefs.locate(shown)
domain.sync(wait=True)
os.listdir(shown)
names = sorted(name for name in items if not items[name]["folder"])
if not arguments.cloud:
    domain._call("POST", "items/evict", {"paths": [f"/{arguments.folder}/{name}".replace(" ", "%20") for name in names[::3]]})
for name in items:
    items[name]["state"] = os.getxattr(os.path.join(shown, name), "user.promisefs.state")
    items[name]["name"] = ""

problems = 0
for key in ["name", "date", "size", "kind", "state", "tags"]:
    for way in ["", "-"]:
        # Another part of the list, so that no order is known.
        question = f"items/children?path=/{arguments.folder}&sort={way}{key}&limit=200"
        start = time.monotonic()
        first = domain._call("GET", question)
        took = (time.monotonic() - start) * 1000
        shown = [item["path"] for item in first["items"]]
        for offset in range(200, first["total"], 1000):
            part = domain._call("GET", question.replace("limit=200", f"limit=1000&offset={offset}"))
            shown += [item["path"] for item in part["items"]]
        shown = [os.path.basename(path) for path in shown]
        wanted = sorted(items, key=lambda name: (items[name][key], name.lower()), reverse=way == "-")
        wanted = [name for name in wanted if items[name]["folder"]] + [name for name in wanted if not items[name]["folder"]]
        wrong = "" if shown == wanted else ", WRONG"
        slow = ", SLOW" if arguments.limit and took > arguments.limit else ""
        problems += bool(wrong) + bool(slow)
        if wrong:
            index = next((i for i, pair in enumerate(zip(shown, wanted)) if pair[0] != pair[1]), len(shown))
            print(f"  at {index} of {len(shown)}: {shown[index:index + 2]}, not {wanted[index:index + 2]}")
        print(f"{way}{key}: {took:.0f} ms for the first 200 of {first['total']}{wrong}{slow}", flush=True)
sys.exit(1 if problems else 0)
