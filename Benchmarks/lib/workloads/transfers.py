"""The same objects to a server and back by several programs, and listed."""
import os

from .. import processor, system
from ..clients import client
from ..plan import Row, Stage, Step
from .common import Wrong, now

ROWS = {row.name: row for row in (
    Row("up-large", "s", False, "one large file (`--size`) to the server",
        "PromiseFS writes it into its content store first, and tells the server then.", 0.8),
    Row("down-large", "s", False, "that file from the server into a file", "Every byte is stored on its way.", 0.8),
    Row("up-small", "s", False, "files of 4 KiB (`--files`) to the server",
        "Each is a file of the mount first; then it is sent on conditions that nothing else is overwritten.", 0.8),
    Row("down-small", "s", False, "files of 4 KiB from the server",
        "A request, a content file and a transaction of the index for each file.", 0.8),
    Row("listing", "s", False, "names and sizes of the objects (`--listed`) of one folder, never listed before",
        "One row in the index for each entry.", 0.8),
)}


def timed(configuration, function, *arguments):
    """Seconds on the clock, or of the processors: of the client, the server and the daemon together."""
    clock = (lambda: processor.seconds(configuration["processes"])) if configuration["isProcessorTime"] else now
    start = clock()
    result = function(*arguments)
    return clock() - start, result


def up_large(folder, configuration):
    tool, name = client(configuration), f"up-{configuration['client']}-{configuration['round']}"
    elapsed, _ = timed(configuration, tool.up, configuration["large"], name)
    tool.remove(name)
    return elapsed


def down_large(folder, configuration):
    tool, target = client(configuration), folder + "/large"
    elapsed, _ = timed(configuration, tool.down, "down/large", target)
    # What PromiseFS fetched is in its own store.
    if configuration["client"] != "promisefs":
        if os.path.getsize(target) != os.path.getsize(configuration["large"]):
            raise Wrong("the file has another size")
        os.unlink(target)
    return elapsed


def up_small(folder, configuration):
    tool, name = client(configuration), f"small-{configuration['client']}-{configuration['round']}"
    return timed(configuration, tool.up_folder, configuration["small"], name)[0]


def down_small(folder, configuration):
    tool, target = client(configuration), folder + "/small"
    names = os.listdir(configuration["small"])
    elapsed, _ = timed(configuration, tool.down_folder, "down/small", target, names)
    if configuration["client"] != "promisefs":
        if len(os.listdir(target)) != len(names):
            raise Wrong("files are missing")
        system.run(["rm", "-rf", target])
    return elapsed


def listing(folder, configuration):
    tool = client(configuration)
    if not hasattr(tool, "listing") or (configuration["client"] == "curl" and tool.is_s3):
        return None
    elapsed, count = timed(configuration, tool.listing, "list", folder + "/listing")
    if count != configuration["listed"]:
        raise Wrong(f"{count} entries were listed")
    return elapsed


STAGES = (
    Stage("transfers", "transfers",
          tuple(Step(name, ROWS[name]) for name in ("up-large", "down-large", "up-small", "down-small")), has_folder=False),
    Stage("listing", "transfers", (Step("listing", ROWS["listing"]),), has_folder=False),
)
