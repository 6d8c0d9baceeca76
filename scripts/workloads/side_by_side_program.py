"""The program that side-by-side.py runs on each machine."""
import ctypes, errno, os, random, re, stat, time

TOKEN = re.compile(rb"<[a-z0-9]{14}>")
SIZE = 16
LIBC = ctypes.CDLL(None, use_errno=True)


def tokens_of(content):
    return {token.decode() for token in TOKEN.findall(content)}


RENAME_NOREPLACE, RENAME_EXCHANGE = 1, 2


def rename(path, other, flags):
    if LIBC.renameat2(-100, os.fsencode(path), -100, os.fsencode(other), flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


class Program:
    """Works at random below `top` until a time. Every token that a call has taken is in the journal (`W`), and so is every
    one that it gave away knowing it (`G`): one that it had read through the descriptor of what was then removed or replaced.
    `R` is a removal of something that others had just put there."""

    def __init__(self, name, top, journal, seed, *, looks_only, evict):
        self.name, self.top, self.evict, self.looks_only = name, top, evict, looks_only
        self.random, self.journal, self.count, self.held = random.Random(seed), open(journal, "w", buffering=1), 0, []

    def run(self, end):
        while time.monotonic() < end:
            time.sleep(self.random.uniform(0, 0.4))
            try:
                self.look() if self.looks_only else self.act()
            except OSError:
                pass  # What others did explains it: a name that has just gone, a daemon that was killed.
        for descriptor, _ in self.held:
            self.close(descriptor)

    # Names

    def folder(self):
        path = self.top
        while self.random.random() < 0.4 and path.count("/") - self.top.count("/") < 2:
            path = os.path.join(path, self.random.choice(["d0", "d1", "d2"]))
        return path

    def file(self):
        return os.path.join(self.folder(), self.random.choice(["f0", "f1", "f2", "f3"]))

    def subfolder(self):
        return os.path.join(self.folder(), self.random.choice(["d0", "d1", "d2"]))

    # What is written and given away

    def token(self):
        self.count += 1
        return f"<{self.name}x{self.count:0{SIZE - 3 - len(self.name)}d}>"

    def note(self, kind, text):
        """`kind`, the time, and what it is about."""
        self.journal.write(f"{kind} {time.strftime('%T')}.{time.time_ns() // 1_000_000 % 1000:03} {text}\n")

    def give(self, tokens):
        if tokens:
            self.note("G", " ".join(sorted(tokens)))

    def write(self, descriptor, offset, note):
        # A daemon that has died serves neither, while the kernel may still write to its content file.
        os.fstat(descriptor)
        token = self.token()
        # Given away also by a call that fails: a daemon that was killed meanwhile may have carried it out.
        self.give(tokens_of(os.pread(descriptor, SIZE, offset)))
        os.pwrite(descriptor, token.encode(), offset)
        # What somebody here has removed or replaced is gone with its last close.
        if os.fstat(descriptor).st_nlink > 0:
            self.note("W", f"{token} {note}")

    def close(self, descriptor):
        try:
            os.close(descriptor)
        except OSError:
            pass

    def content(self, descriptor):
        return os.pread(descriptor, 1 << 20, 0)

    def replacing(self, path, change, make=None):
        """Calls `change`, which takes what `path` stands for away, and gives away what that was; `make`, when there is nothing."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as problem:
            if problem.errno == errno.ELOOP:
                change()
                return self.note("R", path)
            if problem.errno == errno.ENOENT and make:
                return make()
            raise
        try:
            known = tokens_of(self.content(descriptor)) if stat.S_ISREG(os.fstat(descriptor).st_mode) else set()
            before = os.fstat(descriptor).st_ctime_ns
            try:
                change()
            except OSError:
                # It may have been done all the same, to whatever was there.
                self.give(known)
                self.note("R", path)
                raise
            # Otherwise another one had its place already, and is what went: it was not seen, and may be missed. So it is where
            # others' version had come to the name: that leaves the node without one, and its time of change as it was.
            after = os.fstat(descriptor)
            if after.st_nlink == 0 and after.st_ctime_ns == before:
                self.note("R", path)
            if after.st_nlink == 0:
                try:
                    known |= tokens_of(self.content(descriptor))
                except OSError:
                    pass
                self.give(known)
            else:
                self.note("R", path)
        finally:
            self.close(descriptor)

    def rename(self, path, target):
        self.replacing(target, lambda: os.rename(path, target), lambda: rename(path, target, RENAME_NOREPLACE))

    # Acts

    def look(self):
        for folder, _, files in os.walk(self.top):
            for name in files:
                path = os.path.join(folder, name)
                if not os.path.islink(path) and self.random.random() < 0.5:
                    with open(path, "rb") as file:
                        file.read()
        if self.random.random() < 0.2:
            self.evict(self.file())

    def act(self):
        acts = [(22, self.save), (10, self.append), (12, self.save_by_rename), (8, self.hold), (8, self.touch_held),
                (8, self.move), (4, self.exchange), (6, self.remove), (8, self.make_folder), (8, self.move_folder),
                (3, self.remove_tree), (3, self.make_link), (3, self.change_kind), (4, self.read), (3, self.evict_one)]
        self.random.choices([act for _, act in acts], [weight for weight, _ in acts])[0]()

    def save(self):
        path = self.file()
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            self.give(tokens_of(self.content(descriptor)))
            os.ftruncate(descriptor, 0)
            for piece in range(self.random.randint(1, 3)):
                self.write(descriptor, piece * SIZE, "save " + path)
                if self.random.random() < 0.4:
                    time.sleep(self.random.uniform(0, 0.5))
            if self.random.random() < 0.2:
                os.fsync(descriptor)
        finally:
            self.close(descriptor)

    def append(self):
        path = self.file()
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            self.write(descriptor, os.fstat(descriptor).st_size, "append " + path)
        finally:
            self.close(descriptor)

    def save_by_rename(self):
        path = self.file()
        temporary = os.path.join(os.path.dirname(path), f"new-{self.name}")
        descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            self.write(descriptor, 0, "save by rename " + path)
        finally:
            self.close(descriptor)
        self.rename(temporary, path)

    def hold(self):
        if len(self.held) < 4:
            path = self.file()
            self.held.append((os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644), path))
        else:
            descriptor, _ = self.held.pop(self.random.randrange(len(self.held)))
            self.close(descriptor)

    def touch_held(self):
        if not self.held:
            return
        index = self.random.randrange(len(self.held))
        descriptor, path = self.held[index]
        try:
            size = os.fstat(descriptor).st_size
            offset = 0 if size >= SIZE and self.random.random() < 0.4 else size
            self.write(descriptor, offset, "held " + path)
            if self.random.random() < 0.2:
                os.fsync(descriptor)
        except OSError:
            self.held.pop(index)
            self.close(descriptor)
            raise

    def move(self):
        path, target = self.file(), self.file()
        if path != target:
            os.lstat(path)
            self.rename(path, target)

    def exchange(self):
        rename(self.file(), self.file(), RENAME_EXCHANGE)

    def remove(self, path=None):
        path = path or self.file()
        self.replacing(path, lambda: os.unlink(path))

    def make_folder(self):
        os.makedirs(self.subfolder(), exist_ok=True)

    def move_folder(self):
        path, target = self.subfolder(), self.subfolder()
        if path != target:
            # Both may be files by now.
            os.lstat(path)
            self.rename(path, target)

    def remove_tree(self):
        for folder, folders, files in os.walk(self.subfolder(), topdown=False):
            for name in files:
                self.remove(os.path.join(folder, name))
            for name in folders:
                path = os.path.join(folder, name)
                os.unlink(path) if os.path.islink(path) else os.rmdir(path)
            os.rmdir(folder)

    def make_link(self):
        os.symlink(f"target{self.random.randrange(3)}", self.file())

    def change_kind(self):
        path, target = self.file(), self.subfolder()
        rename(path, target, RENAME_NOREPLACE)

    def read(self):
        with open(self.file(), "rb") as file:
            file.read()

    def evict_one(self):
        self.evict(self.file())
