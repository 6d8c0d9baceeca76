"""A source tree: unpacked, walked, searched, committed, removed."""
import hashlib, os, stat, statistics, tarfile, tempfile

from .. import system
from ..plan import Row, Stage, Step
from .common import Wrong, median_of, now, remove_timed, walk

FILES = 5000
WORD = b"xylographQuuxRareWord"

ROWS = {row.name: row for row in (
    Row("untar", "s", False, "tar x of a source tree of up to 5,000 files",
        "Creating, as in `create`, and further requests for the mode and the times of each file."),
    Row("stat-cold", "s", False, "walk and lstat of the tree after a remount, caches dropped",
        "Reading the index; a listing brings the attributes of its entries along, so it is one request for many files."),
    Row("stat-warm", "s", False, "the same again",
        "Attributes, names and listings are the kernel's; for each folder it asks once, as listing it made its "
        "access time doubtful."),
    Row("find", "s", False, "find -type f, warm", "No request is left; the kernel's way through FUSE is longer than through ext4."),
    Row("grep-cold", "s", False, "grep -r of a rare word after a remount, caches dropped",
        "A request to open and one to close each file; its bytes come from the disk by the kernel, as natively."),
    Row("grep-warm", "s", False, "the same again",
        "A request to open and one to close each file, which native files do not need; the bytes are in the page cache."),
    Row("git-commit", "s", False, "git init, add -A and commit of the tree",
        "git makes a file, a link or rename and a deletion for each object: the sum of `create`, `rename` and `unlink`."),
    Row("git-status", "s", False, "git status, warm", "Attributes and listings are the kernel's; a request for each file that git opens."),
    Row("rm-tree", "s", False, "rm -rf of the tree and its .git", "As `unlink`."),
)}


def is_plain(path):
    """No link of either kind: an archive stores the second name of a file as a link, and the sizes would not add up."""
    status = os.lstat(path)
    return stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and status.st_size < 2 << 20 and os.access(path, os.R_OK)


def make_tarball(source, path, limit):
    """Up to `limit` plain files of a folder, and one that holds the rare word. Nothing else holds it."""
    files = []
    for folder, folders, names in os.walk(source):
        folders.sort()
        for name in sorted(names):
            file = os.path.join(folder, name)
            if is_plain(file):
                files.append(file)
        if len(files) >= limit:
            break
    with tempfile.NamedTemporaryFile() as rare, tarfile.open(path, "w") as archive:
        rare.write(b"/* " + WORD + b" */\n")
        rare.flush()
        for file in files[:limit]:
            archive.add(file, arcname=os.path.relpath(file, source), recursive=False)
        archive.add(rare.name, arcname="zz/rare.h")


def digest(top):
    """Of all names and contents."""
    result, files = hashlib.sha1(), []
    for folder, _, names in os.walk(top):
        files += [os.path.join(folder, name) for name in names]
    for path in sorted(files):
        result.update(os.path.relpath(path, top).encode(errors="surrogateescape") + b"\0")
        with open(path, "rb") as file:
            result.update(hashlib.sha1(file.read()).digest())
    return result.hexdigest()


def untar(folder, configuration):
    os.mkdir(folder + "/tree")
    start = now()
    system.run(["tar", "-xf", configuration["tarball"], "-C", folder + "/tree", "--no-same-owner"])
    elapsed = now() - start
    count, _, size = walk(folder + "/tree")
    if [count, size] != configuration["tree"]:
        raise Wrong(f"{count} files and {size} bytes after unpacking, not {configuration['tree']}")
    if configuration["round"] == 0 and digest(folder + "/tree") != configuration["digest"]:
        raise Wrong("the content differs after unpacking")
    return elapsed


def stat_cold(folder, configuration):
    start = now()
    count = walk(folder + "/tree")[0]
    elapsed = now() - start
    if count != configuration["tree"][0]:
        raise Wrong(f"{count} files were seen")
    return elapsed


def stat_warm(folder, configuration):
    return median_of(3, walk, folder + "/tree")


def find(folder, configuration):
    command = ["find", folder + "/tree", "-type", "f"]
    count = system.run(command).count(b"\n")
    if count != configuration["tree"][0]:
        raise Wrong(f"find saw {count} files")
    return median_of(3, system.run, command)


def grep(folder):
    start = now()
    output = system.run(["grep", "-rl", WORD.decode(), folder + "/tree"])
    elapsed = now() - start
    found = len(output.splitlines())
    if found != 1:
        raise Wrong(f"grep found {found} files")
    return elapsed


def grep_cold(folder, configuration):
    return grep(folder)


def grep_warm(folder, configuration):
    grep(folder)
    return statistics.median([grep(folder) for _ in range(3)])


def git(folder, configuration, *words):
    options = ["user.name=bench", "user.email=bench@example.com", "gc.auto=0", "safe.directory=*", "core.fsmonitor=false"]
    command = ["git", *(word for option in options for word in ("-c", option)), "-C", folder + "/tree", *words]
    return system.run(command, env=dict(os.environ, GIT_CONFIG_NOSYSTEM="1", HOME=configuration["home"]))


def git_commit(folder, configuration):
    start = now()
    git(folder, configuration, "init", "-q")
    git(folder, configuration, "add", "-A")
    git(folder, configuration, "commit", "-q", "-m", "all")
    elapsed = now() - start
    count = git(folder, configuration, "ls-tree", "-r", "--name-only", "HEAD").count(b"\n")
    if count != configuration["tree"][0]:
        raise Wrong(f"{count} files were committed")
    git(folder, configuration, "fsck", "--no-progress")
    return elapsed


def git_status(folder, configuration):
    if said := git(folder, configuration, "status", "--porcelain").strip():
        raise Wrong("git status is not clean: " + said.decode(errors="replace")[:80])
    return median_of(3, git, folder, configuration, "status", "--porcelain")


def rm_tree(folder, configuration):
    # Other subjects have dropped the caches since this tree was made: it is known again before it goes.
    walk(folder + "/tree")
    return remove_timed(folder + "/tree")


STAGE = Stage(
    "tree", "tree",
    (Step("untar", ROWS["untar"], leaves_uploads=True),
     Step("stat-cold", ROWS["stat-cold"], needs=("untar",), is_cold=True),
     Step("stat-warm", ROWS["stat-warm"], needs=("untar",)),
     Step("find", ROWS["find"], needs=("untar",)),
     Step("grep-cold", ROWS["grep-cold"], needs=("untar",), is_cold=True),
     Step("grep-warm", ROWS["grep-warm"], needs=("untar",)),
     Step("git-commit", ROWS["git-commit"], needs=("untar",), leaves_uploads=True),
     Step("git-status", ROWS["git-status"], needs=("untar", "git-commit"))),
    deletions=(Step("rm-tree", ROWS["rm-tree"], needs=("untar",), leaves_uploads=True),))
