"""Checks promisefs_files.py against a mount, with stand-ins for the four file managers, and with the libraries of those that are
installed (gir1.2-nautilus-4.0, gir1.2-nemo-3.0, gir1.2-caja-2.0, gir1.2-thunarx-3.0).

usage: check_files.py MOUNT [MANAGER]     `here.txt` on it is here, `there.txt` a placeholder, `folder` a folder
MANAGER: only this one, with its library.
"""
import importlib.util
import os
import subprocess
import sys
import tempfile
import types

MOUNT = sys.argv[1]
VERSIONS = {"Nautilus": "4.0", "Nemo": "3.0", "Caja": "2.0", "Thunarx": "3.0"}
# That of the distribution, which has gi.
PYTHON = "/usr/bin/python3"
# Nemo 5.6 aborts when one goes, as no file manager lets one go.
COLUMNS = []
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "promisefs_files.py")


class Stand:
    """An object of the file manager's that remembers how it was made."""

    def __init__(self, **values):
        self.values = values

    def connect(self, signal, method, *arguments):
        self.run = lambda: method(self, *arguments)

    def get_property(self, name):
        return self.values[name]

    def emit(self, signal):
        self.run()


class File:
    def __init__(self, path):
        self.path, self.emblems, self.attributes, self.asked_again = path, [], {}, 0

    def get_location(self):
        return types.SimpleNamespace(get_path=lambda: self.path)

    def get_name(self):
        return os.path.basename(self.path)

    def add_emblem(self, name):
        self.emblems.append(name)

    def add_string_attribute(self, name, value):
        self.attributes[name] = value

    def invalidate_extension_info(self):
        self.asked_again += 1


def stand_in(manager):
    module = types.ModuleType(f"gi.repository.{manager}")
    for name in ("InfoProvider", "MenuProvider", "ColumnProvider"):
        setattr(module, name, type(name, (), {}))
    module.Column = module.MenuItem = Stand
    module.OperationResult = types.SimpleNamespace(COMPLETE="complete")
    objects = types.ModuleType("gi.repository.GObject")
    objects.GObject = type("GObject", (), {})
    loop = types.ModuleType("gi.repository.GLib")
    loop.timeout_add = lambda *arguments: None
    loop.Error = type("Error", (Exception,), {})
    files = types.ModuleType("gi.repository.Gio")
    files.FileQueryInfoFlags = types.SimpleNamespace(NOFOLLOW_SYMLINKS=0)
    marks = types.SimpleNamespace(get_attribute_stringv=lambda name: ["emblem-web", "emblem-of-mine"])
    files.File = types.SimpleNamespace(new_for_path=lambda path: types.SimpleNamespace(query_info=lambda *words: marks))
    for name in ("gi", "gi.repository"):
        sys.modules.setdefault(name, types.ModuleType(name))
    for module in (module, objects, loop, files):
        sys.modules[module.__name__] = module


def load(manager):
    """As the file manager does, through a link in its own folder."""
    folder = os.path.join(tempfile.mkdtemp(), "thunarx-python" if manager == "Thunarx" else f"{manager.lower()}-python", "extensions")
    os.makedirs(folder)
    place = os.path.join(folder, "promisefs_files.py")
    os.symlink(SOURCE, place)
    specification = importlib.util.spec_from_file_location(f"files_{manager}", place)
    loaded = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(loaded)
    assert loaded.HOST == manager, loaded.HOST
    return loaded


def check(manager):
    loaded = load(manager)
    extension = loaded.PromiseFS()
    here, there, folder = (File(os.path.join(MOUNT, name)) for name in ("here.txt", "there.txt", "folder"))
    if manager == "Thunarx":
        written = []
        loaded.MARKS.write = lambda path, emblems: written.append((os.path.basename(path), emblems))
        known = {}
        assert loaded.MARKS.mark(MOUNT, known) and not loaded.MARKS.mark(MOUNT, known)
        assert ("here.txt", ["emblem-default"]) in written and ("there.txt", ["emblem-web"]) in written, written
        items = lambda files: extension.get_file_menu_items("window", files)     # noqa: E731
    else:
        kept = []
        loaded.Marks.write = staticmethod(lambda path, emblems: kept.append(emblems))
        for file in (here, there, folder):
            assert extension.update_file_info(file) == loaded.Manager.OperationResult.COMPLETE
        assert here.emblems == ["emblem-default"] and here.attributes == {"promisefs_state": "current"}, here.attributes
        assert there.emblems == ["emblem-web"], there.emblems
        # What Thunar left, where GVfs is asked for it, and what the state is now.
        assert all(emblems == ["emblem-of-mine"] for emblems in kept), kept
        assert loaded.TOLD.look() and there.asked_again == 0
        loaded.TOLD.files[there.path] = (there, "current")
        assert loaded.TOLD.look() and (here.asked_again, there.asked_again) == (0, 1)
        COLUMNS.extend(extension.get_columns())
        assert len(COLUMNS) >= 1
        window = [] if manager == "Nautilus" else ["window"]
        items = lambda files: extension.get_file_items(*window, files)     # noqa: E731
    labels = lambda files: [item.get_property("label") for item in items(files)]     # noqa: E731
    offered = labels([there])
    assert offered[0] == "Fetch" and "Free Up Space" not in offered and "Copy Reference" in offered, offered
    offered = labels([here])
    assert offered[0] == "Free Up Space" and "Fetch" not in offered, offered
    assert "Copy Reference" not in labels([here, there])
    assert labels([File("/etc/passwd")]) == [] and labels([here, File("/etc/passwd")]) == []
    assert loaded.state(there.path) == "placeholder", "asking has fetched it"
    started, copied = [], []
    loaded.subprocess = types.SimpleNamespace(
        DEVNULL=None, PIPE=None, SubprocessError=subprocess.SubprocessError, Popen=lambda words, **options: started.append(words),
        run=lambda words, **options: started.append(words) or types.SimpleNamespace(stdout=b"text\n"))
    loaded.copy = copied.append
    for label in ("Fetch", "Copy Reference"):
        next(item for item in items([there]) if item.get_property("label") == label).emit("activate")
    assert started == [["promisefs", "fetch", "--", there.path], ["promisefs", "bookmark", "create", "--", there.path]], started
    assert copied == ["text"], copied


def is_installed(manager):
    question = f"import gi; gi.require_version('{manager}', '{VERSIONS[manager]}')"
    return os.path.exists(PYTHON) and subprocess.run([PYTHON, "-c", question], stderr=subprocess.DEVNULL).returncode == 0


if len(sys.argv) > 2:
    import gi

    gi.require_version(sys.argv[2], VERSIONS[sys.argv[2]])
    check(sys.argv[2])
    os._exit(0)
else:
    for manager in VERSIONS:
        stand_in(manager)
        check(manager)
        if is_installed(manager):
            subprocess.run([PYTHON, os.path.abspath(__file__), MOUNT, manager], check=True)
            print(f"{manager}: with its own library")
