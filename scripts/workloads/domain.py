"""A domain for the workloads: mounted by daemons of its own, everything below one temporary folder."""
import argparse, fcntl, json, os, random, shutil, signal, subprocess, sys, tempfile, time


class Failed(Exception):
    """What a workload found, in a sentence."""


class Mount:
    """One domain on a folder, mounted with `arguments`, and what a test does to its processes.

    Everything is below `folder`; `cloud` and `state` may be elsewhere. `provider` names another one than the folder `cloud`.
    `environment` is added to that of every command. The file `provider_faults` is obeyed by the provider, see
    docs/PROVIDERS.md.
    """

    def __init__(self, executable, folder, arguments=(), *, name="kill", upload_delay="200ms", cloud=None, state=None,
                 environment=None, provider=None):
        self.executable, self.folder, self.name = os.path.abspath(executable), folder, name
        self.arguments, self.upload_delay = list(arguments), upload_delay
        self.cloud, self.state = cloud or os.path.join(folder, "cloud"), state or os.path.join(folder, "state")
        self.top, self.provider_faults = os.path.join(folder, "mnt"), os.path.join(folder, "provider-faults")
        self.provider = provider or "folder:" + self.cloud
        for path in (self.cloud, self.state, self.top):
            os.makedirs(path, exist_ok=True)
        self.environment = dict(os.environ, NO_COLOR="1", HOME=folder, PROMISEFS_PROVIDER_FAULTS=self.provider_faults)
        for each in ("RUNTIME_DIR", "STATE_HOME", "DATA_HOME", "CONFIG_HOME"):
            path = os.path.join(folder, each.lower())
            os.makedirs(path, 0o700, exist_ok=True)
            self.environment["XDG_" + each] = path
        self.environment["PROMISEFS_STATE_DIR"] = os.path.join(folder, "states")
        self.environment.update(environment or {})
        self.log = open(os.path.join(folder, "mount.log"), "ab")

    def command(self):
        return [self.executable, "mount", "--state-dir", self.state, "--domain", self.name, "--upload-delay", self.upload_delay,
                *self.arguments, self.provider, self.top]

    def mount(self, check=True):
        try:
            done = subprocess.run(self.command(), env=self.environment, stdin=subprocess.DEVNULL, stdout=self.log,
                                  stderr=subprocess.PIPE, timeout=60)
        except subprocess.TimeoutExpired:
            raise Failed("mount does not end within 60 s")
        if check and done.returncode != 0:
            raise Failed(f"mount exits {done.returncode}: {done.stderr.decode(errors='replace').strip()}")

    def mount_and_kill(self, after):
        """Kills in the middle of recovery."""
        starting = subprocess.Popen(self.command(), env=self.environment, stdin=subprocess.DEVNULL, stdout=self.log,
                                    stderr=self.log, start_new_session=True)
        time.sleep(after)
        self.kill()
        starting.kill()
        starting.wait()
        self.kill()

    def run(self, *words, statuses=(0,), timeout=180):
        """A command's output. Fails when it does not end in time, or with a status that is not one of `statuses`."""
        try:
            done = subprocess.run([self.executable, *words], env=self.environment, stdin=subprocess.DEVNULL, text=True,
                                  capture_output=True, errors="replace", timeout=timeout)
        except subprocess.TimeoutExpired:
            raise Failed(f"'{' '.join(words)}' does not end within {timeout} s")
        if done.returncode not in statuses:
            raise Failed(f"'{' '.join(words[:2])}' exits {done.returncode}: {(done.stderr + done.stdout).strip()[:600]}")
        return done.stdout

    def settle(self, timeout=300):
        """Until nothing is pending."""
        self.run("sync", "--wait", self.top, timeout=timeout)

    def status(self):
        return json.loads(self.run("status", "--json", self.top))

    def set_offline(self, is_offline):
        """At once, as the daemon may look at any time."""
        with open(self.provider_faults + ".new", "w") as file:
            file.write("offline=true\n" if is_offline else "")
        os.rename(self.provider_faults + ".new", self.provider_faults)

    def processes(self, program="promisefs"):
        found = []
        wanted = os.path.join(os.path.dirname(os.path.realpath(self.executable)), program)
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
                is_ours = os.path.realpath(f"/proc/{name}/exe").removesuffix(" (deleted)") == wanted
            except OSError:
                continue
            if is_ours and any(os.fsencode(self.state) in word for word in words):
                found.append(int(name))
        return found

    def send(self, number, processes):
        for process in processes:
            try:
                os.kill(process, number)
            except ProcessLookupError:
                pass

    def kill(self):
        """All of it: the holder first, or it would start another daemon."""
        self.send(signal.SIGKILL, self.processes("promisefs-holder"))
        self.send(signal.SIGKILL, self.processes())
        deadline = time.monotonic() + 10
        while self.processes():
            if time.monotonic() > deadline:
                raise Failed("a killed daemon is still there")
            time.sleep(0.005)
        # A thread that is inside a call of the disk keeps the files open for longer than the process can be seen.
        lock = os.path.join(self.state, "lock")
        if not os.path.exists(lock):
            return
        with open(lock, "rb") as file:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise Failed("a killed daemon still holds its lock")
                    time.sleep(0.005)

    def clean_up(self):
        self.kill()
        subprocess.run(["umount", "-l", self.top], stderr=subprocess.DEVNULL)
        if os.path.ismount(self.top):
            subprocess.run(["fusermount3", "-uz", self.top], stderr=subprocess.DEVNULL)
        self.log.close()

    def last_words(self):
        try:
            with open(os.path.join(self.state, "log", "daemon.log"), "rb") as log:
                return log.read()[-4000:].decode(errors="replace")
        except OSError:
            return "none"


def run(description, prefix, add_arguments, body):
    """The frame of a workload's command line: reads options, prints the seed, calls `body(mount, arguments, generator)`, which
    returns the last line to print, cleans up, and exits."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--executable", required=True)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--folder", default=None, help="where the temporary folders are made")
    parser.add_argument("--keep", action="store_true", help="keep the folders when something failed")
    add_arguments(parser)
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(10**9)
    print(f"seed {seed}, {arguments.kills} kills", flush=True)
    folder = tempfile.mkdtemp(prefix=prefix, dir=arguments.folder)
    mount = Mount(arguments.executable, folder, getattr(arguments, "mount", []))
    failed = False
    try:
        print(body(mount, arguments, random.Random(seed)), flush=True)
    except (Failed, subprocess.TimeoutExpired, OSError) as problem:
        failed = True
        print(f"FAILED (seed {seed}): {problem}", flush=True)
    finally:
        mount.clean_up()
        if failed:
            print("the daemon's last words:\n" + mount.last_words(), flush=True)
        if failed and arguments.keep:
            print(f"kept: {folder}", flush=True)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if failed else 0)
