"""The machine: commands, caches, mounts, and what it is called in a report."""
import os, platform, re, shutil, subprocess, time

# mount helpers live here, which is not on the PATH of every user
SEARCH_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin"])


class CommandFailed(Exception):
    pass


def tool(name):
    """Path of a program, or None."""
    return shutil.which(name, path=SEARCH_PATH)


def run(command, timeout=600, **options):
    """Output of a command as bytes; raises CommandFailed with what it said."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=timeout, **options)
    except subprocess.TimeoutExpired:
        raise CommandFailed(f"{os.path.basename(command[0])} did not end within {timeout:.0f} s") from None
    except OSError as error:
        raise CommandFailed(f"{os.path.basename(command[0])}: {error.strerror}") from None
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()[:300]
        raise CommandFailed(f"{os.path.basename(command[0])}: exit {done.returncode}: {said}")
    return done.stdout


def count_bytes(command, **options):
    """Bytes that a command writes; raises CommandFailed when it fails."""
    process, count = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, **options), 0
    while piece := os.read(process.stdout.fileno(), 1 << 20):
        count += len(piece)
    process.stdout.close()
    if process.wait() != 0:
        raise CommandFailed(f"{os.path.basename(command[0])}: exit {process.returncode}")
    return count


def text_of(command):
    """First line of a command's output; empty when it fails."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=20)
        return (done.stdout.decode(errors="replace").strip().splitlines() or [""])[0]
    except (OSError, subprocess.TimeoutExpired):
        return ""


def read_text(path):
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return ""


def drop_caches():
    """Pages, names and inodes; needs root."""
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w") as file:
        file.write("3")


def drop_pages():
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w") as file:
        file.write("1")


def can_drop_caches():
    return os.geteuid() == 0 and os.access("/proc/sys/vm/drop_caches", os.W_OK)


# ---- mounts ---------------------------------------------------------------------------------------------------
def unescape(text):
    """mountinfo writes space, tab, newline and backslash in octal (proc_pid_mountinfo(5))."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), text)


def mount_points():
    """Never looks into a mount, so a dead or a foreign one does not matter."""
    return [unescape(line.split()[4]) for line in read_text("/proc/self/mountinfo").splitlines()]


def is_mounted(path):
    return os.path.realpath(os.path.dirname(path)) + "/" + os.path.basename(path) in mount_points()


def wait_for_mount(path, process=None, seconds=20):
    end = time.monotonic() + seconds
    while not is_mounted(path):
        if process is not None and process.poll() is not None and process.returncode != 0:
            return False
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def detach(path):
    """Takes a mount away whatever is in its way."""
    while is_mounted(path):
        for command in (["umount", path], ["fusermount3", "-u", path], ["umount", "-l", path], ["fusermount3", "-u", "-z", path]):
            program = tool(command[0])
            if program and is_mounted(path):
                try:
                    subprocess.run([program, *command[1:]], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, timeout=30)
                except subprocess.TimeoutExpired:
                    continue
        return


def file_system_of(path):
    """Type and mount point of the file system that a folder is on."""
    best = ("", "")
    path = os.path.realpath(path)
    for line in read_text("/proc/self/mountinfo").splitlines():
        words = line.split()
        point = unescape(words[4])
        if (path + "/").startswith(point.rstrip("/") + "/") and len(point) >= len(best[1]):
            best = (words[words.index("-") + 1], point)
    return best


# ---- facts ----------------------------------------------------------------------------------------------------
def processor_name():
    for line in read_text("/proc/cpuinfo").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def distribution():
    match = re.search(r'^PRETTY_NAME="?([^"\n]*)', read_text("/etc/os-release"), re.MULTILINE)
    return match.group(1) if match else ""


def facts(executable, folder):
    """What a reader needs to compare two reports."""
    memory = re.search(r"MemTotal:\s+(\d+)", read_text("/proc/meminfo"))
    return {
        "date": time.strftime("%Y-%m-%d"),
        "kernel": platform.release(),
        "distribution": distribution(),
        "processor": processor_name(),
        "processors": os.cpu_count(),
        "memoryMiB": int(memory.group(1)) >> 10 if memory else 0,
        "fileSystem": file_system_of(folder)[0],
        "fuseOverIoUring": read_text("/sys/module/fuse/parameters/enable_uring") == "Y",
        "isRoot": os.geteuid() == 0,
        "load": round(os.getloadavg()[0], 2),
        "versions": {"promisefs": text_of([executable, "--version"]).removeprefix("promisefs").strip(),
                     "fusermount3": text_of(["fusermount3", "--version"]).rpartition(" ")[2],
                     "fio": text_of(["fio", "--version"]).removeprefix("fio-"),
                     "git": text_of(["git", "--version"]).rpartition(" ")[2],
                     "python": platform.python_version()},
    }


def sentence(machine):
    """The facts for people."""
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items() if version)
    return (f"{machine['date']}, Linux {machine['kernel']} ({machine['distribution']}), {machine['processors']} × "
            f"{machine['processor']}, {machine['memoryMiB'] / 1024:.0f} GiB memory, {machine['fileSystem']}"
            f"{' in memory' if machine.get('isInMemory') else ''}, FUSE over io_uring "
            f"{'enabled' if machine['fuseOverIoUring'] else 'not enabled'} in the kernel, as "
            f"{'root' if machine['isRoot'] else 'an ordinary user'}; {versions}; load {machine['load']:.1f} at the start.")
