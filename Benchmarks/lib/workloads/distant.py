"""A tree of small files on a server that is far away: brought there, listed, copied back, renamed and removed."""
import os

from .. import system
from ..clients import client
from ..plan import Row, Stage, Step
from .common import Wrong, now

ROWS = {row.name: row for row in (
    Row("up-tree", "s", False, "files of 4 KiB (`--files`), ten in a folder, to the server",
        "So many files are on their way at once, and a folder before what is in it."),
    Row("list-tree", "s", False, "names, sizes and times of that tree, never listed before (`find`; `rclone lsl`)",
        "A folder is listed before those in it are known; over S3 it takes a look at each object, too."),
    Row("down-tree", "s", False, "that tree copied to the disk (`cp -r`; `rclone copy`)",
        "`cp` opens one file after the other; what comes next in the walk is fetched ahead."),
    Row("rename-tree", "s", False, "that tree renamed, until the server has it", "S3 copies each object."),
    Row("remove-tree", "s", False, "that tree removed (`rm -r`; `rclone purge`), until the server has it",
        "Only what is in its known version is removed, file by file."),
    Row("up-large", "s", False, "one large file (`--size`) to the server",
        "PromiseFS writes it into its content store first, and tells the server then."),
    Row("down-large", "s", False, "that file from the server, read in order (`cat`; `rclone cat`)", "Read-ahead begins small."),
)}


def names(configuration):
    name = f"tree-{configuration['client']}-{configuration['round']}"
    return name, name + "-renamed"


def large_name(configuration):
    return f"large-{configuration['client']}-{configuration['round']}"


def timed(function, *arguments):
    start = now()
    result = function(*arguments)
    return now() - start, result


def up_tree(folder, configuration):
    return timed(client(configuration).up_folder, configuration["tree"], names(configuration)[0])[0]


def list_tree(folder, configuration):
    elapsed, count = timed(client(configuration).list_tree, names(configuration)[0])
    if count != configuration["files"]:
        raise Wrong(f"{count} files were listed")
    return elapsed


def down_tree(folder, configuration):
    target = configuration["scratch"] + "/tree"
    elapsed, _ = timed(client(configuration).copy_tree, names(configuration)[0], target)
    system.run(["diff", "-r", configuration["tree"], target])
    system.run(["rm", "-r", target])
    return elapsed


def rename_tree(folder, configuration):
    return timed(client(configuration).rename_tree, *names(configuration))[0]


def remove_tree(folder, configuration):
    return timed(client(configuration).remove_tree, names(configuration)[1])[0]


def up_large(folder, configuration):
    return timed(client(configuration).up, configuration["large"], large_name(configuration))[0]


def down_large(folder, configuration):
    elapsed, count = timed(client(configuration).read, large_name(configuration))
    if count != os.path.getsize(configuration["large"]):
        raise Wrong("the file has another size")
    return elapsed


ORDER = ("up-tree", "list-tree", "down-tree", "rename-tree", "remove-tree")
STAGES = (
    Stage("trees", "distant", tuple(Step(name, ROWS[name], needs=ORDER[:place]) for place, name in enumerate(ORDER)),
          has_folder=False),
    Stage("large", "distant", (Step("up-large", ROWS["up-large"]), Step("down-large", ROWS["down-large"], needs=("up-large",))),
          has_folder=False),
)
