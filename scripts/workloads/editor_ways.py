"""The ways in which editors save a document: their system calls one after the other, and the editors themselves.

Each takes the path of a document that holds OLD, makes it NEW, and calls `between` when the old content was read and before
anything is written.
"""
import ctypes, fcntl, os, pty, re, select, shutil, struct, subprocess, tempfile, termios, time, zipfile

from domain import Failed

OLD = "".join(f"line {number}\n" for number in range(1, 40))
NEW = OLD.replace("line 7\n", "line seven\n")
REMOTE = OLD.replace("line 9\n", "line nine, written elsewhere\n")


def write(path, text, mode="w"):
    with open(path, mode) as file:
        file.write(text)


def text_of(path):
    """What a document says, whatever its format."""
    if not path.endswith(".odt"):
        with open(path) as file:
            return file.read()
    with zipfile.ZipFile(path) as package:
        content = package.read("content.xml").decode()
    return "".join(re.sub("<[^>]*>", "", paragraph) + "\n" for paragraph in re.findall("<text:p[ >].*?</text:p>", content))


def write_document(path, text):
    """In place, in the format that its name says."""
    if not path.endswith(".odt"):
        return write(path, text)
    with tempfile.TemporaryDirectory() as folder:
        write(folder + "/document.txt", text)
        converted = subprocess.run(
            ["soffice", "--headless", f"-env:UserInstallation=file://{folder}/settings", "--infilter=Text (encoded):UTF8,LF",
             "--convert-to", "odt", "--outdir", folder, folder + "/document.txt"], capture_output=True, text=True, timeout=120)
        if not os.path.exists(folder + "/document.odt"):
            raise Failed(f"soffice has made no document: {converted.stderr.strip()[:300]}")
        shutil.copyfile(folder + "/document.odt", path)


def synced_write(path, text):
    with open(path, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


# ---- the system calls of editors, one after the other -----------------------------------------------------------
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


def at_once():
    """What happens between the writing of a new file and its renaming."""


def temporary_and_rename(path, between, written=at_once, name=".document.tmp-1234"):
    open(path).read()
    between()
    temporary = os.path.join(os.path.dirname(path), name)
    synced_write(temporary, NEW)
    shutil.copymode(path, temporary)
    written()
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


def rename_away_temporary_back(path, between, written=at_once, name="~$fresh.tmp"):
    """Word processors: the new file is written first, the old one goes aside, the new one takes its place."""
    open(path).read()
    between()
    folder = os.path.dirname(path)
    fresh, aside = os.path.join(folder, name), os.path.join(folder, "~$aside.tmp")
    write(fresh, NEW)
    written()
    os.rename(path, aside)
    os.rename(fresh, path)
    os.unlink(aside)


def link_and_rename(path, between, written=at_once, name=".#document.new"):
    """The backup is a second name of the old file."""
    open(path).read()
    between()
    os.link(path, path + "~")
    temporary = os.path.join(os.path.dirname(path), name)
    write(temporary, NEW)
    written()
    os.rename(temporary, path)
    os.unlink(path + "~")


def exchange(path, between, written=at_once, name=".document.new-1"):
    open(path).read()
    between()
    temporary = os.path.join(os.path.dirname(path), name)
    write(temporary, NEW)
    written()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(-100, temporary.encode(), -100, path.encode(), 2) != 0:
        raise Failed(f"renameat2: {os.strerror(ctypes.get_errno())}")
    os.unlink(temporary)


def delete_then_create(path, between):
    open(path).read()
    between()
    os.unlink(path)
    write(path, NEW)


def unnamed_and_link(path, between, written=at_once, name=".document.linked"):
    """O_TMPFILE has no way to replace, so the link goes beside and is renamed."""
    open(path).read()
    between()
    folder = os.path.dirname(path)
    descriptor = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o644)
    os.write(descriptor, NEW.encode())
    temporary = os.path.join(folder, name)
    root = os.open("/", os.O_RDONLY)
    # Only with a folder's descriptor does Python follow the link.
    os.link(f"/proc/self/fd/{descriptor}", temporary, src_dir_fd=root, follow_symlinks=True)
    os.close(root)
    os.close(descriptor)
    written()
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
    return lambda path, between: save_when_told(words, path, between)


def save_when_told(words, path, between):
    folder = outside(path)
    loaded, proceed = os.path.join(folder, "loaded"), os.path.join(folder, "proceed")
    for name in (loaded, proceed):
        if os.path.exists(name):
            os.unlink(name)
    wait = f"touch '{loaded}'; until [ -e '{proceed}' ]; do sleep 0.02; done"
    names = {"DOCUMENT": path, "WAIT": wait, "LOADED": loaded, "PROCEED": proceed, "OUTSIDE": folder}
    command = [re.sub("|".join(names), lambda found: names[found[0]], word) for word in words]
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


def vim(*settings):
    # Below /tmp vim makes no backup of itself, and writes in place.
    words = ["vim", "-u", "NONE", "-es", "-c", " ".join(["set noautoread backupskip=", *settings])]
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


def libreoffice(path, between):
    """A word processor's own format. Its `uno` module is that of the distribution's Python."""
    helper = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libreoffice-save.py")
    save_when_told(["/usr/bin/python3", helper, "DOCUMENT", "LOADED", "PROCEED", "OUTSIDE/office-settings"], path, between)


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
        "emacs", "-Q", "--batch", "DOCUMENT", "--eval", "(setq backup-enable-predicate (lambda (name) t))", "--eval",
        '(progn (goto-char 1) (re-search-forward "line 7$") (replace-match "line seven") (save-buffer))', reads_first=True),
    "LibreOffice": libreoffice,
}
# Those in which the provider may see the new file before it has its name, where the program is slow.
SLOW = {
    "temporary file and rename", "write new, rename old away, rename new", "backup by link, temporary file and rename", "exchange",
    "O_TMPFILE, link, rename",
}
# What must be installed, where it is not what the way is called.
NEEDED = {"LibreOffice": ["soffice", "/usr/lib/python3/dist-packages/uno.py"]}
SUFFIXES = {"LibreOffice": ".odt"}
EDITORS = {"sed", "perl", "vim", "rsync", "git", "nano", "emacs", "LibreOffice"}

# Those that differ most.
QUICK = {
    "rename away, create", "write new, rename old away, rename new", "exchange", "delete, create", "sed -i", "perl -i", "vim",
    "vim backupcopy=yes", "rsync", "git checkout",
}


def missing(name):
    """The first program that a way needs and that is not installed."""
    word = name.split()[0]
    needed = NEEDED.get(word, [word] if word in EDITORS else [])
    return next((each for each in needed if not shutil.which(each) and not os.path.exists(each)), None)
