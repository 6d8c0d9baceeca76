"""What the workloads that kill daemons share: a model of what the tree must be, and the worker whose calls it follows."""
import json, os, random, stat

from domain import Failed


class Model:
    """Files by path, with shared content objects for hard links; folders as a set of paths. The root is ''."""

    def __init__(self):
        self.folders = {""}
        self.files = {}  # path -> [content]: a list of one, shared by hard links
        self.symlinks = {}

    def names(self):
        return set(self.files) | set(self.symlinks) | (self.folders - {""})

    def apply(self, operation):
        kind, *rest = operation
        getattr(self, "apply_" + kind)(*rest)

    def apply_mkdir(self, path):
        self.folders.add(path)

    def apply_rmdir(self, path):
        self.folders.discard(path)

    def apply_create(self, path):
        self.files[path] = [b""]

    def apply_empty(self, path):
        self.files[path][0] = b""

    def apply_truncate(self, path, size):
        content = self.files[path][0]
        self.files[path][0] = content[:size] + bytes(max(0, size - len(content)))

    def apply_write(self, path, offset, seed, size):
        content = self.files[path][0]
        data = random.Random(seed).randbytes(size)
        self.files[path][0] = content[:offset] + bytes(max(0, offset - len(content))) + data + content[offset + size :]

    def apply_close(self, path):
        pass

    def apply_unlink(self, path):
        self.files.pop(path, None) or self.symlinks.pop(path, None)

    def apply_symlink(self, path, target):
        self.symlinks[path] = target

    def apply_link(self, path, new):
        self.files[new] = self.files[path]

    def apply_rename(self, path, new):
        if path in self.folders:
            for table in (self.files, self.symlinks):
                for name in [name for name in table if name.startswith(path + "/")]:
                    table[new + name[len(path) :]] = table.pop(name)
            moved = {name for name in self.folders if name == path or name.startswith(path + "/")}
            self.folders = (self.folders - moved) | {new + name[len(path) :] for name in moved}
        elif path in self.files:
            self.symlinks.pop(new, None)
            self.files[new] = self.files.pop(path)
        else:
            self.files.pop(new, None)
            self.symlinks[new] = self.symlinks.pop(path)

    def tree(self):
        result = {path: "folder" for path in self.folders if path}
        result.update({path: content[0] for path, content in self.files.items()})
        result.update({path: "-> " + target for path, target in self.symlinks.items()})
        return result


def tree_of(top):
    result = {}
    for folder, folders, files in os.walk(top):
        for name in folders + files:
            path = os.path.join(folder, name)
            relative = os.path.relpath(path, top)
            status = os.lstat(path)
            if stat.S_ISDIR(status.st_mode):
                result[relative] = "folder"
            elif stat.S_ISLNK(status.st_mode):
                result[relative] = "-> " + os.readlink(path)
            else:
                with open(path, "rb") as file:
                    result[relative] = file.read()
                if len(result[relative]) != status.st_size:
                    raise Failed(f"{relative}: stat says {status.st_size} bytes, {len(result[relative])} were read")
    return result


def describe(value):
    if value is None:
        return "nothing"
    return value if isinstance(value, str) else f"{len(value)} bytes ({value[:8].hex()}…)"


class Worker:
    def __init__(self, top, journal, model, seed):
        self.top, self.journal, self.model = top, journal, model
        self.random = random.Random(seed)
        self.count = 0

    def call(self, operation, action):
        """One system call between two lines of the journal."""
        self.journal.write(json.dumps(operation) + "\n")
        result = action()
        self.journal.write("done\n")
        self.model.apply(operation)
        return result

    def path(self, name):
        return os.path.join(self.top, name)

    def new_name(self):
        self.count += 1
        folder = self.random.choice(sorted(self.model.folders))
        return os.path.join(folder, f"n{self.random.randrange(10**9)}-{self.count}")

    def file(self):
        return self.random.choice(sorted(self.model.files)) if self.model.files else None

    def write(self, name, descriptor, offset):
        seed, size = self.random.randrange(10**9), self.random.choice([1, 100, 4096, 20_000, 131_072])
        data = random.Random(seed).randbytes(size)

        def action():
            if os.pwrite(descriptor, data, offset) != size:
                raise OSError("short write")

        self.call(["write", name, offset, seed, size], action)
        return offset + size

    def finish(self, name, descriptor):
        if self.random.random() < 0.2:
            os.fsync(descriptor)
        self.call(["close", name], lambda: os.close(descriptor))

    def create(self):
        name = self.new_name()
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR
        descriptor = self.call(["create", name], lambda: os.open(self.path(name), flags, 0o644))
        offset = 0
        for _ in range(self.random.randrange(0, 4)):
            offset = self.write(name, descriptor, offset)
        self.finish(name, descriptor)

    def overwrite(self):
        name = self.file()
        descriptor = self.call(["empty", name], lambda: os.open(self.path(name), os.O_WRONLY | os.O_TRUNC))
        self.write(name, descriptor, 0)
        self.finish(name, descriptor)

    def patch(self):
        name = self.file()
        descriptor = os.open(self.path(name), os.O_RDWR)
        size = len(self.model.files[name][0])
        self.write(name, descriptor, self.random.choice([size, self.random.randrange(size + 1)]))
        self.finish(name, descriptor)

    def truncate(self):
        name = self.file()
        size = self.random.randrange(2 * len(self.model.files[name][0]) + 2)
        self.call(["truncate", name, size], lambda: os.truncate(self.path(name), size))

    def rename(self):
        name = self.file()
        over = self.file() if self.random.random() < 0.3 else None
        # Renaming a file onto another name of itself does nothing; the model has no words for it.
        if over is None or self.model.files[over] is self.model.files[name]:
            over = self.new_name()
        self.call(["rename", name, over], lambda: os.rename(self.path(name), self.path(over)))

    def save_safely(self):
        """As editors do: write beside, then rename over."""
        name = self.file()
        beside = os.path.join(os.path.dirname(name), f".save{self.random.randrange(10**9)}.tmp")
        descriptor = self.call(["create", beside], lambda: os.open(self.path(beside), os.O_CREAT | os.O_WRONLY, 0o644))
        self.write(beside, descriptor, 0)
        self.finish(beside, descriptor)
        self.call(["rename", beside, name], lambda: os.rename(self.path(beside), self.path(name)))

    def make_folder(self):
        if len(self.model.folders) > 40:
            return self.remove_folder()
        name = self.new_name()
        self.call(["mkdir", name], lambda: os.mkdir(self.path(name)))

    def move_folder(self):
        folders = sorted(self.model.folders - {""})
        if not folders:
            return self.make_folder()
        name, new = self.random.choice(folders), self.new_name()
        if not (new + "/").startswith(name + "/"):
            self.call(["rename", name, new], lambda: os.rename(self.path(name), self.path(new)))

    def remove_folder(self):
        used = {os.path.dirname(name) for name in self.model.names()}
        empty = sorted(self.model.folders - used - {""})
        if empty:
            name = self.random.choice(empty)
            self.call(["rmdir", name], lambda: os.rmdir(self.path(name)))

    def remove(self):
        many_links = len(self.model.symlinks) > 20
        name = self.random.choice(sorted(self.model.symlinks)) if many_links else self.file()
        self.call(["unlink", name], lambda: os.unlink(self.path(name)))

    def link(self):
        name, new = self.file(), self.new_name()
        self.call(["link", name, new], lambda: os.link(self.path(name), self.path(new)))

    def symlink(self):
        name = self.new_name()
        self.call(["symlink", name, "somewhere/else"], lambda: os.symlink("somewhere/else", self.path(name)))

    def run(self):
        steps = [self.create] * 6 + [self.overwrite, self.patch, self.patch, self.truncate, self.rename, self.rename]
        steps += [self.save_safely, self.save_safely, self.make_folder, self.move_folder, self.remove_folder, self.link]
        steps += [self.symlink, self.remove, self.remove]
        while True:
            # The tree stays small, so that it can be read as a whole after each kill.
            if len(self.model.files) > 250:
                self.remove()
            elif len(self.model.files) < 5:
                self.create()
            else:
                self.random.choice(steps)()


def differences(expected, actual):
    return [f"{path}: should be {describe(expected.get(path))}, is {describe(actual.get(path))}"
            for path in sorted(set(expected) | set(actual)) if expected.get(path) != actual.get(path)]
