#!/usr/bin/env python3
"""Has file managers show a folder of a mount: emblems are those of the states, nothing is fetched by looking, and each action that
is clicked does what it says. In Thunar, and with --all in Caja, Nemo and Nautilus, where they are installed.

usage: emblems-in-a-file-manager.py --executable PROMISEFS [--all] [--only PROGRAM] [--folder DIR] [--screenshots DIR]

Needs thunar, thunarx-python, gvfs, Xvfb, xdotool, xclip, gio and dbus-daemon. Exit status 1 when an emblem is another one, an action
does something else, or a byte was fetched that nobody asked for.
"""
import argparse, glob, importlib.util, json, os, pathlib, shutil, subprocess, sys, tempfile, time, types

from domain import Failed, Mount

HERE = os.path.dirname(os.path.abspath(__file__))
specification = importlib.util.spec_from_file_location("desktop", HERE + "/thumbnails-in-a-file-manager.py")
desktop_module = importlib.util.module_from_spec(specification)
specification.loader.exec_module(desktop_module)
# Nautilus has long menus.
desktop_module.SCREEN = "1000x1000x24"


EMBLEMS = {"placeholder": "emblem-web", "current": "emblem-default"}


class FileManager:
    """One that asks the extension for emblems."""
    words = []
    # Until a menu is on the screen, which nobody tells.
    menu_seconds = 1

    def __init__(self, program, desktop, mount):
        self.program, self.desktop, self.mount = program, desktop, mount
        extensions = pathlib.Path(desktop.folder, f"share/{self.python}/extensions")
        extensions.mkdir(parents=True)
        (extensions / "promisefs_files.py").symlink_to(os.path.join(HERE, "../../clients/desktop/promisefs_files.py"))
        self.log = f"{desktop.folder}/{program}.log"
        commands = desktop.folder + "/bin"
        os.makedirs(commands, exist_ok=True)
        if not os.path.lexists(commands + "/promisefs"):
            os.symlink(mount.executable, commands + "/promisefs")
        desktop.environment.update(
            PROMISEFS_EMBLEM_LOG=self.log, PATH=commands + ":/usr/bin:/usr/sbin:/bin", GIO_USE_VFS="gvfs",
            PYTHONDONTWRITEBYTECODE="1")

    @property
    def python(self):
        return f"{self.program}-python"

    def start(self, folder):
        self.child = self.desktop.start(self.program, *self.words, folder)
        self.window = None

        def shown():
            found = subprocess.run(["xdotool", "search", "--onlyvisible", "--class", self.program],
                                   env=self.desktop.environment, capture_output=True, text=True).stdout.split()
            self.window = found[-1] if found else None
            return found
        self.desktop.wait(60, shown, f"{self.program} shows no window")
        for words in (["windowmove", self.window, "0", "0"], ["windowsize", self.window, "900", "600"],
                      ["windowfocus", self.window]):
            self.x(*words)

    def stop(self):
        self.desktop.stop(self.child)

    def x(self, *words):
        subprocess.run(["xdotool", *words], env=self.desktop.environment, check=False)

    def noted(self):
        return pathlib.Path(self.log).read_text().splitlines() if os.path.exists(self.log) else []

    def emblem(self, name):
        """What it was told last."""
        told = [line.split() for line in self.noted() if line.startswith(f"info {name} ")]
        return EMBLEMS.get(told[-1][2]) if told else None

    def select(self, name):
        self.x("key", "Escape")
        time.sleep(0.5)
        self.x("type", "--delay", "80", name)
        time.sleep(1)
        self.x("key", "Escape")
        time.sleep(0.5)

    def item(self, name):
        path = os.path.join(self.mount.top, name)
        return json.loads(self.mount.run("info", "--json", path).splitlines()[0])

    def choose(self, name, label):
        """Selects a file, opens its menu, and goes to the item with this label, from the end, where the properties are."""
        self.x("windowfocus", self.window)
        # Caja asks when something is selected.
        before = len(self.noted())
        self.select(name)
        self.x("key", "Menu")
        self.desktop.wait(20, lambda: any(line.startswith("menu ") for line in self.noted()[before:]), "there is no menu")
        time.sleep(self.menu_seconds)
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
            sys.modules["gi.repository.GLib"] = types.SimpleNamespace(timeout_add=lambda *words: 0)
            sys.modules["gi.repository.GObject"] = types.SimpleNamespace(GObject=type("GObject", (), {}))
            loader = importlib.util.spec_from_file_location("files", HERE + "/../../clients/desktop/promisefs_files.py")
            self.extension = importlib.util.module_from_spec(loader)
            loader.loader.exec_module(self.extension)
        return self.extension.commands([os.path.join(self.mount.top, name)])


class Caja(FileManager):
    words = ["--no-desktop"]


class Nautilus(FileManager):
    menu_seconds = 4

    def start(self, folder):
        # Where no graphics card draws, its turning wheel takes all the time there is, and it loads for ever.
        settings = pathlib.Path(self.desktop.folder, "config/gtk-4.0/settings.ini")
        settings.parent.mkdir(parents=True)
        settings.write_text("[Settings]\ngtk-enable-animations=0\n")
        self.desktop.environment["GSK_RENDERER"] = "cairo"
        super().start(folder)

    def select(self, name):
        """By its number: what is typed is searched for."""
        self.x("key", "Escape")
        time.sleep(0.5)
        # Beside all files, where no menu comes under the pointer: the keys are for the files then.
        self.x("mousemove", "265", "585", "click", "1")
        time.sleep(0.5)
        for key in ["Home"] + ["Right"] * sorted(os.listdir(self.mount.top)).index(name):
            self.x("key", key)
            time.sleep(0.3)


class Thunar(FileManager):
    """Asks no extension for emblems, but GVfs."""
    python = "thunarx-python"

    def emblem(self, name):
        path = os.path.join(self.mount.top, name)
        done = subprocess.run(["gio", "info", "-n", "-a", "metadata::emblems", path], env=self.desktop.environment,
                              capture_output=True, text=True)
        found = [line.split("[", 1)[1].rstrip("]") for line in done.stdout.splitlines() if "metadata::emblems" in line]
        return found[0] if found else None


def check(manager, desktop, screenshot):
    """From one file that is here and one that is not, to the same again."""
    mount, program = manager.mount, manager.program
    expect = lambda condition, sentence: desktop.wait(30, condition, f"{program}: {sentence}")   # noqa: E731
    before = mount.status()["bytesFetched"]
    fetched = lambda: mount.status()["bytesFetched"] - before   # noqa: E731
    manager.start(mount.top)
    for name, emblem in (("here.txt", "emblem-default"), ("there.txt", "emblem-web")):
        desktop.wait(60, lambda: manager.emblem(name) == emblem, f"{program}: {name} has not {emblem}")
    time.sleep(3)
    screenshot(f"{program}-shown")
    if fetched() != 0:
        raise Failed(f"{program}: {fetched()} bytes were fetched by looking")
    manager.choose("there.txt", "Fetch")
    expect(lambda: manager.item("there.txt")["state"] == "current", "'Fetch' has not fetched")
    expect(lambda: manager.emblem("there.txt") == "emblem-default", "the emblem of what was fetched is still the old one")
    manager.choose("here.txt", "Free Up Space")
    expect(lambda: manager.item("here.txt")["state"] == "placeholder", "'Free Up Space' has freed nothing")
    expect(lambda: manager.emblem("here.txt") == "emblem-web", "the emblem of what was freed is still the old one")
    pin = manager.item("there.txt")["pin"]
    manager.choose("there.txt", "Always Keep Here")
    expect(lambda: manager.item("there.txt")["pin"] != pin, "'Always Keep Here' has pinned nothing")
    manager.choose("there.txt", "Keep Here No Longer")
    expect(lambda: manager.item("there.txt")["pin"] == pin, "'Keep Here No Longer' has not unpinned")
    manager.choose("there.txt", "Copy Reference")
    time.sleep(1)
    text = subprocess.run(["xclip", "-selection", "clipboard", "-o"], env=desktop.environment, capture_output=True, text=True,
                          timeout=20).stdout
    if mount.run("bookmark", "resolve", text).strip() != mount.top + "/there.txt":
        raise Failed(f"{program}: what was copied leads nowhere: {text!r}")
    for label in ("Versions", "Conflicts") if shutil.which("zenity") else ():
        manager.choose("there.txt", label)
        expect(lambda: subprocess.run(["xdotool", "search", "--onlyvisible", "--name", label], env=desktop.environment,
                                      capture_output=True).stdout, f"'{label}' shows no window")
        time.sleep(1)
        screenshot(f"{program}-{label.lower()}")
        subprocess.run(["xdotool", "search", "--name", label, "windowclose"], env=desktop.environment, check=False)
    time.sleep(2)
    screenshot(f"{program}-afterwards")
    if fetched() != len("there.txt"):
        raise Failed(f"{program}: {fetched()} bytes were fetched in all")
    manager.stop()
    print(f"{program}: emblems and actions are right, and nothing else was fetched", flush=True)
    mount.run("evict", mount.top + "/there.txt")
    pathlib.Path(mount.top, "here.txt").read_text()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--executable", required=True)
    parser.add_argument("--folder", default="/var/tmp")
    parser.add_argument("--screenshots")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", help="one of the programs")
    options = parser.parse_args()
    for name in ("thunar", "Xvfb", "xdotool", "gio", "xclip", "dbus-daemon"):
        if not shutil.which(name):
            sys.exit(f"'{name}' is missing")
    folder = tempfile.mkdtemp(prefix="emblems-", dir=options.folder)
    mount = Mount(options.executable, folder + "/domain", name="emblems")
    desktop = desktop_module.Desktop(folder)
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
        if options.only in (None, "thunar"):
            check(Thunar("thunar", desktop, mount), desktop, screenshot)
        for program, kind in (("caja", Caja), ("nemo", FileManager), ("nautilus", Nautilus)):
            plugin = glob.glob(f"/usr/lib/*/{program}/extensions-*/lib{program}-python.so")
            if options.only == program or options.all and shutil.which(program) and plugin:
                check(kind(program, desktop, mount), desktop, screenshot)
    except Failed as problem:
        screenshot("failed")
        print(pathlib.Path(desktop.folder, "errors").read_text()[-2000:])
        sys.exit(f"{problem}")
    finally:
        desktop.end()
        mount.clean_up()
        shutil.rmtree(folder, ignore_errors=True)


main()
