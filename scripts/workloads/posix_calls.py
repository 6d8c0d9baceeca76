"""What the scripts posix-*.py share: calls that Python does not have, other users, and answers as lines of text."""
import ctypes, errno, os, pickle, stat

libc = ctypes.CDLL(None, use_errno=True)
AT_FDCWD = -100
NOREPLACE, EXCHANGE, WHITEOUT = 1, 2, 4
KEEP_SIZE, PUNCH, ZERO = 1, 2, 16


def check(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def renameat2(source, target, flags):
    check(libc.renameat2(AT_FDCWD, os.fsencode(source), AT_FDCWD, os.fsencode(target), ctypes.c_uint(flags)))


def fallocate(descriptor, mode, offset, count):
    check(libc.fallocate(descriptor, mode, ctypes.c_long(offset), ctypes.c_long(count)))


def link_nameless(descriptor, path):
    """linkat(2) of a file that O_TMPFILE made."""
    check(libc.linkat(AT_FDCWD, b"/proc/self/fd/%d" % descriptor, AT_FDCWD, os.fsencode(path), 0x400))


def syncfs(descriptor):
    check(libc.syncfs(descriptor))


def show(label, value):
    print(f"{label}: {value}", flush=True)


def answer(action):
    """What a call says: its result, or the name of its errno."""
    try:
        result = action()
        return "done" if result is None else result
    except OSError as problem:
        # Without a number it is Python's own: a path that is too long for a socket's address.
        return errno.errorcode.get(problem.errno, "not asked")


def attempt(label, action):
    show(label, answer(action))


def as_user(user, group, groups, action):
    """What a call says to another user."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups(groups)
            os.setresgid(group, group, group)
            os.setresuid(user, user, user)
            os.write(writer, pickle.dumps(answer(action)))
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        result = pipe.read()
    os.waitpid(child, 0)
    return pickle.loads(result) if result else "no answer"


def facts(path):
    """Type, mode, links and owner; a folder's links count its subfolders."""
    status = os.lstat(path)
    kind = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link", stat.S_IFIFO: "fifo",
            stat.S_IFSOCK: "socket", stat.S_IFCHR: "character", stat.S_IFBLK: "block"}[stat.S_IFMT(status.st_mode)]
    device = f" {os.major(status.st_rdev)}:{os.minor(status.st_rdev)}" if kind in ("character", "block") else ""
    return f"{kind} {stat.S_IMODE(status.st_mode):04o} links {status.st_nlink} owner {status.st_uid}:{status.st_gid}{device}"


def put(path, data=b""):
    with open(path, "wb") as file:
        file.write(data)


def get(path):
    with open(path, "rb") as file:
        return file.read()


def digest(data):
    return f"{len(data)} bytes, head {data[:12]!r}, sum {sum(data) % 65521}"
