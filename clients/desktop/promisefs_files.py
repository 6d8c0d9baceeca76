"""Emblems, a column and actions of PromiseFS in Nautilus, Nemo and Caja.

One file for the three: each loads it from its own folder of extensions (`nautilus-python/extensions` and the like, below
/usr/share or $XDG_DATA_HOME), and so it knows who it works for. What it shows comes from the virtual attribute
`user.promisefs.state` alone, which the index answers: looking at a folder fetches nothing. Actions are commands of
`promisefs`, started and not waited for.

PROMISEFS_EMBLEM_LOG=FILE writes down what was asked.
"""
import importlib
import os
import shutil
import subprocess

EMBLEMS = {
    "placeholder": "emblem-web", "partial": "emblem-synchronizing", "current": "emblem-default",
    "modified": "emblem-synchronizing", "uploading": "emblem-synchronizing", "conflicted": "emblem-important",
    "error": "emblem-unreadable", "excluded": "emblem-system",
}
# What is offered: the label, the words of the command, and of which states of a file it makes sense; of folders always.
ACTIONS = [
    ("Fetch", ["fetch"], {"placeholder", "partial"}),
    ("Free Up Space", ["evict"], {"current", "partial"}),
    ("Always Keep Here", ["pin"], None),
    ("Keep Here No Longer", ["unpin"], None),
]
# Shown as text, where there is a program for that.
QUESTIONS = [("Versions", ["versions"]), ("Conflicts", ["conflicts"])]
LOG = os.environ.get("PROMISEFS_EMBLEM_LOG")


def host():
    """`Nautilus`, `Nemo` or `Caja`: by the folder that this is loaded from, else by the process."""
    for name in ("Nautilus", "Nemo", "Caja"):
        if f"/{name.lower()}-python/" in os.path.abspath(__file__):
            return name
    try:
        with open("/proc/self/comm") as file:
            process = file.read()
    except OSError:
        process = ""
    return next((name for name in ("Nemo", "Caja") if name.lower() in process), "Nautilus")


HOST = host()
GObject = importlib.import_module("gi.repository.GObject")
Manager = importlib.import_module(f"gi.repository.{HOST}")


def note(*words):
    if LOG:
        with open(LOG, "a") as log:
            print(*words, file=log)


def state(path):
    """Nil where it is not ours. Never follows a link, and never opens anything."""
    try:
        return os.getxattr(path, "user.promisefs.state", follow_symlinks=False).decode() if path else None
    except OSError:
        return None


def path_of(file):
    location = file.get_location()
    return location.get_path() if location else None


def commands(paths):
    """The actions for a selection: label and words of a command."""
    states = {path: state(path) for path in paths}
    if not paths or any(found is None for found in states.values()):
        return []
    found = []
    for label, words, wanted in ACTIONS:
        chosen = [path for path in paths if wanted is None or states[path] in wanted or os.path.isdir(path)]
        if chosen:
            found.append((label, ["promisefs", *words, "--", *chosen]))
    if len(paths) == 1 and os.path.isfile(paths[0]) and shutil.which("zenity"):
        for label, words in QUESTIONS:
            shown = '"$@" 2>&1 | zenity --text-info --width=700 --height=400 --title="$TITLE"'
            found.append((label, ["env", f"TITLE={label}", "sh", "-c", shown, "sh", "promisefs", *words, "--", paths[0]]))
    return found


class PromiseFS(GObject.GObject, Manager.InfoProvider, Manager.MenuProvider, Manager.ColumnProvider):
    def get_columns(self):
        return (
            Manager.Column(
                name="PromiseFS::state", attribute="promisefs_state", label="Sync State",
                description="Whether the content is here, and known to the provider"),
        )

    def update_file_info(self, file):
        found = state(path_of(file))
        if found:
            if found in EMBLEMS:
                file.add_emblem(EMBLEMS[found])
            file.add_string_attribute("promisefs_state", found)
        note("info", file.get_name(), found)
        return Manager.OperationResult.COMPLETE

    def get_file_items(self, *arguments):
        """Nautilus 43 gives the files; the others a window first."""
        files = arguments[-1]
        items = []
        for number, (label, words) in enumerate(commands([path_of(file) for file in files])):
            item = Manager.MenuItem(name=f"PromiseFS::{number}", label=label, tip="", icon="")
            item.connect("activate", self.act, words, files)
            items.append(item)
        note("menu", len(items))
        return items

    def get_background_items(self, *arguments):
        return []

    def act(self, menu, words, files):
        note("run", *words)
        try:
            subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=True)
        except OSError as error:
            note("failed", error)
        for file in files:
            file.invalidate_extension_info()
