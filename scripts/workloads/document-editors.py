#!/usr/bin/env python3
"""Two applications edit documents by PromiseKit's `Document` while everything happens to these: no text is lost or misplaced.

usage: document-editors.py --executable PROMISEFS [--changes 1000] [--seed N] [--folder FOLDER] [--keep]

Two processes (`document-program`, built beside PROMISEFS) edit one document together and one each, on a mount. Meanwhile folders
above are renamed and moved into each other, a second machine on the same storage adds lines and renames, the network goes and
comes back so that there are conflicts, which the programs and this one resolve, documents are removed by whoever has a claim and
others are made in their places, and programs and daemons are killed.

Whatever a program has said to be saved must be in some document at the end, unless it was removed or resolved away by somebody
who had read it; every document has lines of its own only. Status 1: it was not so.
"""
import argparse, os, random, re, shutil, signal, subprocess, sys, tempfile, threading, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "clients", "python"))
import promisefs
from domain import Failed, Mount

TOKEN = re.compile(r"^[a-z0-9]+/[a-z0-9]+/\d+/\d+$")


def lines_of(path):
    with open(path, errors="replace") as file:
        return file.read().split("\n")


class Editor:
    """One process of `document-program`; what it has said."""

    def __init__(self, world, name):
        self.world, self.name, self.process = world, name, None
        self.start()

    def start(self):
        program = os.path.join(os.path.dirname(os.path.realpath(self.world.mount.executable)), "document-program")
        self.process = subprocess.Popen([program, self.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=self.world.mount.environment, stderr=self.world.mount.log)
        threading.Thread(target=self.listen, args=(self.process,), daemon=True).start()

    def listen(self, process):
        for line in process.stdout:
            word, _, rest = line.rstrip("\n").partition(" ")
            if word == "saved":
                self.world.saved.add(rest)
            elif word == "foreign":
                self.world.problems.append(f"{self.name}: a document shows another one's text: {rest}; "
                                           f"made in the place of {self.world.of_new.get(rest.split()[0])}")
            elif word == "closed" and process.poll() is None:
                self.world.closed.append((self, rest))

    def open(self, identity):
        path = self.world.find(identity)
        if path is None:
            return False
        try:
            self.process.stdin.write(f"open {identity} {path}\n")
            self.process.stdin.flush()
        except OSError:
            pass
        return True

    def kill(self):
        self.process.kill()
        self.process.wait()

    def quit(self):
        try:
            self.process.stdin.write("quit\n")
            self.process.stdin.close()
            self.process.wait(timeout=60)
        except OSError:
            pass
        except subprocess.TimeoutExpired:
            raise Failed(f"{self.name} does not end within 60 s")


class World:
    def __init__(self, mount, other, generator):
        self.mount, self.other, self.pick = mount, other, generator
        self.saved, self.given_up, self.problems, self.closed = set(), set(), [], []
        self.history = []
        self.documents, self.count, self.is_offline = [], 0, False
        for _ in range(3):
            self.make()

    def note(self, identity, *what):
        """What befell a document, for whoever asks where its lines are."""
        self.history.append((identity, time.strftime("%H:%M:%S"), *what))

    # Documents.

    def make(self, place=None):
        """A new document; `place`: where another one was."""
        self.count += 1
        identity = f"doc{self.count}"
        path = place or os.path.join(self.mount.top, "one", "two", identity)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "x") as file:
            file.write(f"document {identity}\n")
        self.documents.append(identity)
        self.note(identity, "made at", path)
        return identity

    def files(self, top):
        """But for what a killed program left in the middle of a save, which stays on its machine."""
        for folder, _, names in os.walk(top):
            for name in names:
                if not (name.startswith(".") and name.endswith("~")):
                    yield os.path.join(folder, name)

    def find(self, identity, top=None):
        """The document itself, no version of a conflict."""
        for path in self.files(top or self.mount.top):
            try:
                if "conflict" not in path and lines_of(path)[0] == f"document {identity}":
                    return path
            except OSError:
                pass
        return None

    def folders(self, top):
        return [os.path.join(folder, name) for folder, names, _ in os.walk(top) for name in names if not name.startswith(".")]

    # What happens.

    def rename_folder(self, top=None):
        folders = self.folders(top or self.mount.top)
        if not folders:
            return
        old = self.pick.choice(folders)
        parent = self.pick.choice([top or self.mount.top, os.path.dirname(old), *folders])
        os.rename(old, os.path.join(parent, f"n{self.pick.randint(0, 9)}"))

    def rename_document(self):
        path = self.find(self.pick.choice(self.documents))
        if path and self.pick.random() < 0.3:
            os.rename(path, os.path.join(self.pick.choice([self.mount.top, *self.folders(self.mount.top)]),
                                         f"m{self.pick.randint(0, 10**6)}"))

    def elsewhere(self):
        """The other machine adds a line, or renames a folder."""
        if self.pick.random() < 0.3:
            return self.rename_folder(self.other.top)
        identity = self.pick.choice(self.documents)
        path = self.find(identity, self.other.top)
        if path is None:
            return
        self.count += 1
        token = f"{identity}/other/0/{self.count}"
        with open(path, "a") as file:
            file.write(token + "\n")
        self.saved.add(token)
        self.note(identity, "gets", token, "at", path)

    def network(self):
        self.is_offline = not self.is_offline
        self.note("everything", "is cut off" if self.is_offline else "is back")
        self.mount.set_offline(self.is_offline)

    def kill_editor(self):
        editor = self.pick.choice(self.editors)
        editor.kill()
        self.closed = [each for each in self.closed if each[0] is not editor]
        editor.start()
        for identity in self.of(editor):
            self.closed.append((editor, identity))

    def kill_daemon(self):
        self.note("everything", "the daemon is killed")
        self.mount.send(signal.SIGKILL, self.mount.processes())
        time.sleep(0.2)

    def resolve(self):
        """One version takes the document's place; what the document had is given up, as it was read."""
        domain = promisefs.Domain(self.socket)
        path = self.find(self.pick.choice(self.documents))
        if path is None:
            return
        inside = os.path.relpath(path, self.mount.top)
        versions = domain.versions(inside)
        others = [each for each in versions if each["kind"] == "conflict"]
        if not others:
            return
        ours, theirs = set(lines_of(path)), set(lines_of(self.mount.top + others[0]["path"]))
        states = [each["state"] for each in (versions[0], others[0])]
        domain.resolve(inside, "replace", version=others[0]["identifier"], states=states)
        self.given_up |= ours - theirs
        self.note(next(iter(ours & {f"document {each}" for each in self.documents}), "")[9:], "is replaced by", others[0]["path"])

    def remove(self):
        identity = self.pick.choice(self.documents)
        path = self.find(identity)
        if path is None or self.pick.random() < 0.5:
            return
        seen = os.path.join(self.mount.folder, "seen")
        # What is read under the claim goes; presenters have saved or given in by then.
        script = 'cat "$1" > "$2" && rm "$1"'
        done = subprocess.run(
            [self.mount.executable, "coordinate", "write", "--option", "forDeleting", "--timeout", "20s", path, "--",
             "sh", "-c", script, "sh", path, seen], env=self.mount.environment, stderr=subprocess.DEVNULL, timeout=60)
        if done.returncode != 0:
            return
        self.given_up |= set(lines_of(seen))
        self.documents.remove(identity)
        self.note(identity, "is removed at", path)
        # A file that is removed and made anew is a document that is saved, unless everybody knows by then that it was removed.
        deadline, misses = time.monotonic() + 5, 0
        # A walk misses what is moved meanwhile.
        while not self.is_offline and misses < 3 and time.monotonic() < deadline:
            time.sleep(0.2)
            misses = misses + 1 if self.find(identity, self.other.top) is None else 0
        place = path if misses == 3 else None
        try:
            self.of_new[self.make(place)] = identity
        except OSError:
            self.of_new[self.make()] = identity

    def of(self, editor):
        """The documents of an editor: the first one is everybody's."""
        mine = self.editors.index(editor) if editor in self.editors else 0
        return [self.documents[0], *self.documents[1 + mine::2]]

    def open_again(self):
        """What was closed, as it was removed or the program killed, is opened, or what is there instead."""
        waiting, self.closed = self.closed, []
        for editor, identity in waiting:
            if identity in self.documents and not editor.open(identity):
                self.closed.append((editor, identity))
        for editor in self.editors:
            for identity in self.documents:
                if identity in self.of_new and identity not in self.opened.get(editor.name, set()):
                    self.opened.setdefault(editor.name, set()).add(identity)
                    editor.open(identity)

    def change(self):
        choices = [self.rename_folder] * 8 + [self.rename_document] * 2 + [self.elsewhere] * 5 + [self.network, self.resolve,
                                                                                              self.resolve, self.remove]
        rare = self.pick.random()
        what = self.kill_editor if rare < 0.01 else self.kill_daemon if rare < 0.015 else self.pick.choice(choices)
        try:
            what()
        except (OSError, promisefs.PromiseError, subprocess.TimeoutExpired, IndexError):
            pass  # Others have moved or changed it in between.
        self.open_again()
        time.sleep(self.pick.random() * 0.1)


def at_rest(world):
    world.mount.set_offline(False)
    deadline = time.monotonic() + 120
    while True:
        world.mount.settle()
        world.other.settle()
        here, there = ({os.path.relpath(path, each.top): lines_of(path) for path in world.files(each.top)}
                       for each in (world.mount, world.other))
        if here == there:
            return here
        if time.monotonic() > deadline:
            raise Failed(f"the two machines differ: {sorted(set(here) ^ set(there))[:6]}")
        time.sleep(0.5)


def check(world, arguments):
    world.socket = promisefs.locate(world.mount.top)[0].socket_path
    world.of_new, world.opened, world.editors = {}, {}, []
    for name in ("left", "right"):
        world.editors.append(Editor(world, name))
    for editor in world.editors:
        for identity in world.of(editor):
            editor.open(identity)
    for number in range(arguments.changes):
        world.change()
        if world.problems:
            raise Failed(world.problems[0])
        if number % 100 == 99:
            print(f"{number + 1} changes, {len(world.saved)} lines saved, {len(world.given_up)} given up", flush=True)
    for editor in world.editors:
        editor.quit()
    time.sleep(0.5)
    there = set()
    for path, lines in at_rest(world).items():
        identity = lines[0].removeprefix("document ")
        for line in lines[1:]:
            if not line:
                continue
            if not TOKEN.match(line) or line.split("/")[0] != identity:
                raise Failed(f"{path} is {identity!r} and has the line {line!r}")
            there.add(line)
    lost = sorted(world.saved - there - world.given_up)
    if lost:
        for identity, *what in world.history:
            if identity in ("everything", lost[0].split("/")[0]):
                print(identity, *what, flush=True)
        raise Failed(f"{len(lost)} of {len(world.saved)} lines are lost, e.g. {lost[:5]}")
    return (f"{arguments.changes} changes: {len(world.saved)} lines were saved, "
            f"{len(world.saved & world.given_up - there)} given up, none is lost or in another document")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--executable", required=True)
    parser.add_argument("--changes", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    parser.add_argument("--folder", default=None, help="where the temporary folder is made")
    parser.add_argument("--keep", action="store_true", help="keep the folder when something failed")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    folder = tempfile.mkdtemp(prefix="documents-", dir=arguments.folder)
    cloud = os.path.join(folder, "cloud")
    mounts = [Mount(arguments.executable, os.path.join(folder, name), name=f"{name}{os.getpid()}", cloud=cloud)
              for name in ("here", "there")]
    os.environ.update(mounts[0].environment)
    world, failed = None, False
    try:
        for mount in mounts:
            mount.mount()
        world = World(*mounts, random.Random(arguments.seed))
        print(check(world, arguments), flush=True)
    except Failed as problem:
        failed = True
        print(f"FAILED (seed {arguments.seed}): {problem}", flush=True)
        print("the daemon's last words:\n" + mounts[0].last_words(), flush=True)
    finally:
        for editor in getattr(world, "editors", []):
            editor.kill()
        for mount in mounts:
            mount.clean_up()
        if failed and arguments.keep:
            print(f"kept: {folder}", flush=True)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    sys.stdout.flush()
    os._exit(1 if failed else 0)


if __name__ == "__main__":
    main()
