#!/usr/bin/env python3
"""Has file managers show a folder of a mount: emblems are those of the states, and nothing is fetched by looking. In Thunar the
actions are clicked, too; Nautilus, Nemo and Caja are looked at with --all, where they are installed.

usage: emblems-in-a-file-manager.py --executable PROMISEFS [--all] [--folder DIR] [--screenshots DIR]

Needs thunar, thunarx-python, gvfs, Xvfb, xdotool, gio and dbus-daemon. Exit status 1 when an emblem is another one, an action does
something else, or a byte was fetched that nobody asked for.
"""
import argparse, glob, importlib.util, json, os, pathlib, shutil, subprocess, sys, tempfile, time, types

from domain import Failed, Mount

HERE = os.path.dirname(os.path.abspath(__file__))
specification = importlib.util.spec_from_file_location("desktop", HERE + "/thumbnails-in-a-file-manager.py")
desktop_module = importlib.util.module_from_spec(specification)
specification.loader.exec_module(desktop_module)
desktop_module.SCREEN = "1000x700x24"


class Thunar:
    def __init__(self, desktop, mount):
        self.desktop, self.mount = desktop, mount
        extensions = pathlib.Path(desktop.folder, "share/thunarx-python/extensions")
        extensions.mkdir(parents=True)
        (extensions / "promisefs_files.py").symlink_to(os.path.join(HERE, "../../clients/desktop/promisefs_files.py"))
        self.log = desktop.folder + "/emblems.log"
        commands = desktop.folder + "/bin"
        os.makedirs(commands)
        os.symlink(mount.executable, commands + "/promisefs")
        desktop.environment.update(
            PROMISEFS_EMBLEM_LOG=self.log, PATH=commands + ":/usr/bin:/usr/sbin:/bin", GIO_USE_VFS="gvfs",
            PYTHONDONTWRITEBYTECODE="1")

    def start(self, folder):
        self.child = self.desktop.start("thunar", folder)
        self.window = None

        def shown():
            found = subprocess.run(["xdotool", "search", "--onlyvisible", "--class", "thunar"], env=self.desktop.environment,
                                   capture_output=True, text=True).stdout.split()
            self.window = found[-1] if found else None
            return found
        self.desktop.wait(60, shown, "Thunar shows no window")
        for words in (["windowmove", self.window, "0", "0"], ["windowsize", self.window, "900", "600"],
                      ["windowfocus", self.window]):
            self.x(*words)

    def x(self, *words):
        subprocess.run(["xdotool", *words], env=self.desktop.environment, check=False)

    def noted(self):
        return pathlib.Path(self.log).read_text().splitlines() if os.path.exists(self.log) else []

    def emblems(self, name):
        path = os.path.join(self.mount.top, name)
        done = subprocess.run(["gio", "info", "-n", "-a", "metadata::emblems", path], env=self.desktop.environment,
                              capture_output=True, text=True)
        return [line.split("[", 1)[1].rstrip("]") for line in done.stdout.splitlines() if "metadata::emblems" in line]

    def item(self, name):
        path = os.path.join(self.mount.top, name)
        return json.loads(self.mount.run("info", "--json", path).splitlines()[0])

    def choose(self, name, label):
        """Selects a file by typing its name, opens its menu, and goes to the item with this label, from the end."""
        self.x("windowfocus", self.window)
        self.x("key", "Escape")
        time.sleep(0.5)
        self.x("type", "--delay", "80", name)
        time.sleep(1)
        self.x("key", "Escape")
        time.sleep(0.5)
        before = len(self.noted())
        self.x("key", "Menu")
        self.desktop.wait(20, lambda: any(line.startswith("menu ") for line in self.noted()[before:]), "there is no menu")
        time.sleep(1)
        labels = [label for label, _ in self.offers(name)]
        for _ in range(1 + len(labels) - labels.index(label)):
            self.x("key", "Up")
            time.sleep(0.1)
        self.x("key", "Return")
        self.desktop.wait(20, lambda: any(line.startswith("run ") for line in self.noted()[before:]), f"'{label}' runs nothing")

    def offers(self, name):
        """What the extension offers for a file."""
        if not hasattr(self, "extension"):
            sys.modules["gi"] = types.SimpleNamespace(require_version=lambda *words: None)
            sys.modules["gi.repository"] = types.SimpleNamespace()
            sys.modules["gi.repository.Nautilus"] = types.SimpleNamespace(
                **{name: type(name, (), {}) for name in ("InfoProvider", "MenuProvider", "ColumnProvider")})
            sys.modules["gi.repository.GObject"] = types.SimpleNamespace(GObject=type("GObject", (), {}))
            loader = importlib.util.spec_from_file_location("files", HERE + "/../../clients/desktop/promisefs_files.py")
            self.extension = importlib.util.module_from_spec(loader)
            loader.loader.exec_module(self.extension)
        return self.extension.commands([os.path.join(self.mount.top, name)])


def look(program, words, mount, desktop, screenshot):
    """Has one of the others show the folder, and reads what its extension was asked and said."""
    extensions = pathlib.Path(desktop.folder, f"share/{program}-python/extensions")
    extensions.mkdir(parents=True)
    (extensions / "promisefs_files.py").symlink_to(os.path.join(HERE, "../../clients/desktop/promisefs_files.py"))
    log = f"{desktop.folder}/{program}.log"
    desktop.environment["PROMISEFS_EMBLEM_LOG"] = log
    child = desktop.start(program, *words, mount.top)
    try:
        said = lambda: pathlib.Path(log).read_text().splitlines() if os.path.exists(log) else []   # noqa: E731
        for line in ("info here.txt current", "info there.txt placeholder"):
            desktop.wait(60, lambda: line in said(), f"{program} was not told '{line}'")
        time.sleep(3)
        screenshot(program)
    finally:
        desktop.stop(child)
    fetched = mount.status()["bytesFetched"]
    if fetched != len("here.txt"):
        raise Failed(f"{program}: {fetched} bytes were fetched by looking")
    print(f"{program}: emblems are right, and nothing was fetched")


def check(thunar, desktop, screenshot):
    expect = lambda condition, sentence: desktop.wait(30, condition, sentence)   # noqa: E731
    thunar.start(thunar.mount.top)
    for name, emblem in (("here.txt", "emblem-default"), ("there.txt", "emblem-web")):
        expect(lambda: thunar.emblems(name) == [emblem], f"{name} has not {emblem}")
    time.sleep(3)
    screenshot("shown")
    fetched = thunar.mount.status()["bytesFetched"]
    if fetched != len("here.txt"):
        raise Failed(f"{fetched} bytes were fetched by looking")
    thunar.choose("there.txt", "Fetch")
    expect(lambda: thunar.item("there.txt")["state"] == "current", "'Fetch' has not fetched")
    expect(lambda: thunar.emblems("there.txt") == ["emblem-default"], "the emblem is still the old one")
    thunar.choose("here.txt", "Free Up Space")
    expect(lambda: thunar.item("here.txt")["state"] == "placeholder", "'Free Up Space' has freed nothing")
    expect(lambda: thunar.emblems("here.txt") == ["emblem-web"], "the emblem is still the old one")
    pin = thunar.item("there.txt")["pin"]
    thunar.choose("there.txt", "Always Keep Here")
    expect(lambda: thunar.item("there.txt")["pin"] != pin, "'Always Keep Here' has pinned nothing")
    thunar.choose("there.txt", "Keep Here No Longer")
    expect(lambda: thunar.item("there.txt")["pin"] == pin, "'Keep Here No Longer' has not unpinned")
    thunar.choose("there.txt", "Copy Reference")
    time.sleep(1)
    text = subprocess.run(["xclip", "-selection", "clipboard", "-o"], env=desktop.environment, capture_output=True, text=True,
                          timeout=20).stdout
    if thunar.mount.run("bookmark", "resolve", text).strip() != thunar.mount.top + "/there.txt":
        raise Failed(f"what was copied leads nowhere: {text!r}")
    for label in ("Versions", "Conflicts") if shutil.which("zenity") else ():
        thunar.choose("there.txt", label)
        expect(lambda: subprocess.run(["xdotool", "search", "--onlyvisible", "--name", label], env=desktop.environment,
                                      capture_output=True).stdout, f"'{label}' shows no window")
        time.sleep(1)
        screenshot(label.lower())
        subprocess.run(["xdotool", "search", "--name", label, "windowclose"], env=desktop.environment, check=False)
    time.sleep(2)
    screenshot("afterwards")
    fetched = thunar.mount.status()["bytesFetched"]
    if fetched != len("here.txt" + "there.txt"):
        raise Failed(f"{fetched} bytes were fetched in all")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--executable", required=True)
    parser.add_argument("--folder", default="/var/tmp")
    parser.add_argument("--screenshots")
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    for name in ("thunar", "Xvfb", "xdotool", "gio", "xclip", "dbus-daemon"):
        if not shutil.which(name):
            sys.exit(f"'{name}' is missing")
    folder = tempfile.mkdtemp(prefix="emblems-", dir=options.folder)
    mount = Mount(options.executable, folder + "/domain", name="emblems")
    desktop = desktop_module.Desktop(folder)
    # The Python inside a file manager takes the first one of the path for its own.
    desktop.environment["PATH"] = "/usr/bin:/usr/sbin:/bin"
    # Its programs find the daemon, and its daemons the folders they want.
    desktop.environment["XDG_RUNTIME_DIR"] = mount.environment["XDG_RUNTIME_DIR"]

    def screenshot(name):
        if options.screenshots:
            desktop.screenshot(os.path.join(options.screenshots, name + ".png"))

    try:
        for name in ("here.txt", "there.txt"):
            pathlib.Path(mount.cloud, name).write_text(name)
        os.mkdir(mount.cloud + "/folder")
        mount.mount()
        pathlib.Path(mount.top, "here.txt").read_text()
        for program, words in (("caja", ["--no-desktop"]), ("nemo", []), ("nautilus", [])):
            plugin = glob.glob(f"/usr/lib/*/{program}/extensions-*/lib{program}-python.so")
            if options.all and shutil.which(program) and plugin:
                look(program, words, mount, desktop, screenshot)
        check(Thunar(desktop, mount), desktop, screenshot)
        print("Thunar: emblems and actions are right")
    except Failed as problem:
        screenshot("failed")
        sys.exit(f"{problem}")
    finally:
        desktop.end()
        mount.clean_up()
        shutil.rmtree(folder, ignore_errors=True)


main()
