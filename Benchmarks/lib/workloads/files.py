"""Many small files: create, rename, unlink."""
import os

from ..plan import Row, Stage, Step
from .common import Wrong, now, remove_timed, scaled, walk, write_file

FILES = 3000
RENAMED_MAX = 10

CREATE = Row(
    "create", "files/s", True, "3,000 files of 4 KiB in 100 folders: open, write, close",
    "Each file is a request to the daemon, a row in the index before the answer, a content file on the disk, and one more "
    "request when it is closed.")
RENAME = Row(
    "rename", "ops/s", True, "1,000 renames in a folder and 1,000 between folders",
    "One request and one transaction of the index each; nothing on the disk below moves.")
UNLINK = Row(
    "unlink", "files/s", True, "rm -rf of that tree",
    "One request and one transaction of the index each; the content file is removed later, beside it.")


def folders(top):
    return [f"{top}/files/{first}/{second}" for first in range(10) for second in range(10)]


def files_each(configuration):
    return scaled(FILES, configuration, 100) // 100


def create(folder, configuration):
    each = files_each(configuration)
    os.mkdir(folder + "/files")
    for first in range(10):
        os.mkdir(f"{folder}/files/{first}")
        for second in range(10):
            os.mkdir(f"{folder}/files/{first}/{second}")
    data = os.urandom(4096)
    # Untimed: brings the disk's allocation maps into memory. Deleted with the rest, at the end.
    os.mkdir(folder + "/before")
    start = now()
    for number in range(each * 100):
        write_file(f"{folder}/before/{number}", data)
        if now() - start > 3:
            break
    start = now()
    for path in folders(folder):
        for number in range(each):
            write_file(f"{path}/f{number}", data)
    elapsed = now() - start
    count, _, size = walk(folder + "/files")
    if count != each * 100 or size != each * 100 * 4096:
        raise Wrong(f"{count} files and {size} bytes after {each * 100} were created")
    with open(f"{folder}/files/9/9/f{each - 1}", "rb") as file:
        if file.read() != data:
            raise Wrong("the content differs")
    return each * 100 / elapsed


def rename(folder, configuration):
    paths = folders(folder)
    each = min(RENAMED_MAX, files_each(configuration))
    count = walk(folder + "/files")[0]
    start = now()
    for path in paths:
        for number in range(each):
            os.rename(f"{path}/f{number}", f"{path}/g{number}")
    for index, path in enumerate(paths):
        other = paths[(index + 37) % 100]
        for number in range(each):
            os.rename(f"{path}/g{number}", f"{other}/h{number}")
    elapsed = now() - start
    if walk(folder + "/files")[0] != count:
        raise Wrong("files were lost in renaming")
    if sorted(name for name in os.listdir(paths[0]) if name[0] == "h") != sorted(f"h{number}" for number in range(each)):
        raise Wrong("the names are wrong after renaming")
    return 2 * each * 100 / elapsed


def unlink(folder, configuration):
    count = walk(folder + "/files")[0]
    return count / remove_timed(folder + "/files")


STAGE = Stage(
    "files", "files",
    (Step("create", CREATE, leaves_uploads=True), Step("rename", RENAME, needs=("create",), leaves_uploads=True)),
    deletions=(Step("unlink", UNLINK, needs=("create",), leaves_uploads=True),))
