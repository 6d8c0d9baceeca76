"""Mounts for the tests of other programs: with content of their choice, a provider that can be slow, fail and be offline, and
gone afterwards.

    from promisefs.testing import TemporaryMount

    with TemporaryMount({"a.txt": "one"}) as mount:
        mount.faults("offline=true")
        ...                                    # reading mount.path / "a.txt" fails with ENETDOWN

With pytest the fixture `promisefs_mount` is one with a few samples, and `promisefs_mounts` makes them with content:

    def test_that_it_says_offline(promisefs_mounts):
        mount = promisefs_mounts({"a.txt": "one"})

The program is that of PROMISEFS_EXECUTABLE, else `promisefs` of the PATH. The machine needs /dev/fuse, and without root
fusermount3.
"""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from .client import PromiseError

SAMPLES = {
    "Welcome.md": "# Welcome\n\nNothing of this was here before you read it.\n",
    "Reports/budget.csv": "month,amount\nJanuary,120\nFebruary,95\n",
    "Reports/Quarter one.md": "# Quarter one\n\nAll went well.\n",
}

# As `promisefs try --fault` takes them.
_CALLS = "|".join("""
    connect root item enumerateItems currentAnchor changes waitForChanges fetchContents create modify delete fetchThumbnail
    saveThumbnail quota pickerPage persistentIdentifier identifierOfPersistent earlierVersions contentsReleased
    readObject writeObject listObjects deleteObject
    """.split())
_FAULT = re.compile(
    r"delay=\d+(\.\d+)?s|delay=\d+ms|(offline|hang|short|stale)=(true|false)|(fail|bandwidth)=[1-9]\d*"
    rf"|only=({_CALLS})( *, *({_CALLS}))*")


def _check(lines):
    for line in lines:
        if not _FAULT.fullmatch(line):
            raise ValueError(f"'{line}' is no fault; they are as offline=true, delay=2s, hang=true, fail=3, only=create")


class TemporaryMount:
    """`content`: texts or bytes by paths below the mount; or a folder, which is copied. `options`: further ones of
    `promisefs mount`. `path` is the mount, `cloud` the provider's folder: what is changed there somebody else has changed."""

    def __init__(self, content=None, options=(), executable=None):
        self._content = SAMPLES if content is None else content
        self._options = list(options)
        self._program = executable or os.environ.get("PROMISEFS_EXECUTABLE", "promisefs")
        self._root = None

    def __enter__(self):
        self._root = pathlib.Path(tempfile.mkdtemp(prefix="promisefs-try-"))
        self.path, self.cloud, self.fault_file = (self._root / name for name in ("mount", "cloud", "faults"))
        self.domain = "try-" + self._root.name.rpartition("-")[2]
        self._keeper = self._start_keeper()
        try:
            self._fill()
            self._run("mount", "--domain", self.domain, "--state-dir", self._root / "state", "--upload-delay", "100ms",
                      *self._options, "--", f"folder:{self.cloud}", self.path)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *problem):
        self.close()

    def _start_keeper(self):
        """It removes the mount when this process was killed, of which it learns by the end of a pipe."""
        try:
            return subprocess.Popen([self._program, "try", "--forget", str(self._root), "--", "-"], stdin=subprocess.PIPE,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        except OSError:
            return None

    def _fill(self):
        self.path.mkdir()
        self.faults()
        if not isinstance(self._content, dict):
            shutil.copytree(self._content, self.cloud, symlinks=True)
            return
        self.cloud.mkdir()
        for name, value in self._content.items():
            parts = pathlib.PurePosixPath(name).parts
            if not parts or parts[0] == "/" or ".." in parts:
                raise ValueError(f"'{name}' is no path below the mount")
            place = self.cloud / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(value if isinstance(value, bytes) else value.encode())

    def _run(self, *words):
        # Apart from the settings of whoever runs the tests.
        variables = dict(os.environ, PROMISEFS_PROVIDER_FAULTS=str(self.fault_file), PROMISEFS_CONFIG="/dev/null",
                         PROMISEFS_STATE_DIR=str(self._root / "states"))
        with open(self._root / "errors", "w+") as errors:
            try:
                done = subprocess.run([self._program, *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                      stderr=errors, env=variables)
            except OSError as error:
                raise PromiseError(f"'{self._program}' cannot be run: {error}") from error
            errors.seek(0)
            if done.returncode:
                raise PromiseError(errors.read().strip().removeprefix("promisefs: ") or "promisefs failed",
                                   exit_status=done.returncode)

    def faults(self, *lines):
        """What the provider suffers from now on: `offline=true`, `delay=2s`, `hang=true`, `fail=3`, `bandwidth=100000`,
        `only=fetchContents,create`. Without lines it is well again. One that means nothing is a ValueError."""
        _check(lines)
        draft = self._root / "faults.new"
        draft.write_text("".join(line + "\n" for line in lines))
        draft.replace(self.fault_file)

    def synchronize(self):
        """Waits until the provider has everything, and what was changed there is known here."""
        self._run("sync", "--wait", self.path)

    def _is_mounted(self):
        with open("/proc/self/mountinfo") as table:
            return any(f"fuse.promisefs {self.domain} " in line for line in table)

    def close(self):
        """Unmounts and removes everything, once. Never removes through a mount."""
        if self._root is None:
            return
        self.faults()
        for words in (["unmount"], ["unmount", "--lazy"]):
            if self._is_mounted():
                try:
                    self._run(*words, self.path)
                except PromiseError:
                    continue
        if self._is_mounted():
            raise PromiseError(f"{self.path} cannot be unmounted; files are open below it")
        shutil.rmtree(self._root, ignore_errors=True)
        if self._keeper:
            self._keeper.stdin.close()
            self._keeper.wait()
            self._keeper = None
        self._root = None
