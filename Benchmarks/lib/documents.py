"""docs/BENCHMARKS.md: what is between the markers is made, what is around them is written by hand."""
import json, os

from .command_line import REPOSITORY, Refused

DOCUMENT = REPOSITORY / "docs/BENCHMARKS.md"
# Beside the document: the charts it shows and every sample behind its tables.
FIGURES = REPOSITORY / "docs/benchmarks"


def markers(section):
    return f"<!-- begin {section}: made by a script, see above -->", f"<!-- end {section} -->"


def write(path, text):
    """All or nothing."""
    part = str(path) + ".part"
    with open(part, "w") as file:
        file.write(text)
    os.replace(part, path)


def check(section):
    """Before hours are spent on a table that has no place."""
    text = DOCUMENT.read_text() if DOCUMENT.exists() else ""
    for marker in markers(section):
        if text.count(marker) != 1:
            raise Refused(f"docs/BENCHMARKS.md must have the line `{marker}` once; put it where the table belongs")


def replace(section, body):
    check(section)
    begin, end = markers(section)
    text = DOCUMENT.read_text()
    before, after = text[: text.index(begin) + len(begin)], text[text.index(end):]
    write(DOCUMENT, f"{before}\n{body.strip()}\n{after}")


def keep(section, document, figure=None):
    FIGURES.mkdir(exist_ok=True)
    write(FIGURES / f"{section}.json", json.dumps(document, indent=1) + "\n")
    if figure:
        write(FIGURES / f"{section}.svg", figure)
