"""The folder that a benchmark lives in. It is gone afterwards, with every mount in it, however the run ended."""
import contextlib, os, re, shutil, subprocess, tempfile, time

from . import system
from .command_line import Refused, tell

# ext4 does not reuse an inode for a minute after it was deleted, and each create walks over all such inodes: for that
# long creating is up to 50 times slower, for every file system that stores on that disk.
DELETION_SECONDS = 70


class Scratch(contextlib.ExitStack):
    """`with Scratch(arguments) as scratch:`; `scratch.root` is the folder. What is pushed on it is undone in reverse."""

    def __init__(self, arguments, bytes_needed=0):
        super().__init__()
        self.arguments = arguments
        self.bytes_needed = bytes_needed

    def __enter__(self):
        super().__enter__()
        try:
            self.prepare()
        except BaseException:
            self.close()
            raise
        return self

    def prepare(self):
        if not self.arguments.ram:
            self.wait_for_disk()
        self.root = tempfile.mkdtemp(prefix="pfs-bench-", dir=self.arguments.folder)
        # Another user mounts below it in the mode `user`.
        os.chmod(self.root, 0o755)
        self.callback(self.remove)
        if self.arguments.ram:
            self.make_memory_disk()
        available = os.statvfs(self.root).f_bavail * os.statvfs(self.root).f_frsize
        if available < self.bytes_needed:
            what = "--ram-size" if self.arguments.ram else "--folder"
            raise Refused(f"{self.bytes_needed >> 20} MiB are needed and {available >> 20} MiB are free; "
                          f"choose a smaller --size or --scale, or another {what}")

    def folder(self, *names, owner=None):
        """A folder below the root, made with those above it."""
        path = self.root
        for name in names:
            path = os.path.join(path, name)
            if not os.path.isdir(path):
                os.mkdir(path, 0o755)
                if owner:
                    os.chown(path, *owner)
        return path

    def wait_for_disk(self):
        """A run before this one changed the folder last when it removed its own; then its deletions are as old as that."""
        if self.arguments.no_wait or system.file_system_of(self.arguments.folder)[0] != "ext4":
            return
        rest = DELETION_SECONDS - (time.time() - os.stat(self.arguments.folder).st_mtime)
        if 0 < rest <= DELETION_SECONDS:
            tell(f"something was made or removed in {self.arguments.folder} a moment ago; "
                 f"waiting {rest:.0f} s until ext4 has forgotten deletions (--no-wait)")
            time.sleep(rest)

    def make_memory_disk(self):
        available = re.search(r"MemAvailable:\s+(\d+)", system.read_text("/proc/meminfo"))
        size = self.arguments.ram_size
        if available and int(available.group(1)) << 10 < size:
            raise Refused(f"{size >> 20} MiB of memory are needed for --ram and {int(available.group(1)) >> 10} MiB are free; "
                          "choose a smaller --ram-size")
        top = self.root
        memory, disk = self.folder("memory"), self.folder("disk")
        try:
            system.run(["mount", "-t", "tmpfs", "-o", f"size={size + (64 << 20)},mode=0755", "promisefs-bench", memory])
            self.callback(system.detach, memory)
            with open(memory + "/image", "wb") as file:
                file.truncate(size)
            system.run([system.tool("mkfs.ext4") or "mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0",
                        memory + "/image"])
            system.run(["mount", "-o", "loop,noatime", memory + "/image", disk])
        except system.CommandFailed as failure:
            raise Refused(f"an ext4 in memory cannot be made here: {failure}") from None
        self.callback(system.detach, disk)
        self.root = disk
        self.callback(setattr, self, "root", top)

    def remove(self):
        """Only once nothing is mounted in it: a mount that stayed would be emptied otherwise."""
        inside = [point for point in system.mount_points() if point.startswith(os.path.realpath(self.root) + "/")]
        for point in sorted(inside, key=len, reverse=True):
            system.detach(point)
        if any(point.startswith(os.path.realpath(self.root) + "/") for point in system.mount_points()):
            tell(f"something below {self.root} is still mounted and was left there")
            return
        # rm is several times faster than shutil on many files.
        subprocess.run(["rm", "-rf", self.root], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if os.path.isdir(self.root):
            shutil.rmtree(self.root, ignore_errors=True)
