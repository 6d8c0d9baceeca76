"""What is measured: each subject has a folder in which the same work is done."""
import os, subprocess, tempfile

from . import system
from .domain import check_modes, make_domain


class Subject:
    """`folder` is where the work happens. A subject that cannot do something leaves it out."""

    account = None
    description = ""

    def __init__(self, label, folder):
        self.label, self.folder = label, folder

    def start(self):
        """Before the first round."""

    def is_alive(self):
        """Work in the folder of a mount that is gone would measure the disk below."""
        return os.path.isdir(self.folder)

    def settle(self):
        """After work that leaves uploads behind, not timed."""

    def forget(self):
        """Before a cold row, not timed: remounts. The caches of the kernel are dropped for every subject."""


class Native(Subject):
    """The disk itself."""

    def __init__(self, scratch):
        super().__init__("native", scratch.folder("native"))
        self.description = f"{system.file_system_of(self.folder)[0]}, no FUSE"


class Given(Subject):
    """A folder that the caller has mounted, with what to run after uploads and before a cold row."""

    def __init__(self, scratch, label, path, settle_command=None, cold_command=None):
        super().__init__(label, tempfile.mkdtemp(prefix="pfs-bench-", dir=path))
        self.settle_command, self.cold_command = settle_command, cold_command
        self.description = f"{system.file_system_of(path)[0]}, mounted by the caller"
        scratch.callback(subprocess.run, ["rm", "-rf", self.folder], stderr=subprocess.DEVNULL)

    def settle(self):
        if self.settle_command:
            system.run(["sh", "-c", self.settle_command])

    def forget(self):
        if self.cold_command:
            system.run(["sh", "-c", self.cold_command])


class PromiseFS(Subject):
    """A mount of the folder provider in one of the modes."""

    def __init__(self, scratch, arguments, mode, label, extra_options=()):
        self.domain = make_domain(scratch, arguments, mode, extra_options)
        super().__init__(label, self.domain.mount)
        self.account = self.domain.account

    def start(self):
        self.domain.start()
        status = self.domain.status()
        by = f", mounted by {self.account.name}" if self.account else ""
        self.description = (f"PromiseFS, transport {status['transport']}, "
                            f"passthrough {'yes' if status['hasPassthrough'] else 'no'}{by}")

    def settle(self):
        self.domain.settle()
        os.sync()

    def is_alive(self):
        return system.is_mounted(self.folder)

    def forget(self):
        self.domain.remount()


def label_of(mode):
    return "promisefs" if mode == "default" else "promisefs-" + mode


def promisefs_subjects(scratch, arguments, extra_options=()):
    check_modes(arguments.modes)
    return [PromiseFS(scratch, arguments, mode, label_of(mode), extra_options) for mode in arguments.modes]
