"""Other FUSE file systems, when they are installed. Each stores in a folder of the same disk."""
import contextlib, json, os, pathlib, socket, subprocess, time, urllib.request

from . import system
from .command_line import Refused, tell
from .subjects import Subject

# Label, and what must be installed for it.
PEERS = {
    "bindfs": ["bindfs"],
    "hp": ["the example passthrough_hp of libfuse, named by --passthrough-hp"],
    "hp-nopt": ["the example passthrough_hp of libfuse, named by --passthrough-hp"],
    "hp-uring": ["the example passthrough_hp of libfuse 3.18 or newer, named by --passthrough-hp"],
    "rclone-local": ["rclone"],
    "rclone-dav": ["rclone"],
    "davfs2": ["mount.davfs", "rclone"],
    "s3fs": ["s3fs", "a bucket named by --s3"],
}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Program:
    """A process of ours that stays; its words go to a log, whose end is the reason when it dies."""

    def __init__(self, command, log):
        self.command, self.log, self.process = command, log, None

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            start_new_session=True, cwd="/")

    def reason(self):
        lines = pathlib.Path(self.log).read_text(errors="replace").strip().splitlines()
        return lines[-1][:200] if lines else "it said nothing"

    def stop(self):
        """After its mount is gone most end by themselves."""
        if self.process is None:
            return
        for end in (lambda: None, self.process.terminate, self.process.kill):
            end()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=10 if end == self.process.terminate else 3)
                return


class Server(Program):
    """`rclone serve`: the storage of the peers that need a network protocol."""

    def __init__(self, folder, protocol, *more):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        data = folder + "/data"
        os.makedirs(data + "/bucket", exist_ok=True)
        super().__init__([system.tool("rclone"), "serve", protocol, "--config", "/dev/null", "--addr", f"127.0.0.1:{self.port}",
                          *more, data], folder + "/server.log")

    def start(self):
        super().start()
        end = time.monotonic() + 15
        while time.monotonic() < end and self.process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            time.sleep(0.05)
        raise system.CommandFailed(f"rclone serve: {self.reason()}")


class Peer(Subject):
    """A mount made by a program that stays in the foreground."""

    def __init__(self, scratch, label):
        self.home = scratch.folder(label)
        self.source, self.mount = scratch.folder(label, "source"), scratch.folder(label, "mnt")
        super().__init__(label, self.mount)
        self.program = self.server = None
        scratch.callback(self.destroy)

    def command(self):
        raise NotImplementedError

    def start(self):
        if self.server and self.server.process is None:
            self.server.start()
        self.program = Program(self.command(), self.home + "/log")
        self.program.start()
        if not system.wait_for_mount(self.mount, self.program.process):
            raise system.CommandFailed(f"{self.label} did not mount: {self.program.reason()}")

    def forget(self):
        self.settle()
        self.unmount()
        self.start()

    def unmount(self):
        system.detach(self.mount)
        if self.program:
            self.program.stop()

    def is_alive(self):
        return system.is_mounted(self.mount)

    def destroy(self):
        self.unmount()
        if self.server:
            self.server.stop()


class Bindfs(Peer):
    description = "bindfs"

    def __init__(self, scratch):
        super().__init__(scratch, "bindfs")
        self.description = text_version("bindfs", "--version")

    def command(self):
        return [system.tool("bindfs"), "-f", self.source, self.mount]


class PassthroughExample(Peer):
    """libfuse's example passthrough_hp, with and without kernel passthrough, and with FUSE over io_uring."""

    OPTIONS = {"hp": [], "hp-nopt": ["--nopassthrough"], "hp-uring": ["-o", "io_uring"]}
    WORDS = {"hp": "", "hp-nopt": " without passthrough", "hp-uring": " with io_uring"}

    def __init__(self, scratch, label, path):
        super().__init__(scratch, label)
        self.path = path
        self.options = self.OPTIONS[label]
        self.description = "libfuse's passthrough_hp" + self.WORDS[label]

    def command(self):
        return [self.path, "--foreground", *self.options, self.source, self.mount]


class Rclone(Peer):
    """rclone mount with its cache, on a local remote or on WebDAV."""

    def __init__(self, scratch, label):
        super().__init__(scratch, label)
        self.port = free_port()
        self.cache = self.home + "/cache"
        self.description = text_version("rclone", "version") + " mount, --vfs-cache-mode full, "
        if label == "rclone-dav":
            self.server = Server(self.home, "webdav")
            self.remote = f":webdav,url='{self.server.url}',vendor=rclone:"
            self.description += "of rclone serve webdav"
        else:
            self.remote = self.source
            self.description += "of a local folder"

    def command(self):
        return [system.tool("rclone"), "mount", "--config", "/dev/null", "--vfs-cache-mode", "full", "--cache-dir", self.cache,
                "--rc", "--rc-no-auth", "--rc-addr", f"127.0.0.1:{self.port}", self.remote, self.mount]

    def settle(self):
        """Its uploads wait 5 s; the remote control says when they are through."""
        end = time.monotonic() + 600
        while time.monotonic() < end:
            request = urllib.request.Request(f"http://127.0.0.1:{self.port}/vfs/stats", data=b"{}",
                                             headers={"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=30) as answer:
                cache = json.load(answer).get("diskCache", {})
            if not cache.get("uploadsInProgress") and not cache.get("uploadsQueued"):
                return
            time.sleep(0.2)
        raise system.CommandFailed("rclone did not end its uploads within 600 s")


class Davfs(Peer):
    """davfs2 on rclone's WebDAV server. The mount program goes to the background by itself."""

    def __init__(self, scratch):
        super().__init__(scratch, "davfs2")
        self.server = Server(self.home, "webdav")
        self.configuration = self.home + "/davfs2.conf"
        with open(self.configuration, "w") as file:
            file.write("ask_auth 0\nuse_locks 0\ndelay_upload 1\n")
        self.description = text_version("mount.davfs", "--version") + ", of rclone serve webdav"

    def command(self):
        return [system.tool("mount.davfs"), self.server.url, self.mount, "-o", f"conf={self.configuration},rw"]

    def settle(self):
        """Its unmounting waits for uploads; nothing else says when they are through."""
        unmount = system.tool("umount.davfs")
        system.run([unmount, self.mount] if unmount else ["umount", self.mount])
        self.start()

    def forget(self):
        self.settle()


class S3fs(Peer):
    """s3fs on a bucket that exists; uploads are done when close returns."""

    def __init__(self, scratch, address):
        super().__init__(scratch, "s3fs")
        self.server_address, _, self.bucket = address.rpartition("/")
        self.password = self.home + "/password"
        with open(self.password, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(f"{os.environ.get('AWS_ACCESS_KEY_ID', '')}:{os.environ.get('AWS_SECRET_ACCESS_KEY', '')}\n")
        self.description = text_version("s3fs", "--version").partition("(")[0].replace(
            "Amazon Simple Storage Service File System", "s3fs").strip()

    def command(self):
        return [system.tool("s3fs"), self.bucket, self.mount, "-f", "-o", f"url={self.server_address}",
                "-o", f"passwd_file={self.password}", "-o", "use_path_request_style"]


def text_version(program, option):
    return system.text_of([system.tool(program), option]).partition(" <")[0].strip()


def is_available(label, arguments):
    if label.startswith("hp"):
        return bool(arguments.passthrough_hp)
    if label == "s3fs":
        return bool(arguments.s3 and system.tool("s3fs"))
    return all(system.tool(name) for name in PEERS[label])


def make(label, scratch, arguments):
    if label == "bindfs":
        return Bindfs(scratch)
    if label.startswith("hp"):
        return PassthroughExample(scratch, label, os.path.abspath(arguments.passthrough_hp))
    if label.startswith("rclone"):
        return Rclone(scratch, label)
    return Davfs(scratch) if label == "davfs2" else S3fs(scratch, arguments.s3)


def add_arguments(parser):
    group = parser.add_argument_group("peers")
    group.add_argument("--peers", default="installed", metavar="NAME,…",
                       help=f"`installed` (all that are), `none`, or of: {', '.join(PEERS)}")
    group.add_argument("--s3", metavar="URL/BUCKET",
                       help="adds s3fs; the keys are in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
    group.add_argument("--passthrough-hp", metavar="PATH", help="libfuse's example, built: adds hp and hp-nopt")


def peers(scratch, arguments):
    """The peers asked for. One that is named and missing is refused; with `installed` it is left out."""
    if arguments.peers == "none":
        return []
    if arguments.passthrough_hp and not os.access(arguments.passthrough_hp, os.X_OK):
        raise Refused(f"there is no executable '{arguments.passthrough_hp}' for --passthrough-hp")
    if arguments.peers == "installed":
        labels = [label for label in PEERS if is_available(label, arguments)]
        if os.geteuid() != 0:
            labels = [label for label in labels if label != "davfs2"]
    else:
        labels = [label for label in arguments.peers.split(",") if label]
        for label in labels:
            if label not in PEERS:
                raise Refused(f"there is no peer '{label}'; the peers are {', '.join(PEERS)}")
            if not is_available(label, arguments):
                raise Refused(f"the peer '{label}' needs {' and '.join(PEERS[label])}")
    if missing := [label for label in PEERS if label not in labels]:
        tell("peers left out: " + ", ".join(missing))
    return [make(label, scratch, arguments) for label in labels]
