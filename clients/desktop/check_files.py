"""Checks promisefs_files.py against a mount, with stand-ins for the three file managers.

usage: check_files.py MOUNT     `here.txt` on it is here, `there.txt` a placeholder, `folder` a folder
"""
import importlib.util
import os
import sys
import tempfile
import types

MOUNT = sys.argv[1]
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "promisefs_files.py")


class Stand:
    """An object of the file manager's that remembers how it was made."""

    def __init__(self, **values):
        self.values = values

    def connect(self, signal, method, *arguments):
        self.run = lambda: method(self, *arguments)


class File:
    def __init__(self, path):
        self.path, self.emblems, self.attributes = path, [], {}

    def get_location(self):
        return types.SimpleNamespace(get_path=lambda: self.path)

    def get_name(self):
        return os.path.basename(self.path)

    def add_emblem(self, name):
        self.emblems.append(name)

    def add_string_attribute(self, name, value):
        self.attributes[name] = value

    def invalidate_extension_info(self):
        pass


def load(manager):
    """As the file manager does, through a link in its own folder."""
    module = types.ModuleType(f"gi.repository.{manager}")
    for name in ("InfoProvider", "MenuProvider", "ColumnProvider"):
        setattr(module, name, type(name, (), {}))
    module.Column = module.MenuItem = Stand
    module.OperationResult = types.SimpleNamespace(COMPLETE="complete")
    objects = types.ModuleType("gi.repository.GObject")
    objects.GObject = type("GObject", (), {})
    for name in ("gi", "gi.repository"):
        sys.modules.setdefault(name, types.ModuleType(name))
    sys.modules["gi.repository.GObject"], sys.modules[f"gi.repository.{manager}"] = objects, module
    folder = os.path.join(tempfile.mkdtemp(), f"{manager.lower()}-python", "extensions")
    os.makedirs(folder)
    place = os.path.join(folder, "promisefs_files.py")
    os.symlink(SOURCE, place)
    specification = importlib.util.spec_from_file_location(f"files_{manager}", place)
    loaded = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(loaded)
    assert loaded.HOST == manager, loaded.HOST
    return loaded


def main():
    for manager in ("Nautilus", "Nemo", "Caja"):
        loaded = load(manager)
        extension = loaded.PromiseFS()
        here, there, folder = (File(os.path.join(MOUNT, name)) for name in ("here.txt", "there.txt", "folder"))
        for file in (here, there, folder):
            assert extension.update_file_info(file) == "complete"
        assert here.emblems == ["emblem-default"] and here.attributes == {"promisefs_state": "current"}, here.attributes
        assert there.emblems == ["emblem-web"], there.emblems
        window = [] if manager == "Nautilus" else ["window"]
        labels = [item.values["label"] for item in extension.get_file_items(*window, [there])]
        assert labels[0] == "Fetch" and "Free Up Space" not in labels, labels
        labels = [item.values["label"] for item in extension.get_file_items(*window, [here])]
        assert labels[0] == "Free Up Space" and "Fetch" not in labels, labels
        assert extension.get_file_items(*window, [File("/etc/passwd")]) == []
        assert extension.get_file_items(*window, [here, File("/etc/passwd")]) == []
        assert len(extension.get_columns()) == 1
        assert loaded.state(there.path) == "placeholder", "asking has fetched it"
        action = next(i for i in extension.get_file_items(*window, [there]) if i.values["label"] == "Fetch")
        loaded.subprocess.Popen = lambda words, **options: started.append(words)
        started = []
        action.run()
        assert started == [["promisefs", "fetch", "--", there.path]], started


main()
