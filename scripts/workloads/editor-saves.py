#!/usr/bin/env python3
"""Saves a document in the ways editors do, and with real editors, and checks that each save is one edit of that document.

usage: editor-saves.py --executable PROMISEFS [--folder DIR] [--only PATTERN] [--quick] [--all-editors]

Every way is tried on a document that the provider knows, undisturbed and with a change at the provider between reading and
saving. Undisturbed: the provider gets the new bytes as one new version under the same name; identifier, pin and tags stay as
they were, where the local file system would keep them; no temporary name was ever at the provider; nothing else is left.
Disturbed: both contents are there, on both sides. Editors that are not installed are left out, and said; nano and emacs
are tried only with --all-editors. --quick: the ways that differ most. Exit status 1 when anything is wrong.
"""
import argparse, fcntl, fnmatch, json, os, pty, select, shutil, struct, subprocess, sys, tempfile, termios, time

OLD = "".join(f"line {number}\n" for number in range(1, 40))
NEW = OLD.replace("line 7\n", "line seven\n")
REMOTE = OLD.replace("line 9\n", "line nine, written elsewhere\n")


class Failed(Exception):
    pass


def write(path, text, mode="w"):
    with open(path, mode) as file:
        file.write(text)


def synced_write(path, text):
    with open(path, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


# ---- the system calls of editors, one after the other -----------------------------------------------------------
# Each takes the path of the document, and `between`, to be called when the old content was read and before anything is written.
def in_place(path, between):
    open(path).read()
    between()
    write(path, NEW)


def in_place_longer(path, between):
    open(path).read()
    between()
    with open(path, "r+") as file:
        file.write(NEW)
        file.truncate()


def temporary_and_rename(path, between):
    open(path).read()
    between()
    temporary = os.path.join(os.path.dirname(path), ".document.tmp-1234")
    synced_write(temporary, NEW)
    shutil.copymode(path, temporary)
    os.rename(temporary, path)


def backup_and_rewrite(path, between):
    open(path).read()
    between()
    os.rename(path, path + "~")
    write(path, NEW)
    os.unlink(path + "~")


def backup_that_stays(path, between):
    open(path).read()
    between()
    os.rename(path, path + "~")
    write(path, NEW)


def backup_copy_and_write(path, between):
    open(path).read()
    between()
    shutil.copy2(path, path + "~")
    write(path, NEW)
    os.unlink(path + "~")


def rename_away_then_create(path, between):
    open(path).read()
    between()
    away = os.path.join(os.path.dirname(path), ".#away")
    os.rename(path, away)
    write(path, NEW)
    os.unlink(away)


def rename_away_temporary_back(path, between):
    """Word processors: the new file is written first, the old one goes aside, the new one takes its place."""
    open(path).read()
    between()
    folder = os.path.dirname(path)
    fresh, aside = os.path.join(folder, "~$fresh.tmp"), os.path.join(folder, "~$aside.tmp")
    write(fresh, NEW)
    os.rename(path, aside)
    os.rename(fresh, path)
    os.unlink(aside)


def link_and_rename(path, between):
    """The backup is a second name of the old file."""
    open(path).read()
    between()
    os.link(path, path + "~")
    temporary = os.path.join(os.path.dirname(path), ".#document.new")
    write(temporary, NEW)
    os.rename(temporary, path)
    os.unlink(path + "~")


def exchange(path, between):
    open(path).read()
    between()
    temporary = os.path.join(os.path.dirname(path), ".document.new-1")
    write(temporary, NEW)
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(-100, temporary.encode(), -100, path.encode(), 2) != 0:
        raise Failed(f"renameat2: {os.strerror(ctypes.get_errno())}")
    os.unlink(temporary)


def delete_then_create(path, between):
    open(path).read()
    between()
    os.unlink(path)
    write(path, NEW)


def unnamed_and_link(path, between):
    """O_TMPFILE has no way to replace, so the link goes beside and is renamed."""
    open(path).read()
    between()
    folder = os.path.dirname(path)
    descriptor = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o644)
    os.write(descriptor, NEW.encode())
    temporary = os.path.join(folder, ".document.linked")
    root = os.open("/", os.O_RDONLY)
    # Only with a folder's descriptor does Python follow the link.
    os.link(f"/proc/self/fd/{descriptor}", temporary, src_dir_fd=root, follow_symlinks=True)
    os.close(root)
    os.close(descriptor)
    os.rename(temporary, path)


def outside(path):
    """A folder that is not in the mount."""
    return os.path.dirname(os.path.dirname(os.path.dirname(path)))


# ---- programs ----------------------------------------------------------------------------------------------------
def program(*words, reads_first=False):
    def save(path, between):
        if reads_first:
            open(path).read()
        between()
        folder = os.path.dirname(path)
        result = subprocess.run(
            [word.replace("DOCUMENT", path).replace("FOLDER", folder) for word in words], capture_output=True, text=True,
            cwd=folder, timeout=120, stdin=subprocess.DEVNULL)
        if result.returncode != 0:
            raise Failed(f"{words[0]} exits {result.returncode}: {(result.stderr or result.stdout).strip()[:300]}")

    return save


def editor(*words):
    """An editor that loads the document, lets somebody else change it, and saves then."""

    def save(path, between):
        folder = outside(path)
        loaded, proceed = os.path.join(folder, "loaded"), os.path.join(folder, "proceed")
        for name in (loaded, proceed):
            if os.path.exists(name):
                os.unlink(name)
        wait = f"touch '{loaded}'; until [ -e '{proceed}' ]; do sleep 0.02; done"
        command = [word.replace("DOCUMENT", path).replace("WAIT", wait) for word in words]
        process = subprocess.Popen(
            command, cwd=os.path.dirname(path), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        end = time.time() + 60
        while not os.path.exists(loaded):
            if process.poll() is not None or time.time() > end:
                process.kill()
                raise Failed(f"{words[0]} has not loaded the document: {process.communicate()[0][:300]}")
            time.sleep(0.02)
        between()
        write(proceed, "")
        output = process.communicate(timeout=60)[0]
        if process.returncode != 0:
            raise Failed(f"{words[0]} exits {process.returncode}: {output.strip()[:300]}")

    return save


def vim(*settings):
    words = ["vim", "-u", "NONE", "-es"]
    for setting in ("autoread!", "noautoread", *settings):
        if setting != "autoread!":
            words += ["-c", f"set {setting}"]
    # A change on the disk makes `:w!` necessary, as the user would answer the question.
    return editor(*words, "-c", "%s/line 7$/line seven/", "-c", "silent !WAIT", "-c", "w!", "-c", "q!", "DOCUMENT")


def nano(path, between):
    """At a terminal, as a person uses it: replaces, answers that what is on the disk may be overwritten, and leaves."""
    process, terminal = pty.fork()
    if process == 0:
        os.execvpe("nano", ["nano", "--ignorercfiles", path], dict(os.environ, TERM="xterm"))
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    shown = ""

    def wait_for(text, seconds):
        nonlocal shown
        end = time.time() + seconds
        while text not in shown and time.time() < end:
            if select.select([terminal], [], [], 0.05)[0]:
                try:
                    shown += os.read(terminal, 65_536).decode(errors="replace")
                except OSError:
                    break
        return text in shown

    def say(keys):
        os.write(terminal, keys.encode())

    if not wait_for("line 3", 30):
        raise Failed("nano has not shown the document")
    between()
    # Only what differs from the line before is drawn.
    for keys, answer in (("\x1c", "Search"), ("line 7\r", "Replace with"), ("line seven\r", "instance"), ("y", "occurrence")):
        say(keys)
        if not wait_for(answer, 10):
            raise Failed(f"nano does not ask '{answer}'")
    shown = ""
    say("\x13")
    if wait_for("modified", 1):
        say("y")
    wait_for("Wrote", 5)
    say("\x18")
    wait_for("nothing of this", 0.5)
    _, status = os.waitpid(process, 0)
    os.close(terminal)
    if status != 0:
        raise Failed(f"nano ends with {status}")


def rsync(*options):
    def save(path, between):
        source = os.path.join(outside(path), "source.txt")
        write(source, NEW)
        open(path).read()
        between()
        result = subprocess.run(["rsync", *options, "--ignore-times", source, path], capture_output=True, text=True, timeout=60)
        if result.returncode != 0:
            raise Failed(f"rsync exits {result.returncode}: {result.stderr.strip()[:300]}")

    return save


def git(path, between):
    """checkout of another state of a tracked document; the repository itself is outside the mount."""
    folder, repository = os.path.dirname(path), os.path.join(outside(path), "repository")
    shutil.rmtree(repository, ignore_errors=True)
    environment = dict(
        os.environ, GIT_DIR=repository, GIT_WORK_TREE=folder, GIT_CONFIG_NOSYSTEM="1", GIT_AUTHOR_NAME="T", GIT_AUTHOR_EMAIL="t@x",
        GIT_COMMITTER_NAME="T", GIT_COMMITTER_EMAIL="t@x", HOME=repository)

    def run(*words):
        result = subprocess.run(["git", *words], env=environment, cwd=folder, capture_output=True, text=True, timeout=60)
        if result.returncode != 0:
            raise Failed(f"git {words[0]} exits {result.returncode}: {result.stderr.strip()[:300]}")
        return result.stdout.strip()

    run("init", "-q", "-b", "main")
    run("add", "document.txt")
    run("commit", "-q", "-m", "old")
    blob = subprocess.run(
        ["git", "hash-object", "-w", "--stdin"], env=environment, cwd=folder, input=NEW, capture_output=True, text=True).stdout.strip()
    run("update-index", "--cacheinfo", f"100644,{blob},document.txt")
    run("commit", "-q", "-m", "new")
    between()
    run("checkout", "-q", "-f", "HEAD", "--", "document.txt")


WAYS = {
    "write in place": in_place,
    "write in place, then truncate": in_place_longer,
    "temporary file and rename": temporary_and_rename,
    "backup by rename, rewrite, backup removed": backup_and_rewrite,
    "backup by rename, rewrite, backup stays": backup_that_stays,
    "backup by copy, rewrite": backup_copy_and_write,
    "rename away, create": rename_away_then_create,
    "write new, rename old away, rename new": rename_away_temporary_back,
    "backup by link, temporary file and rename": link_and_rename,
    "exchange": exchange,
    "delete, create": delete_then_create,
    "O_TMPFILE, link, rename": unnamed_and_link,
    "sed -i": program("sed", "-i", "s/line 7$/line seven/", "DOCUMENT", reads_first=True),
    "perl -i": program("perl", "-i", "-pe", "s/line 7$/line seven/", "DOCUMENT", reads_first=True),
    "perl -i.bak~": program("perl", "-i.bak~", "-pe", "s/line 7$/line seven/", "DOCUMENT", reads_first=True),
    "vim": vim("backup&", "writebackup", "backupcopy=auto"),
    "vim backupcopy=yes": vim("backup", "writebackup", "backupcopy=yes"),
    "vim backupcopy=no": vim("backup", "writebackup", "backupcopy=no"),
    "vim with swap and undo files": vim("swapfile", "undofile", "undodir=/tmp", "backupcopy=no", "writebackup"),
    "rsync": rsync("-t"),
    "rsync --inplace": rsync("-t", "--inplace"),
    "git checkout": git,
}
MORE = {
    "nano": nano,
    "emacs": program(
        "emacs", "-Q", "--batch", "DOCUMENT", "--eval",
        '(progn (goto-char 1) (re-search-forward "line 7$") (replace-match "line seven") (save-buffer))', reads_first=True),
}

QUICK = {
    "rename away, create", "write new, rename old away, rename new", "exchange", "delete, create", "sed -i", "perl -i", "vim",
    "vim backupcopy=yes", "rsync", "git checkout",
}


class Domain:
    def __init__(self, executable, top):
        self.executable, self.top = executable, top
        for name in ("mnt", "state", "cloud", "run", "home"):
            os.makedirs(os.path.join(top, name))
        self.mount, self.cloud = os.path.join(top, "mnt"), os.path.join(top, "cloud")
        self.faults = top + "/faults"
        self.environment = dict(
            os.environ, XDG_RUNTIME_DIR=top + "/run", HOME=top + "/home", NO_COLOR="1", PROMISEFS_PROVIDER_FAULTS=self.faults)
        self.set_offline(False)

    def command(self, *words, check=True):
        result = subprocess.run([self.executable, *words], env=self.environment, capture_output=True, text=True, timeout=120)
        if check and result.returncode != 0:
            raise Failed(f"'{words[0]}' exits {result.returncode}: {(result.stderr or result.stdout).strip()[:300]}")
        return result.stdout

    def start(self):
        self.command(
            "mount", "--state-dir", self.top + "/state", "--domain", "editors" + self.top[-6:], "--upload-delay", "1500ms",
            "folder:" + self.cloud, self.mount)
        watcher = os.path.join(os.path.dirname(os.path.abspath(__file__)), "watch-names.py")
        self.seen, self.lines_known = self.top + "/seen", 0
        self.watcher = subprocess.Popen([sys.executable, watcher, self.cloud, self.seen], stdout=subprocess.PIPE, text=True)
        self.watcher.stdout.readline()

    def names_seen(self):
        time.sleep(0.1)
        lines = open(self.seen).read().splitlines() if os.path.exists(self.seen) else []
        fresh, self.lines_known = lines[self.lines_known :], len(lines)
        return {os.path.basename(json.loads(line)) for line in fresh}

    def set_offline(self, is_offline):
        write(self.faults + ".new", "offline=true\n" if is_offline else "")
        os.rename(self.faults + ".new", self.faults)

    def bytes_uploaded(self):
        return json.loads(self.command("status", "--json", self.mount))["bytesUploaded"]

    def settle(self):
        self.command("sync", "--wait", self.mount)

    def stop(self):
        if hasattr(self, "watcher"):
            self.watcher.kill()
            self.watcher.wait()
        self.command("unmount", self.mount, check=False)
        subprocess.run(["umount", "-l", self.mount], capture_output=True)
        shutil.rmtree(self.top, ignore_errors=True)


def attribute(path, name):
    try:
        return os.getxattr(path, "user.promisefs." + name).decode()
    except OSError:
        return None


def tagged(path):
    try:
        return os.getxattr(path, "user.tag").decode()
    except OSError:
        return None


def kept_by_a_disk(save, top):
    """Whether the local file system keeps extended attributes in this way of saving."""
    folder = os.path.join(top, "plain", "documents")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "document.txt")
    for name in os.listdir(folder):
        os.unlink(os.path.join(folder, name))
    write(path, OLD)
    os.setxattr(path, "user.tag", b"red")
    save(path, lambda: None)
    return tagged(path)


def document(domain, number):
    """A fresh document in a folder of its own, known to both sides, its content here as after reading it."""
    folder = os.path.join(domain.mount, f"work{number}")
    os.makedirs(folder)
    path = os.path.join(folder, "document.txt")
    write(path, OLD)
    domain.settle()
    os.setxattr(path, "user.promisefs.pin", b"pinned")
    os.setxattr(path, "user.tag", b"red")
    domain.names_seen()
    return path, os.path.join(domain.cloud, f"work{number}", "document.txt")


def undisturbed(domain, number, save, tag):
    path, there = document(domain, number)
    identifier = attribute(path, "identifier")
    uploaded = domain.bytes_uploaded()
    save(path, lambda: None)
    domain.settle()
    uploaded = domain.bytes_uploaded() - uploaded
    if uploaded != len(NEW):
        raise Failed(f"{uploaded} bytes were uploaded for a document of {len(NEW)}")
    if open(path).read() != NEW:
        raise Failed("the mount does not have what was saved")
    if open(there).read() != NEW:
        raise Failed("the provider does not have what was saved")
    if attribute(path, "identifier") != identifier:
        raise Failed(f"the identifier was {identifier} and is {attribute(path, 'identifier')}")
    if attribute(path, "pin") != "pinned":
        raise Failed(f"the pin is {attribute(path, 'pin')}")
    if tagged(path) != tag:
        raise Failed(f"user.tag is {tagged(path)}, on a local disk it is {tag}")
    if attribute(path, "state") != "current":
        raise Failed(f"the state is {attribute(path, 'state')}")
    left = set(os.listdir(os.path.dirname(there)))
    if left != {"document.txt"}:
        raise Failed(f"the provider holds {sorted(left)}")
    seen = {name for name in domain.names_seen() if name != "document.txt" and not name.startswith(".promisefs")}
    if seen:
        raise Failed(f"the provider was shown {sorted(seen)}")


def disturbed(domain, number, save):
    path, there = document(domain, number)

    def between():
        # The news must not be followed before the document is saved.
        domain.set_offline(True)
        # Not by a rename: that would be another item to a folder.
        write(there, REMOTE)

    save(path, between)
    domain.set_offline(False)
    end = time.time() + 30
    while True:
        domain.settle()
        both = [
            sorted(open(os.path.join(top, name)).read() for name in os.listdir(top) if not name.endswith("~"))
            for top in (os.path.dirname(path), os.path.dirname(there))
        ]
        if both[0] == both[1] and len(both[0]) >= 2 or time.time() > end:
            break
        time.sleep(0.2)
    texts = both[1]
    if sorted([NEW, REMOTE]) != texts:
        shown = [text.splitlines()[6] + "/" + text.splitlines()[8] if text.count("\n") > 8 else repr(text[:40]) for text in texts]
        raise Failed(f"the provider holds {os.listdir(os.path.dirname(there))}: {shown}")
    if both[0] != texts:
        raise Failed(f"the mount holds {os.listdir(os.path.dirname(path))}, the provider {os.listdir(os.path.dirname(there))}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executable", required=True)
    parser.add_argument("--folder", default="/var/tmp")
    parser.add_argument("--only", default="*")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--all-editors", action="store_true")
    options = parser.parse_args()
    ways = dict(WAYS, **MORE) if options.all_editors else WAYS
    domain = Domain(options.executable, tempfile.mkdtemp(prefix="pfs-edit-", dir=options.folder))
    wrong = number = 0
    try:
        domain.start()
        for name, save in ways.items():
            word = name.split()[0]
            if not fnmatch.fnmatch(name, options.only) or options.quick and name not in QUICK:
                continue
            if word in ("sed", "perl", "vim", "rsync", "git", "nano", "emacs") and not shutil.which(word):
                print(f"left out, not installed: {name}", flush=True)
                continue
            tag = kept_by_a_disk(save, domain.top)
            for kind in ("undisturbed", "disturbed"):
                number += 1
                try:
                    undisturbed(domain, number, save, tag) if kind == "undisturbed" else disturbed(domain, number, save)
                    print(f"right  {name}, {kind}", flush=True)
                except (Failed, OSError, subprocess.TimeoutExpired) as problem:
                    wrong += 1
                    print(f"WRONG  {name}, {kind}: {problem}", flush=True)
    finally:
        domain.stop()
    print(f"{number} saves, {wrong} wrong", flush=True)
    sys.exit(1 if wrong or not number else 0)


main()
