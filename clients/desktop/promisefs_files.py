"""Emblems and actions of PromiseFS in Nautilus, Nemo, Caja and Thunar; in the first three a column, too.

One file for the four: each loads it from its own folder of extensions (`nautilus-python/extensions` and the like, below
/usr/share or $XDG_DATA_HOME), and so it knows who it works for. What it shows comes from the virtual attribute
`user.promisefs.state` alone, which the index answers: looking at a folder fetches nothing. Actions are commands of
`promisefs`, started and not waited for.

Thunar asks no extension for emblems, but shows those that GVfs keeps for a file (`metadata::emblems`): they are written there for
the folders that are shown, each second where a state has changed.

PROMISEFS_EMBLEM_LOG=FILE writes down what was asked.
"""
import contextlib
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
# What another program, or a person, finds the item again by, whatever it is called then.
REFERENCE = "Copy Reference"
# Shown as text, where there is a program for that.
QUESTIONS = [("Versions", ["versions"]), ("Conflicts", ["conflicts"])]
LOG = os.environ.get("PROMISEFS_EMBLEM_LOG")


# Of a folder whose emblems are kept by GVfs; and of files that others are told of.
MARKED_MAX, TOLD_MAX, MARK_MILLISECONDS, RELOAD_MILLISECONDS = 2000, 500, 1000, 200


def host():
    """`Nautilus`, `Nemo`, `Caja` or `Thunarx`: by the folder that this is loaded from, else by the process."""
    for name in ("Nautilus", "Nemo", "Caja", "Thunarx"):
        if f"/{name.lower()}-python/" in os.path.abspath(__file__):
            return name
    try:
        with open("/proc/self/comm") as file:
            process = file.read()
    except OSError:
        process = ""
    if "thunar" in process.lower():
        return "Thunarx"
    return next((name for name in ("Nemo", "Caja") if name.lower() in process), "Nautilus")


HOST = host()
if HOST == "Nautilus":
    # Whoever has several versions of it gets the one that this is for.
    with contextlib.suppress(AttributeError, ValueError):
        importlib.import_module("gi").require_version("Nautilus", "4.0")
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
    if len(paths) == 1:
        found.append((REFERENCE, ["promisefs", "bookmark", "create", "--", paths[0]]))
    if len(paths) == 1 and os.path.isfile(paths[0]) and shutil.which("zenity"):
        for label, words in QUESTIONS:
            shown = '"$@" 2>&1 | zenity --text-info --width=700 --height=400 --title="$TITLE"'
            found.append((label, ["env", f"TITLE={label}", "sh", "-c", shown, "sh", "promisefs", *words, "--", paths[0]]))
    return found


def copy(text):
    """To the clipboard of the file manager's own toolkit; of another version's, or none, it would bring the process down."""
    try:
        for name in ("Gdk", "Gtk"):
            importlib.import_module("gi").require_version(name, "4.0" if HOST == "Nautilus" else "3.0")
        Gdk, Gtk = (importlib.import_module(f"gi.repository.{name}") for name in ("Gdk", "Gtk"))
    except (AttributeError, ImportError, ValueError):
        return copy_by_program(text)
    if hasattr(Gdk.Display, "get_clipboard"):
        value = GObject.Value(GObject.TYPE_STRING, text)
        Gdk.Display.get_default().get_clipboard().set_content(Gdk.ContentProvider.new_for_value(value))
    else:
        Gtk.Clipboard.get(Gdk.SELECTION_CLIPBOARD).set_text(text, -1)


def copy_by_program(text):
    for words in (["wl-copy"], ["xclip", "-selection", "clipboard"]):
        if shutil.which(words[0]):
            child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True)
            child.communicate(text.encode(), timeout=10)
            if child.returncode == 0:
                return
    note("failed", "there is no clipboard")


class Marks:
    """Emblems of GVfs, for Thunar: of the folders that its windows show."""

    def __init__(self):
        self.known = {}
        self.GLib = importlib.import_module("gi.repository.GLib")
        self.GLib.timeout_add(MARK_MILLISECONDS, self.look)

    def look(self):
        known = {}
        for window in importlib.import_module("gi.repository.Gtk").Window.list_toplevels():
            if window.find_property("current-directory"):
                folder = window.get_property("current-directory")
                path = path_of(folder) if folder else None
                if path and state(path) is not None:
                    known[path] = self.known.get(path, {})
                    if self.mark(path, known[path]):
                        # It looks at emblems when it shows a folder anew.
                        self.GLib.timeout_add(RELOAD_MILLISECONDS, lambda window=window: window.emit("reload", True) and False)
        self.known = known
        return True

    def mark(self, folder, known):
        """True when something is another than before."""
        try:
            with os.scandir(folder) as entries:
                paths = [entry.path for entry, _ in zip(entries, range(MARKED_MAX))]
        except OSError:
            return False
        changed = {path: found for path in paths if known.get(path) != (found := state(path))}
        for path, found in changed.items():
            self.write(path, [EMBLEMS[found]] if found in EMBLEMS else [])
        known.update(changed)
        return bool(changed)

    @staticmethod
    def write(path, emblems):
        Gio = importlib.import_module("gi.repository.Gio")
        file, information = Gio.File.new_for_path(path), Gio.FileInfo()
        information.set_attribute_stringv("metadata::emblems", emblems)
        # Only the metadata: nothing of the file itself is touched.
        file.set_attributes_async(information, Gio.FileQueryInfoFlags.NOFOLLOW_SYMLINKS, 0, None, lambda *_: None)
        note("mark", path, *emblems)


class Told:
    """The files that a file manager has been told of last: it is told again where the state has changed, each second."""

    def __init__(self):
        self.files = {}
        self.GLib = importlib.import_module("gi.repository.GLib")
        self.GLib.timeout_add(MARK_MILLISECONDS, self.look)

    def tell(self, path, file, found):
        self.files.pop(path, None)
        if len(self.files) >= TOLD_MAX:
            del self.files[next(iter(self.files))]
        self.files[path] = (file, found)

    def look(self):
        for path, (file, known) in list(self.files.items()):
            found = state(path)
            if found is None:
                del self.files[path]
            elif found != known:
                self.files[path] = (file, found)
                file.invalidate_extension_info()
        return True


def forget_marks(path):
    """What Thunar had GVfs keep is old by now, and would be shown beside what is true."""
    Gio = importlib.import_module("gi.repository.Gio")
    GLib = importlib.import_module("gi.repository.GLib")
    try:
        found = Gio.File.new_for_path(path).query_info("metadata::emblems", Gio.FileQueryInfoFlags.NOFOLLOW_SYMLINKS, None)
        marks = found.get_attribute_stringv("metadata::emblems") or []
    except GLib.Error:  # GVfs is not there, or the file has gone.
        return
    kept = [mark for mark in marks if mark not in EMBLEMS.values()]
    if kept != list(marks):
        Marks.write(path, kept)


class Actions:
    def items(self, files):
        items = []
        for number, (label, words) in enumerate(commands([path_of(file) for file in files])):
            words_of_item = {"tooltip": "", "icon": ""} if HOST == "Thunarx" else {"tip": "", "icon": ""}
            item = Manager.MenuItem(name=f"PromiseFS::{number}", label=label, **words_of_item)
            item.connect("activate", self.act, words, files)
            items.append(item)
        note("menu", len(items))
        return items

    def act(self, menu, words, files):
        note("run", *words)
        try:
            if words[1:3] == ["bookmark", "create"]:
                # The index alone is asked.
                done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=10, check=True)
                copy(done.stdout.decode().strip())
            else:
                subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=True)
        except (OSError, subprocess.SubprocessError) as error:
            note("failed", error)
        for file in files:
            if hasattr(file, "invalidate_extension_info"):
                file.invalidate_extension_info()


if HOST == "Thunarx":
    MARKS = Marks()

    class PromiseFS(Actions, GObject.GObject, Manager.MenuProvider):
        def get_file_menu_items(self, window, files):
            return self.items(files)

        def get_folder_menu_items(self, window, folder):
            return []
else:
    TOLD = Told()

    class PromiseFS(Actions, GObject.GObject, Manager.InfoProvider, Manager.MenuProvider, Manager.ColumnProvider):
        def get_columns(self):
            return (
                Manager.Column(
                    name="PromiseFS::state", attribute="promisefs_state", label="Sync State",
                    description="Whether the content is here, and known to the provider"),
            )

        def update_file_info(self, file):
            path = path_of(file)
            found = state(path)
            if found:
                TOLD.tell(path, file, found)
                forget_marks(path)
                if found in EMBLEMS:
                    file.add_emblem(EMBLEMS[found])
                file.add_string_attribute("promisefs_state", found)
            note("info", file.get_name(), found)
            return Manager.OperationResult.COMPLETE

        def get_file_items(self, *arguments):
            """Nautilus 43 gives the files; the others a window first."""
            return self.items(arguments[-1])

        def get_background_items(self, *arguments):
            return []
