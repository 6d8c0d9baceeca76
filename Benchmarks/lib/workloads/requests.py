"""What one call costs, in microseconds: the same call on many files, by one thread."""
import ctypes, fcntl, os, random

from ..plan import Row, Stage, Step
from .common import Wrong, now, read_all, write_file

BLOCK = 4096
PARTIAL_BLOCKS = 2048
PARTIAL_SIZE = PARTIAL_BLOCKS * BLOCK
LIBRARY = ctypes.CDLL(None, use_errno=True)
# statx(2): the attributes as the server of the file system has them now
AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, AT_FDCWD = 0x2000, 0x7FF, -100

WRITES = "a transaction of the index"
KERNEL = "none: the kernel answers by itself"


def row(name, what, requests):
    return Row(name, "µs", False, what, requests)


# (name, what, requests to the daemon, needs a remount before)
OPERATIONS = (
    ("create-close", "open of a new file, close", f"CREATE, {WRITES}; RELEASE", False),
    ("create-write-close", "open of a new file, write of 4 KiB, close",
     f"CREATE, {WRITES}; RELEASE, and one more for the edit", False),
    ("mkdir", "mkdir", f"MKDIR, {WRITES}", False),
    ("symlink", "symlink", f"SYMLINK, {WRITES}", False),
    ("link", "link", f"LINK, {WRITES}", False),
    ("lookup", "lstat of a name not looked up since the remount, caches dropped", "LOOKUP; the folder was not listed", True),
    ("lookup-again", "lstat of it again", KERNEL, False),
    ("lookup-missing", "lstat of a name that is not there", "LOOKUP; the answer is kept", False),
    ("get-attributes", "statx with AT_STATX_FORCE_SYNC", "GETATTR", False),
    ("readlink", "readlink, the first time", "READLINK; the answer is kept", False),
    ("open-close", "open for reading, close", "OPEN and RELEASE", False),
    ("open-read-close", "open, read of 4 KiB, close",
     "OPEN and RELEASE; the content file is read by the kernel with passthrough", False),
    ("list-folder", "listing a folder, for each of its 20 files", "OPENDIR, READDIRPLUS, RELEASEDIR", False),
    ("chmod", "chmod", f"SETATTR, {WRITES}", False),
    ("utimens", "utime", f"SETATTR, {WRITES}", False),
    ("truncate", "truncate from 4 KiB to 2 KiB", f"SETATTR, {WRITES}, and the content file", False),
    ("setxattr", "setxattr of user.bench", f"SETXATTR, {WRITES}", False),
    ("getxattr", "getxattr of user.bench", "GETXATTR", False),
    ("rename", "rename in the folder", f"RENAME, {WRITES}", False),
    ("statfs", "statvfs", "STATFS", False),
    ("lock", "fcntl lock and unlock of a whole file", "none: the kernel keeps the locks of this machine", False),
    ("write-local", "write of 4 KiB at random places of a file whose content is here", "with passthrough none", False),
    ("write-partial", "the same in a file opened as a large placeholder", "WRITE: the daemon writes the content file", False),
    ("read-partial", "read of 4 KiB at random places of such a file, no pages of it in the cache; native: from the cache",
     "READ: the daemon reads the content file", False),
)
DELETIONS = (("unlink", "unlink", f"UNLINK, {WRITES}"), ("rmdir", "rmdir", f"RMDIR, {WRITES}"))


def each(count, function):
    """Microseconds of a call, the loop's own time included: about a tenth of one."""
    start = now()
    for number in range(count):
        function(number)
    return (now() - start) / count * 1e6


def file(folder, number, kind="file"):
    return f"{folder}/{kind}s/{number // 20:04}/{kind}-{number % 20}"


def make_places(folder, configuration, kind):
    os.mkdir(f"{folder}/{kind}s")
    for number in range(0, configuration["calls"], 20):
        os.mkdir(os.path.dirname(file(folder, number, kind)))


def create_close(folder, configuration):
    make_places(folder, configuration, "empty")
    return each(configuration["calls"], lambda number: write_file(file(folder, number, "empty"), b""))


def create_write_close(folder, configuration):
    make_places(folder, configuration, "file")
    data = os.urandom(BLOCK)
    return each(configuration["calls"], lambda number: write_file(file(folder, number), data))


def mkdir(folder, configuration):
    make_places(folder, configuration, "folder")
    return each(configuration["calls"], lambda number: os.mkdir(file(folder, number, "folder")))


def symlink(folder, configuration):
    make_places(folder, configuration, "symlink")
    return each(configuration["calls"], lambda number: os.symlink("target", file(folder, number, "symlink")))


def link(folder, configuration):
    make_places(folder, configuration, "link")
    return each(configuration["calls"], lambda number: os.link(file(folder, number), file(folder, number, "link")))


def lookup(folder, configuration):
    # The folders on the way are looked up before.
    for number in range(0, configuration["calls"], 20):
        os.lstat(os.path.dirname(file(folder, number)))
    return each(configuration["calls"], lambda number: os.lstat(file(folder, number)))


def lookup_again(folder, configuration):
    for number in range(configuration["calls"]):
        os.lstat(file(folder, number))
    return each(configuration["calls"], lambda number: os.lstat(file(folder, number)))


def lookup_missing(folder, configuration):
    return each(configuration["calls"], lambda number: os.path.lexists(file(folder, number) + "-missing"))


def get_attributes(folder, configuration):
    buffer = ctypes.create_string_buffer(256)
    paths = [file(folder, number).encode() for number in range(configuration["calls"])]

    def ask(number):
        if LIBRARY.statx(AT_FDCWD, paths[number], AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, buffer) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    each(configuration["calls"], lambda number: os.lstat(paths[number]))
    return each(configuration["calls"], ask)


def readlink(folder, configuration):
    each(configuration["calls"], lambda number: os.lstat(file(folder, number, "symlink")))
    return each(configuration["calls"], lambda number: os.readlink(file(folder, number, "symlink")))


def open_close(folder, configuration):
    return each(configuration["calls"], lambda number: os.close(os.open(file(folder, number), os.O_RDONLY)))


def open_read_close(folder, configuration):
    paths = [file(folder, number) for number in range(configuration["calls"])]
    if any(read_all(path, BLOCK) != BLOCK for path in paths):
        raise Wrong("a file has another size")

    def read(number):
        descriptor = os.open(paths[number], os.O_RDONLY)
        os.read(descriptor, BLOCK)
        os.close(descriptor)

    return each(configuration["calls"], read)


def list_folder(folder, configuration):
    places = range(0, configuration["calls"], 20)
    start = now()
    for number in places:
        os.listdir(os.path.dirname(file(folder, number)))
    return (now() - start) / configuration["calls"] * 1e6


def chmod(folder, configuration):
    return each(configuration["calls"], lambda number: os.chmod(file(folder, number), 0o600))


def utimens(folder, configuration):
    return each(configuration["calls"], lambda number: os.utime(file(folder, number), ns=(1_000_000_000, 1_000_000_000)))


def truncate(folder, configuration):
    return each(configuration["calls"], lambda number: os.truncate(file(folder, number), BLOCK // 2))


def setxattr(folder, configuration):
    return each(configuration["calls"], lambda number: os.setxattr(file(folder, number), "user.bench", b"value"))


def getxattr(folder, configuration):
    return each(configuration["calls"], lambda number: os.getxattr(file(folder, number), "user.bench"))


def rename(folder, configuration):
    return each(configuration["calls"],
                lambda number: os.rename(file(folder, number, "empty"), file(folder, number, "empty") + "-new"))


def statfs(folder, configuration):
    return each(configuration["calls"], lambda number: os.statvfs(folder))


def lock(folder, configuration):
    descriptor = os.open(file(folder, 0), os.O_RDWR)

    def lock_and_unlock(number):
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.lockf(descriptor, fcntl.LOCK_UN)

    return each(configuration["calls"], lock_and_unlock)


def places(configuration):
    generator = random.Random(7)
    return [generator.randrange(PARTIAL_BLOCKS) * BLOCK for _ in range(configuration["calls"])]


def write_blocks(path, configuration):
    data, offsets = os.urandom(BLOCK), places(configuration)
    descriptor = os.open(path, os.O_RDWR)
    try:
        # The first write makes room and notes the edit; a background fetch of the rest has time to end.
        read_all(path)
        os.pwrite(descriptor, data, 0)
        os.fsync(descriptor)
        return each(configuration["calls"], lambda number: os.pwrite(descriptor, data, offsets[number]))
    finally:
        os.close(descriptor)


def write_local(folder, configuration):
    path = folder + "/local"
    write_file(path, os.urandom(PARTIAL_SIZE))
    return write_blocks(path, configuration)


def write_partial(folder, configuration):
    return write_blocks(configuration["partial"], configuration)


def read_partial(folder, configuration):
    offsets = places(configuration)
    descriptor = os.open(configuration["partial-read"], os.O_RDONLY)
    try:
        read_all(configuration["partial-read"])
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
        elapsed = 0
        for offset in offsets:
            # The mount's pages go, those of the content file below stay: what is left is the request.
            if not configuration["is-native"]:
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            start = now()
            if len(os.pread(descriptor, BLOCK, offset)) != BLOCK:
                raise Wrong("a read was short")
            elapsed += now() - start
        return elapsed / len(offsets) * 1e6
    finally:
        os.close(descriptor)


def unlink(folder, configuration):
    return each(configuration["calls"], lambda number: os.unlink(file(folder, number)))


def rmdir(folder, configuration):
    return each(configuration["calls"], lambda number: os.rmdir(file(folder, number, "folder")))


# What must have been done before.
NEEDS = {name: ("create-write-close",) for name, *_ in OPERATIONS} | {
    "create-close": (), "create-write-close": (), "mkdir": (), "symlink": (), "statfs": (), "readlink": ("symlink",),
    "rename": ("create-close",), "getxattr": ("create-write-close", "setxattr"), "write-local": (), "write-partial": (),
    "read-partial": (),
}
STAGE = Stage(
    "requests", "requests",
    tuple(Step(name, row(name, what, requests), needs=NEEDS[name], is_cold=is_cold, leaves_uploads=True)
          for name, what, requests, is_cold in OPERATIONS),
    deletions=(Step("unlink", row(*DELETIONS[0]), needs=("create-write-close",), leaves_uploads=True),
               Step("rmdir", row(*DELETIONS[1]), needs=("mkdir",), leaves_uploads=True)))
