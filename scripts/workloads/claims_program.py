"""The programs of claims-on-a-mount.py: each is a process, and notes what it does with the time of a clock that all have.

usage: claims_program.py ROLE MOUNT SOCKET STOP LOG SEED      # and `inner LOG NUMBER MOUNT PATH SECONDS`, for a coordinated command
"""
import contextlib, errno, json, os, random, signal, subprocess, sys, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "clients", "python"))
import promisefs
from promisefs import PromiseError, reading, writing

TIMEOUT = 15
NAMES = ["f0", "f1", "f2", "f3"]
FOLDERS = ["a", "b", "c", "d"]
READING = [[], [], ["withoutChanges"], ["immediatelyAvailableMetadataOnly"]]
WRITING = [[], [], [], ["forMerging"], ["forDeleting"], ["forMoving"], ["forReplacing"], ["contentIndependentMetadataOnly"]]


class Log:
    def __init__(self, path):
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.count = 0

    def __call__(self, what, **facts):
        """The moment, which is before it can be read in the log."""
        facts |= {"t": time.monotonic(), "what": what}
        os.write(self.file, (json.dumps(facts) + "\n").encode())
        return facts["t"]

    def number(self):
        self.count += 1
        return f"{os.getpid()}.{self.count}"


def links(path):
    try:
        return os.lstat(path).st_nlink
    except OSError:
        return None


def inode(path):
    try:
        return os.lstat(path).st_ino
    except OSError:
        return None


class Program:
    def __init__(self, top, socket, stop, log, seed):
        self.top, self.stop, self.log, self.pick = top, stop, Log(log), random.Random(int(seed))
        self.domain, self.log_path, self.parent = promisefs.Domain(socket), log, os.getppid()

    def is_wanted(self):
        return os.getppid() == self.parent and not os.path.exists(self.stop)

    def chain(self, path):
        """The nodes of the folders above, from the mount's root."""
        parts = path.split("/")[:-1]
        return [inode(os.path.join(self.top, *parts[:count])) for count in range(len(parts) + 1)]

    def paths(self):
        """What is there now: folders and others, from the root of the mount."""
        folders, files = [], []
        for folder, names, others in os.walk(self.top):
            place = os.path.relpath(folder, self.top)
            folders += [os.path.normpath(os.path.join(place, name)) for name in names]
            files += [os.path.normpath(os.path.join(place, name)) for name in others if not name.startswith(".")]
        return folders, files

    def somewhere(self):
        """A path at which something is, or nothing yet."""
        folders, files = self.paths()
        rare = self.pick.random()
        if rare < 0.06 and folders:
            return self.pick.choice(folders)
        if rare < 0.75 and files:
            return self.pick.choice(files)
        return self.vacancy(folders)

    def vacancy(self, folders=None, names=NAMES):
        folders = self.paths()[0] if folders is None else folders
        return os.path.normpath(os.path.join(self.pick.choice(folders or ["."]), self.pick.choice(names)))

    @contextlib.contextmanager
    def change(self, kind, *paths, claim=None):
        """Notes a change of what is at paths; errors are others' doing."""
        number = self.log.number()
        nodes = [inode(os.path.join(self.top, path)) for path in paths]
        self.log("begin", number=number, kind=kind, paths=list(paths), nodes=nodes, claim=claim,
                 chains=[self.chain(path) for path in paths], links=links(os.path.join(self.top, paths[0])))
        facts = {}
        try:
            yield facts
            self.log("end", number=number, **facts)
        except OSError as problem:
            self.log("end", number=number, error=errno.errorcode.get(problem.errno, str(problem.errno)), **facts)

    def write(self, path, claim=None, pause=0.0):
        with self.change("write", path, claim=claim) as facts:
            file = os.open(os.path.join(self.top, path), os.O_WRONLY | os.O_APPEND)
            try:
                facts["node"], facts["opened"] = os.fstat(file).st_ino, time.monotonic()
                self.log("opened", node=facts["node"], path=path)
                time.sleep(pause)
                os.write(file, b"line\n")
                facts["closing"] = time.monotonic()
            finally:
                os.close(file)

    def save(self, path, claim=None):
        """As editors do: a new file is renamed over it."""
        temporary = os.path.join(os.path.dirname(path), f".save-{os.getpid()}.tmp")
        with self.change("replace", path, claim=claim):
            try:
                with open(os.path.join(self.top, temporary), "w") as file:
                    file.write("saved\n")
                os.replace(os.path.join(self.top, temporary), os.path.join(self.top, path))
            except OSError:
                with contextlib.suppress(OSError):
                    os.remove(os.path.join(self.top, temporary))
                raise

    def make(self, path, claim=None):
        with self.change("make", path, claim=claim):
            os.close(os.open(os.path.join(self.top, path), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))

    def remove(self, path, claim=None):
        with self.change("remove", path, claim=claim):
            place = os.path.join(self.top, path)
            os.rmdir(place) if os.path.isdir(place) and not os.path.islink(place) else os.remove(place)

    def move(self, path, other, claim=None):
        with self.change("move", path, other, claim=claim):
            os.rename(os.path.join(self.top, path), os.path.join(self.top, other))

    # Programs that ask.

    def intents(self):
        """One or two items, and how each is wanted."""
        found = []
        for _ in range(self.pick.choice([1, 1, 2])):
            path = self.somewhere()
            node = inode(os.path.join(self.top, path))
            is_read = node is not None and self.pick.random() < 0.4
            options = self.pick.choice(READING if is_read else WRITING)
            found.append({"path": path, "node": node, "access": "read" if is_read else "write", "options": options,
                          "parent": inode(os.path.dirname(os.path.join(self.top, path)))})
        return found

    def claimer(self):
        while self.is_wanted():
            items, number = self.intents(), self.log.number()
            purpose = self.pick.choice([None, None, None, "team"])
            wanted = [(reading if each["access"] == "read" else writing)("/" + each["path"], *each["options"]) for each in items]
            is_granted = False
            self.log("ask", of=number, items=items, purpose=purpose)
            try:
                with self.domain.coordinate(*wanted, purpose=purpose, timeout=TIMEOUT) as granted:
                    is_granted = True
                    places = [each["path"].strip("/") for each in granted["items"]]
                    self.log("granted", of=number, items=[{"node": each.get("node"), "path": place}
                                                          for each, place in zip(granted["items"], places)])
                    self.log("found", of=number, nodes=[inode(os.path.join(self.top, place)) for place in places],
                             chains=[self.chain(place) for place in places])
                    self.use(items, places, number)
                    self.log("release", of=number)
                self.log("left", of=number)
            except PromiseError as problem:
                self.log("lost" if is_granted else "refused", of=number, code=problem.code, text=str(problem)[:200])
                time.sleep(0.02)
            except OSError as problem:
                self.log("refused", of=number, code="", text=str(problem)[:200])
                time.sleep(0.02)

    def use(self, items, places, number):
        """What the claim is for."""
        for item, place in zip(items, places):
            if item["access"] == "read" or self.pick.random() < 0.3:
                continue
            options, is_there = item["options"], inode(os.path.join(self.top, place)) is not None
            if os.path.isdir(os.path.join(self.top, place)) and "forDeleting" not in options:
                continue
            if not is_there:
                self.make(place, number)
            elif "forDeleting" in options:
                self.remove(place, number)
            elif "forReplacing" in options:
                self.save(place, number)
            elif "forMoving" in options:
                continue
            elif "contentIndependentMetadataOnly" not in options:
                self.pick.choice([self.write, self.write, self.save])(place, number)
        time.sleep(1.6 if self.pick.random() < 0.004 else self.pick.choice([0, 0, 0, 0.001, 0.005, 0.02]))

    def commander(self):
        """By the command, which is killed now and then while what it started goes on or ends with it."""
        executable = os.environ["PROMISEFS_EXECUTABLE"]
        while self.is_wanted():
            path, number = self.somewhere(), self.log.number()
            node = inode(os.path.join(self.top, path))
            access = "write" if node is None else self.pick.choice(["read", "write"])
            item = {"path": path, "node": node, "access": access, "options": [],
                    "parent": inode(os.path.dirname(os.path.join(self.top, path)))}
            self.log("ask", of=number, items=[item], purpose=None, command=True)
            command = [executable, "coordinate", access, "--timeout", f"{TIMEOUT}s", os.path.join(self.top, path), "--",
                       sys.executable, os.path.abspath(__file__), "inner", self.log_path, number, self.top, path,
                       str(self.pick.choice([0.01, 0.05, 0.2]))]
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, text=True)
            if self.pick.random() < 0.3:
                time.sleep(self.pick.random() * 0.3)
                self.log("killing", of=number)
                process.kill()
            told = process.communicate()[1]
            self.log("refused" if process.returncode else "left", of=number, code=str(process.returncode), text=told[-200:])

    # Programs that know nothing of it.

    def unaware(self):
        while self.is_wanted():
            time.sleep(self.pick.random() * 0.03)
            folders, files = self.paths()
            path = self.pick.choice(files) if files else None
            what = self.pick.random()
            if path is None or what < 0.2:
                self.make(self.vacancy(folders))
            elif what < 0.45:
                self.write(path, pause=self.pick.choice([0, 0, 0, 0.15]))
            elif what < 0.5:
                with self.change("truncate", path):
                    os.truncate(os.path.join(self.top, path), 0)
            elif what < 0.6:
                self.move(path, self.vacancy(folders))
            elif what < 0.7:
                self.save(path)
            elif what < 0.78:
                self.remove(path)
            elif what < 0.85:
                with self.change("link", path, other := self.vacancy(folders)):
                    os.link(os.path.join(self.top, path), os.path.join(self.top, other))
            elif what < 0.92 and len(folders) < 5:
                with self.change("make", other := self.vacancy(folders, FOLDERS)):
                    os.mkdir(os.path.join(self.top, other))
            elif folders:
                self.move(self.pick.choice(folders), self.vacancy(folders, FOLDERS))

    # Programs that show something.

    def presenter(self):
        """One that answers at once, slowly or never; until it is killed, through deaths of daemons."""
        style = self.pick.choice([0] * 10 + [0.02] * 6 + [0.2] * 2 + [None])
        path, known = self.somewhere(), None
        while os.getppid() == self.parent:
            try:
                for name, event in self.domain.present("/" + path, id=known):
                    known = event.get("id", known)
                    self.log(name, style=style, told=event.get("what"), question=event.get("question"),
                             node=event.get("node"), path=event.get("path"), id=event.get("id"))
                    if name == "ask" and style is not None:
                        time.sleep(style)
                        self.domain.answer(event)
                        self.log("answered", question=event["question"])
            except PromiseError as problem:
                self.log("ended", code=problem.code)
                if problem.code in ("gone", "notFound", "stale"):
                    path, known = self.somewhere(), None
            except OSError:
                self.log("ended", code="")
            time.sleep(0.05)


def inner(log, number, top, path, seconds):
    log, end = Log(log), time.monotonic() + float(seconds)
    log("granted", of=number, items=[{"node": inode(os.path.join(top, path)), "path": path}])
    while time.monotonic() < end:
        time.sleep(0.005)
        log("alive", of=number)
    log("release", of=number)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.argv[1] == "inner":
        inner(*sys.argv[2:])
    else:
        getattr(Program(*sys.argv[2:]), sys.argv[1])()
