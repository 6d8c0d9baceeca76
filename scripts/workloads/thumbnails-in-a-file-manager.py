#!/usr/bin/env python3
"""Has real file managers show folders of placeholders, and checks that they show pictures and that nothing is fetched for it.

usage: thumbnails-in-a-file-manager.py --executable PROMISEFS [--pictures 500] [--all] [--only PROGRAM] [--folder DIR]
           [--screenshots DIR]

Needs Xvfb, dbus-run-session, gdbus and strace, and shows what there is of Thunar (with tumbler), PCManFM, and with --all of Nemo,
Caja and Nautilus. The folders:

  kept      pictures that were here; `promisefs thumbnail` has put them where file managers look; evicted
  tumbled   pictures that were here and of which tumbler, the desktop's own service, has made thumbnails; evicted
  unseen    pictures that were never here, so that there is no thumbnail
  nameless  pictures without an extension: what they are is only told by their first bytes

PCManFM makes thumbnails in its own process, and cannot be told from one that copies a file: it is shown the first two only.
Exit status 1 when a picture is not shown from the cache, or when a single byte was fetched.
"""
import argparse, collections, glob, os, pathlib, re, shutil, signal, struct, subprocess, sys, tempfile, time, zlib

from domain import Failed, Mount

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../clients/python/tests"))
import pictures  # noqa: E402

SCREEN = "3200x2800x24"
FEW = 20
THUMBNAILER = ("org.freedesktop.thumbnails.Thumbnailer1", "/org/freedesktop/thumbnails/Thumbnailer1")


class Desktop:
    """An X server without a screen, a session bus, and a home of its own."""

    def __init__(self, folder):
        self.folder, self.children = folder, []
        self.cache = os.path.join(folder, "cache")
        self.environment = dict(os.environ, HOME=folder, XDG_CACHE_HOME=self.cache, DISPLAY=":77", NO_AT_BRIDGE="1")
        for name in ("config", "share", "runtime"):
            os.makedirs(os.path.join(folder, name), 0o700, exist_ok=True)
        self.environment.update(XDG_CONFIG_HOME=folder + "/config", XDG_DATA_HOME=folder + "/share",
                                XDG_RUNTIME_DIR=folder + "/runtime")
        self.environment.pop("WAYLAND_DISPLAY", None)
        self.start("Xvfb", ":77", "-screen", "0", SCREEN, "-fbdir", folder, "-nolisten", "tcp")
        bus = self.start("dbus-daemon", "--session", "--print-address", stdout=subprocess.PIPE, text=True)
        self.environment["DBUS_SESSION_BUS_ADDRESS"] = bus.stdout.readline().strip()
        self.wait(10, lambda: os.path.exists("/tmp/.X11-unix/X77"), "the X server did not start")

    def start(self, *words, **options):
        options.setdefault("stdout", subprocess.DEVNULL)
        child = subprocess.Popen(words, env=self.environment, stdin=subprocess.DEVNULL,
                                 stderr=open(self.folder + "/errors", "ab"), start_new_session=True, **options)
        self.children.append(child)
        return child

    def wait(self, seconds, condition, sentence):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise Failed(sentence)
            time.sleep(0.1)

    def stop(self, child):
        try:
            os.killpg(child.pid, signal.SIGTERM)
            child.wait(10)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        self.children.remove(child)

    def end(self):
        # What the bus has started is in the bus's session, and ends with it.
        for child in reversed(list(self.children)):
            self.stop(child)

    def screenshot(self, file):
        """The frame buffer is a file in the format of xwd(1); written as PNG."""
        data = pathlib.Path(self.folder, "Xvfb_screen0").read_bytes()
        words = struct.unpack(">25I", data[:100])
        header, width, height, bits, stride, colours = words[0], words[4], words[5], words[11], words[12], words[19]
        assert bits == 32, words
        start = header + 12 * colours
        rows = bytearray()
        for y in range(height):
            row = data[start + y * stride:start + y * stride + 4 * width]
            line = bytearray(3 * width)
            line[0::3], line[1::3], line[2::3] = row[2::4], row[1::4], row[0::4]
            rows += b"\0" + line
        header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
        pathlib.Path(file).write_bytes(
            b"\x89PNG\r\n\x1a\n" + pictures.chunk(b"IHDR", header) + pictures.chunk(b"IDAT", zlib.compress(bytes(rows), 6))
            + pictures.chunk(b"IEND", b""))

    def show(self, program, folder, seconds, is_done):
        """Has a file manager show a folder until `is_done` of the names it opens; gives the names that it opened."""
        trace = os.path.join(self.folder, "trace")
        for old in glob.glob(trace + "*"):
            os.unlink(old)
        child = self.start("strace", "-f", "-qq", "-e", "trace=open,openat", "-o", trace, *program, folder)

        def opened():
            text = pathlib.Path(trace).read_text(errors="replace") if os.path.exists(trace) else ""
            return re.findall(r'open(?:at)?\([^"]*"([^"]+)", ([A-Z_|]+)[^)]*\) += (-?\d+)', text)

        try:
            window = None
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                if window is None:
                    found = subprocess.run(["xdotool", "search", "--onlyvisible", "--name", os.path.basename(folder)],
                                           env=self.environment, capture_output=True, text=True).stdout.split()
                    if found:
                        window = found[-1]
                        for words in (["windowmove", window, "0", "0"], ["windowsize", window, "3200", "2780"]):
                            subprocess.run(["xdotool", *words], env=self.environment, check=False)
                elif is_done(opened()):
                    break
                time.sleep(0.3)
            else:
                if window is None:
                    raise Failed(f"{program[0]} showed no window")
            # What it does after that, it does soon.
            time.sleep(3)
            return opened()
        finally:
            self.last_screen = self.folder + "/screen.png"
            self.screenshot(self.last_screen)
            self.stop(child)

    def queue(self, files):
        """Asks tumbler for thumbnails; gives which are ready and which failed."""
        # Signals go to whoever asked, so that they have to be overheard.
        monitor = self.start("dbus-monitor", "--session", f"interface='{THUMBNAILER[0]}'", stdout=subprocess.PIPE, text=True)
        monitor.stdout.readline()
        uris = [pathlib.Path(file).as_uri() for file in files]
        text = ", ".join(f"'{uri}'" for uri in uris)
        types = ", ".join("'image/png'" for _ in uris)
        subprocess.run(["gdbus", "call", "--session", "--dest", THUMBNAILER[0], "--object-path", THUMBNAILER[1], "--method",
                        THUMBNAILER[0] + ".Queue", f"[{text}]", f"[{types}]", "normal", "default", "0"],
                       env=self.environment, check=True, capture_output=True, timeout=60)
        told = collections.defaultdict(set)
        member = ""
        for line in monitor.stdout:
            member = (re.findall(r"^signal .* member=(\w+)", line) or [member])[0]
            told[member] |= set(re.findall(r'string "(file://[^"]+)"', line))
            if member == "Finished":
                break
        self.stop(monitor)
        ready, failed = told["Ready"], told["Error"]
        return ready & set(uris), failed & set(uris)


def make_pictures(cloud, count):
    for folder, number, suffix in (("kept", count, ".png"), ("tumbled", FEW, ".png"), ("unseen", FEW, ".png"),
                                   ("nameless", FEW, "")):
        os.makedirs(os.path.join(cloud, folder))
        for each in range(number):
            data = pictures.picture(320 + each % 7, 240, each % 256)
            pathlib.Path(cloud, folder, f"{folder} {each:03}{suffix}").write_bytes(data)


class Watched:
    """A domain of which it is known how much was fetched."""

    def __init__(self, domain):
        self.domain, self.before = domain, domain.status()["bytesFetched"]

    def check(self, what):
        now = self.domain.status()
        if now["bytesFetched"] != self.before:
            who = ", ".join(f"{line['program']} {line['bytes']} bytes" for line in now["hydrations"])
            raise Failed(f"{what}: {now['bytesFetched'] - self.before} bytes were fetched ({who})")

    def refusals(self):
        lines = self.domain.status().get("hydrations", [])
        return {line["program"]: line["refusals"] for line in lines if line["refusals"]}


def placeholders(folder):
    return [name for name in os.listdir(folder) if os.getxattr(os.path.join(folder, name), "user.promisefs.state") == b"placeholder"]


def evict(domain, folder):
    domain.run("evict", os.path.join(domain.top, folder))
    left = set(os.listdir(os.path.join(domain.top, folder))) - set(placeholders(os.path.join(domain.top, folder)))
    if left:
        raise Failed(f"{len(left)} of {folder} are no placeholders")


def prepare(domain, desktop, count):
    make_pictures(domain.cloud, count)
    domain.mount()
    for folder in ("kept", "tumbled"):
        domain.run("fetch", os.path.join(domain.top, folder))
    started = time.monotonic()
    domain.environment["XDG_CACHE_HOME"] = desktop.cache
    domain.run("thumbnail", os.path.join(domain.top, "kept"), timeout=900)
    print(f"promisefs thumbnail: {count} pictures in four sizes in {time.monotonic() - started:.1f} s", flush=True)
    ready, failed = desktop.queue(sorted(glob.glob(os.path.join(domain.top, "tumbled", "*"))))
    if len(ready) != FEW:
        raise Failed(f"tumbler made {len(ready)} thumbnails of {FEW} pictures that are here, {len(failed)} failed")
    for folder in ("kept", "tumbled"):
        evict(domain, folder)


def check_tumbler(domain, desktop, watched, count):
    for folder, wanted in (("kept", count), ("tumbled", FEW), ("unseen", 0)):
        files = sorted(glob.glob(os.path.join(domain.top, folder, "*")))
        ready, failed = desktop.queue(files)
        print(f"tumbler, {folder}: {len(ready)} ready, {len(failed)} failed", flush=True)
        watched.check(f"tumbler, {folder}")
        if len(ready) != wanted:
            raise Failed(f"tumbler has {len(ready)} thumbnails of {folder}, not {wanted}")


ALL = ("kept", "tumbled", "unseen", "nameless")
MANAGERS = {"thunar": ALL, "pcmanfm": ("kept", "tumbled")}
# As slow as a machine without a graphics card draws them.
SLOW = {"nemo": ALL, "caja": ALL, "nautilus": ALL}


def quieten(desktop):
    """Nautilus's turning wheel takes all the time there is where no graphics card draws it, and it loads for ever."""
    settings = pathlib.Path(desktop.folder, "config/gtk-4.0/settings.ini")
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text("[Settings]\ngtk-enable-animations=0\n")
    desktop.environment["GSK_RENDERER"] = "cairo"


def check_manager(name, domain, desktop, watched, count, screenshots):
    for folder in {**MANAGERS, **SLOW}[name]:
        wanted = {"kept": count, "tumbled": FEW}.get(folder, 0)
        place = os.path.join(domain.top, folder)

        def thumbnails(opened):
            return {name for name, _, result in opened if name.startswith(desktop.cache) and int(result) >= 0}

        opened = desktop.show([name], place, 60, lambda opened: wanted and len(thumbnails(opened)) >= wanted)
        touched = collections.Counter(
            (flags, result) for name, flags, result in opened if name.startswith(place + "/"))
        shown = len({os.path.basename(name) for name in thumbnails(opened)})
        print(f"{name}, {folder}: {shown} pictures from the cache; opened in the mount: {dict(touched) or 'nothing'}",
              flush=True)
        if screenshots:
            shutil.copy(desktop.last_screen, os.path.join(screenshots, f"{name}-{folder}.png"))
        watched.check(f"{name}, {folder}")
        if shown < wanted:
            raise Failed(f"{name} showed {shown} pictures of {folder}, not {wanted}")
        if len(placeholders(place)) != len(os.listdir(place)):
            raise Failed(f"{name}: not all of {folder} are placeholders")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executable", required=True)
    parser.add_argument("--pictures", type=int, default=500)
    parser.add_argument("--folder", default="/var/tmp")
    parser.add_argument("--screenshots", help="a folder for pictures of what the file managers show")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", help="one of the programs")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="pfs-thumb-", dir=options.folder)
    os.makedirs(folder + "/desktop")
    domain, status = Mount(options.executable, folder, name="thumbnails"), 0
    desktop = Desktop(folder + "/desktop")
    try:
        prepare(domain, desktop, options.pictures)
        watched = Watched(domain)
        check_tumbler(domain, desktop, watched, options.pictures)
        quieten(desktop)
        for name in [*MANAGERS, *SLOW]:
            if options.only not in (None, name) or name in SLOW and not options.all and options.only != name:
                continue
            if shutil.which(name):
                check_manager(name, domain, desktop, watched, options.pictures, options.screenshots)
            else:
                print(f"left out, not installed: {name}", flush=True)
        print(f"0 bytes fetched; refused: {watched.refusals()}", flush=True)
    except (Failed, OSError, subprocess.SubprocessError) as problem:
        status = 1
        print(f"FAILED: {problem}", flush=True)
    finally:
        desktop.end()
        domain.clean_up()
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(status)


if __name__ == "__main__":
    main()
