"""Where domains are mounted, and where their sockets are."""
import os
import re
import time

from .client import Domain, PromiseError


def domains():
    """By mount point: the mounted domains, as the kernel lists them (proc_pid_mountinfo(5))."""
    return {point: Domain(_socket(name, user) or _places(name, user)[0]) for point, _, name, user in _mounts()}


def locate(path):
    """The domain that a path is on, and the path from the domain's root. Links in the folders above are resolved, and the last
    name where it is a link outside that leads into a mount."""
    path = os.fsencode(path)
    mounts = list(_mounts(every=True))
    whole = _with_folders_resolved(path)
    best = _mount_holding(whole, mounts)
    if best is None or best[2] is None:
        target = os.path.realpath(whole)
        best, whole = (_mount_holding(target, mounts), target) if target != whole else (best, whole)
    if best is None or best[2] is None:
        raise PromiseError(f"{os.fsdecode(path)} is not on a PromiseFS mount", exit_status=3)
    point, root, domain, user = best
    below = whole[len(point.rstrip(b"/")):].strip(b"/")
    return Domain(_awaited_socket(domain, user)), b"/".join(part for part in (root.strip(b"/"), below) if part)


def _with_folders_resolved(path):
    """As the system does it: what `..` leads to after a link is known to the disk alone."""
    parent, name = os.path.split(path.rstrip(b"/"))
    if name in (b"", b".", b".."):
        return os.path.realpath(path)
    return os.path.join(os.path.realpath(parent or (b"/" if path.startswith(b"/") else b".")), name)


def _mount_holding(whole, mounts):
    best = None
    for point, root, domain, user in mounts:
        if whole == point or whole.startswith(point.rstrip(b"/") + b"/"):
            if best is None or len(point) >= len(best[0]):
                best = point, root, domain, user
    return best


def _mounts(every=False):
    with open("/proc/self/mountinfo", "rb") as file:
        for line in file:
            fields = line.rstrip(b"\n").split(b" ")
            dash = fields.index(b"-", 6)
            is_ours = fields[dash + 1] == b"fuse.promisefs"
            if not is_ours and not every:
                continue
            user = re.search(rb"(?:^|,)user_id=(\d+)", fields[dash + 3])
            name = _unescaped(fields[dash + 2]).decode() if is_ours else None
            yield _unescaped(fields[4]), _unescaped(fields[3]), name, int(user[1]) if user else 0


def _unescaped(field):
    return re.sub(rb"\\([0-7]{3})", lambda match: bytes([int(match[1], 8)]), field)


# A daemon that has died or is replaced has a successor after a moment, which makes the socket anew.
_PATIENCE_SECONDS = 1.5


def _awaited_socket(domain, user):
    end = time.monotonic() + _PATIENCE_SECONDS
    while True:
        path = _socket(domain, user)
        if path is not None:
            return path
        if time.monotonic() >= end:
            raise PromiseError(f"no daemon answers for the domain '{domain}'")
        time.sleep(0.05)


def _socket(domain, user):
    """None when there is none; one that belongs to a stranger is not taken."""
    for path in _places(domain, user):
        try:
            if os.lstat(path).st_uid in (user, 0):
                return path
        except OSError:
            continue
    return None


def _places(domain, user):
    """Where daemons put their sockets."""
    folders = []
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if user == os.geteuid():
        folders.append(runtime + "/promisefs" if runtime.startswith("/") else
                       "/run/promisefs" if user == 0 else f"/tmp/promisefs-{user}")
    folders += ["/run/promisefs"] if user == 0 else []
    folders.append(f"/run/user/{user}/promisefs")
    folders += [f"/tmp/promisefs-{user}"] if user != 0 else []
    return [f"{folder}/{domain}.sock" for folder in folders]
