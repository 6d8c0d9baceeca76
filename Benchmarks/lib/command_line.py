"""Arguments that the scripts share, and the one way in which each of them fails: one sentence and an exit status."""
import argparse, os, pathlib, shutil, signal, sys

BENCHMARKS = pathlib.Path(__file__).resolve().parent.parent
REPOSITORY = BENCHMARKS.parent
EXECUTABLE = REPOSITORY / ".build/release/promisefs"


class Refused(Exception):
    """The benchmark cannot be made; the text is one sentence that says what to do."""


class Parser(argparse.ArgumentParser):
    """As argparse, but a mistake is one sentence and not a page."""

    def __init__(self, documentation):
        super().__init__(prog="Benchmarks/" + os.path.basename(sys.argv[0]), description=documentation,
                         formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)

    def error(self, message):
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def size_of(text):
    """Bytes of `512M`, `1G` or a plain number; units are powers of 1024."""
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    digits, unit = (text[:-1], units.get(text[-1:].upper(), 0)) if text[-1:].isalpha() else (text, 1)
    if not unit or not digits.isdigit() or int(digits) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is no size; write 512M or 1G")
    return int(digits) * unit


def positive(text):
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is no number above 0")
    return value


def count(text):
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is no whole number above 0")
    return int(text)


def labelled(text):
    """`LABEL=VALUE` as a pair."""
    label, equals, value = text.partition("=")
    if not equals or not label or not value:
        raise argparse.ArgumentTypeError(f"'{text}' is not LABEL=VALUE")
    return label, value


def names(text):
    return [name for name in text.split(",") if name]


def add_common(parser, modes="default", rounds=3):
    """What every benchmark understands."""
    where = parser.add_argument_group("where")
    where.add_argument("--folder", default="/var/tmp", help="everything is made in a new folder in this one (%(default)s)")
    where.add_argument("--ram", action="store_true", help="put everything on an ext4 in memory (root)")
    where.add_argument("--ram-size", type=size_of, default=size_of("8G"), metavar="SIZE", help="of that ext4 (8G)")
    where.add_argument("--no-wait", action="store_true",
                       help="start at once although the disk may still be slow after deletions; for trying the script out")
    what = parser.add_argument_group("what is mounted")
    what.add_argument("--executable", default=str(EXECUTABLE), metavar="PATH", help="promisefs (the one in .build/release)")
    what.add_argument("--modes", type=names, default=names(modes), metavar="MODE,…",
                      help=f"of PromiseFS: default, io-uring, no-passthrough, io-uring-no-passthrough, user ({modes})")
    what.add_argument("--user", metavar="NAME", help="who mounts in the mode `user` (who called sudo, or nobody)")
    output = parser.add_argument_group("output, besides the table on stdout")
    output.add_argument("--json", metavar="FILE", help="every sample, and the machine")
    output.add_argument("--write-docs", action="store_true", help="put the tables into docs/BENCHMARKS.md, and the charts beside")
    if rounds:
        parser.add_argument("--rounds", type=count, default=rounds, help="how often each row is measured (%(default)s)")


def check_common(arguments):
    """Refuses what would fail halfway."""
    if not os.access(arguments.executable, os.X_OK) or os.path.isdir(arguments.executable):
        raise Refused(f"there is no executable '{arguments.executable}'; run `make build`, or name one with --executable")
    # The daemon and the steps run in folders of their own.
    arguments.executable = os.path.abspath(arguments.executable)
    if not os.path.isdir(arguments.folder) or not os.access(arguments.folder, os.W_OK):
        raise Refused(f"'{arguments.folder}' is no folder that can be written to; name another one with --folder")
    if arguments.ram and os.geteuid() != 0:
        raise Refused("--ram makes a file system and mounts it: run it as root")
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        raise Refused("/dev/fuse cannot be used here; `promisefs doctor` says what is missing")
    for path in (getattr(arguments, "json", None), getattr(arguments, "svg", None)):
        if path and not os.path.isdir(os.path.dirname(os.path.abspath(path))):
            raise Refused(f"the folder of '{path}' does not exist")


def need_tools(*tools):
    for tool in tools:
        if not shutil.which(tool):
            raise Refused(f"'{tool}' is not installed; run scripts/set-up bench")


def tell(text):
    """Progress, on stderr: stdout has the report only."""
    print(text, file=sys.stderr, flush=True)


def command_of(parser):
    """The command as a reader can repeat it: where things were on this machine is nobody's business."""
    words = [os.path.basename(word) if word.startswith("/") else word for word in sys.argv[1:]]
    return " ".join([parser.prog, *words])


def main(function):
    """Runs a benchmark. A signal becomes KeyboardInterrupt, so that every mount is taken down on the way out."""
    def interrupt(number, frame):
        # A second one must not cut the clearing up short.
        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    program = "Benchmarks/" + os.path.basename(sys.argv[0])
    try:
        sys.exit(function())
    except Refused as refused:
        sys.exit(f"{program}: {refused}")
    except KeyboardInterrupt:
        tell(f"{program}: interrupted; everything is unmounted and removed")
        sys.exit(130)
