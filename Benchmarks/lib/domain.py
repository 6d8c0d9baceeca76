"""One mount of PromiseFS with a provider's folder, a state folder and runtime folders of its own."""
import json, os, pwd, shutil, signal, time

from . import system
from .command_line import Refused

# What each mode turns off; `user` is the default as an ordinary user mounts it.
MODES = {
    "default": [],
    "no-latency-limit": ["--no-latency-limit"],
    "io-uring": ["--io-uring"],
    "no-passthrough": ["--no-passthrough"],
    "io-uring-no-passthrough": ["--io-uring", "--no-passthrough"],
    "user": [],
}


class Account:
    """Who a daemon and the work in its mount run as."""

    def __init__(self, name):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            raise Refused(f"there is no user '{name}'; name another one with --user") from None
        self.name, self.user, self.group = name, entry.pw_uid, entry.pw_gid

    @property
    def owner(self):
        return (self.user, self.group)

    @property
    def process_options(self):
        return {"user": self.user, "group": self.group, "extra_groups": []}


def account_of(mode, arguments):
    """None: whoever runs the benchmark."""
    if mode != "user":
        return None
    if os.geteuid() != 0:
        raise Refused("the mode `user` is for a benchmark that root runs; an ordinary user has it by --modes default")
    return Account(arguments.user or os.environ.get("SUDO_USER") or "nobody")


def check_modes(modes):
    for mode in modes:
        if mode not in MODES:
            raise Refused(f"there is no mode '{mode}'; the modes are {', '.join(MODES)}")
    if len(set(modes)) != len(modes):
        raise Refused("a mode is named twice in --modes")


class Domain:
    """`folder` gets the provider's folder (`cloud`), `state`, the mount (`mnt`) and the daemon's runtime folders.

    `provider` names another provider than that folder; `credentials` are variables for it.
    """

    def __init__(self, executable, folder, name, options=(), account=None, faults=None, cloud=None, provider=None,
                 credentials=None):
        self.executable, self.folder, self.name, self.options, self.account = executable, folder, name, list(options), account
        self.cloud, self.state, self.mount = cloud or folder + "/cloud", folder + "/state", folder + "/mnt"
        self.faults = faults
        self.provider = provider or "folder:" + self.cloud
        self.process = None
        owner = account.owner if account else None
        environment = {"XDG_RUNTIME_DIR": "run", "XDG_STATE_HOME": "home", "XDG_DATA_HOME": "home", "XDG_CONFIG_HOME": "home"}
        self.environment = dict(os.environ, HOME=folder + "/home")
        for variable, part in environment.items():
            self.environment[variable] = folder + "/" + part
        if faults:
            self.environment["PROMISEFS_PROVIDER_FAULTS"] = faults
        self.environment.update(credentials or {})
        for path in (self.cloud, self.state, self.mount, folder + "/run", folder + "/home"):
            if not os.path.isdir(path):
                os.mkdir(path, 0o700)
            # A provider's folder that several domains share stays its owner's.
            if owner and path != cloud:
                os.chown(path, *owner)

    def command(self, *words, timeout=1800):
        options = self.account.process_options if self.account else {}
        try:
            return system.run([self.executable, *words], timeout=timeout, env=self.environment, cwd="/", **options).decode()
        except PermissionError:
            raise Refused(f"'{self.account.name}' may not run {self.executable}; name another user with --user") from None

    def start(self):
        self.command("mount", "--domain", self.name, "--state-dir", self.state, *self.options, self.provider, self.mount)
        self.process = self.status()["processID"]

    def status(self):
        return json.loads(self.command("status", "--json", self.mount))

    def settle(self):
        """Until nothing is pending: the uploads of one row are not measured in the next."""
        self.command("sync", "--wait", self.mount)

    def evict(self, path):
        self.settle()
        self.command("evict", path)

    def stop(self):
        """In order, without waiting for uploads: status 7 says that work is left, which is no failure."""
        try:
            self.command("unmount", self.mount)
        except system.CommandFailed as failure:
            # A daemon that is slow to close has unmounted already, and is waited for below.
            if "exit 7" not in str(failure) and system.is_mounted(self.mount):
                raise
        end = time.monotonic() + 60
        while self.process and os.path.exists(f"/proc/{self.process}"):
            if time.monotonic() > end:
                raise system.CommandFailed("the daemon does not end after its mount is gone; is there a copy of the mount in "
                                           "another mount namespace?")
            time.sleep(0.01)
        self.process = None

    def remount(self):
        self.stop()
        self.start()

    def forget(self):
        """Mounts anew with a state folder that knows nothing."""
        self.stop()
        shutil.rmtree(self.state)
        os.mkdir(self.state, 0o700)
        self.start()

    def destroy(self):
        """Whatever state it is in."""
        if system.is_mounted(self.mount):
            try:
                self.stop()
            except (system.CommandFailed, Refused):
                system.detach(self.mount)
        if self.process and os.path.exists(f"/proc/{self.process}"):
            try:
                os.kill(self.process, signal.SIGKILL)
            except ProcessLookupError:
                pass

    # ---- what the daemon takes
    def resident_bytes(self):
        return self.memory("VmRSS")

    def peak_bytes(self):
        return self.memory("VmHWM")

    def memory(self, field):
        for line in system.read_text(f"/proc/{self.process}/status").splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) << 10
        return 0

    def index_bytes(self):
        """The index and its log, as stored; not the room it holds in reserve."""
        names = ("index.sqlite", "index.sqlite-wal")
        return sum(os.stat(f"{self.state}/{name}").st_blocks * 512 for name in names if os.path.exists(f"{self.state}/{name}"))

    def has_command(self, name):
        return any(line.split()[:1] == [name] for line in self.command("--help").splitlines())


def make_domain(scratch, arguments, mode, extra_options=(), name=None, cloud=None, faults=None, provider=None,
                credentials=None):
    """A domain that is taken down with the scratch folder. Not started yet."""
    account = account_of(mode, arguments)
    folder = scratch.folder(name or mode, owner=account.owner if account else None)
    domain = Domain(arguments.executable, folder, name or mode, [*MODES[mode], *extra_options], account, faults, cloud, provider,
                    credentials)
    scratch.callback(domain.destroy)
    return domain
