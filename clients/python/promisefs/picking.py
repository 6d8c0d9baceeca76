"""Lets a person pick documents. The picker is a process of its own: this one learns what was picked, and nothing more.

    for document in promisefs.pick("open", types=["public.text"]):
        print(document["path"])
"""
import json
import os
import subprocess
import urllib.parse

from .client import Domain, PromiseError


def pick(mode="open", sources=(), *, types=(), multiple=False, folders=False, start=None, name=None, app=None, plain=False,
         web=False, executable=None):
    """What was picked, as dictionaries with `path` and, where there are any, `bookmark` and `reference`; empty when the person
    cancelled. `mode` is open, import, move, export or create; `sources` are what is moved or exported. It is shown on the
    terminal, by lines (`plain`), or on a page (`web`). An import goes when this process ends. Inside the sandbox of an
    application the person is asked outside of it, and what is picked is in its view."""
    view, socket = os.environ.get("PROMISEFS_VIEW"), os.environ.get("PROMISEFS_SOCKET")
    if view and socket:
        return _pick_outside(view, socket, mode, sources, types, multiple, folders, name)
    words = [executable or os.environ.get("PROMISEFS_EXECUTABLE", "promisefs"), "pick", "--json", "--mode", mode]
    for kind in types:
        words += ["--type", kind]
    for option, value in (("--at", start), ("--suggest", name), ("--app", app)):
        if value is not None:
            words += [option, value]
    words += [option for option, wanted in (("--multiple", multiple), ("--folders", folders), ("--plain", plain),
                                       ("--web", web)) if wanted]
    if mode == "import":
        words += ["--while", str(os.getpid())]
    if sources:
        words += ["--", *sources]
    done = subprocess.run(words, stdout=subprocess.PIPE, check=False)
    if done.returncode == 1:
        return []
    if done.returncode:
        raise PromiseError(f"the picker ended with status {done.returncode}", exit_status=done.returncode)
    return json.loads(done.stdout)["picked"]


def _pick_outside(view, socket, mode, sources, types, multiple, folders, name):
    sources = [os.fsdecode(source) for source in sources]
    for source in sources:
        if not os.path.abspath(source).startswith(view + "/"):
            raise PromiseError(f"{source} is not in {view}", exit_status=2)
    request = {"mode": mode, "types": list(types), "multiple": multiple, "folders": folders,
               "sources": [urllib.parse.quote(os.fsencode(os.path.abspath(source)[len(view):])) for source in sources]}
    if name is not None:
        request["name"] = name
    answer = Domain(socket, timeout=24 * 3600).pick(request)
    paths = [os.fsdecode(urllib.parse.unquote_to_bytes(found["pathBytes"])) for found in answer["picked"]]
    return [{"path": os.path.join(view, path.lstrip("/"))} for path in paths]
