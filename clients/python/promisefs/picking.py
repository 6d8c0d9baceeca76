"""Lets a person pick documents. The picker is a process of its own: this one learns what was picked, and nothing more.

    for document in promisefs.pick("open", types=["public.text"]):
        print(document["path"])
"""
import json
import os
import subprocess

from .client import PromiseError


def pick(mode="open", sources=(), *, types=(), multiple=False, folders=False, start=None, name=None, app=None, plain=False,
         web=False, executable=None):
    """What was picked, as dictionaries with `path` and, where there are any, `bookmark` and `reference`; empty when the person
    cancelled. `mode` is open, import, move, export or create; `sources` are what is moved or exported. It is shown on the
    terminal, by lines (`plain`), or on a page (`web`)."""
    words = [executable or os.environ.get("PROMISEFS_EXECUTABLE", "promisefs"), "pick", "--json", "--mode", mode]
    for kind in types:
        words += ["--type", kind]
    for option, value in (("--at", start), ("--suggest", name), ("--app", app)):
        if value is not None:
            words += [option, value]
    words += [option for option, wanted in (("--multiple", multiple), ("--folders", folders), ("--plain", plain),
                                       ("--web", web)) if wanted]
    if sources:
        words += ["--", *sources]
    done = subprocess.run(words, stdout=subprocess.PIPE, check=False)
    if done.returncode == 1:
        return []
    if done.returncode:
        raise PromiseError(f"the picker ended with status {done.returncode}", exit_status=done.returncode)
    return json.loads(done.stdout)["picked"]
