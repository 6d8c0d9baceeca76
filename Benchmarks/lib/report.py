"""Documents as Markdown, for the terminal and for docs/BENCHMARKS.md."""
import json

from . import chart, documents, system
from .command_line import tell
from .results import SPREAD_WIDE


def number(value):
    if value is None:
        return "-"
    for limit, digits in ((100, 0), (10, 1), (1, 2)):
        if abs(value) >= limit:
            return f"{value:,.{digits}f}"
    return f"{value:.3g}"


def factor(value):
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def table(header, rows, numbers_from=1):
    """A Markdown table; columns from `numbers_from` on are aligned to the right."""
    rule = ["---" if index < numbers_from else "---:" for index in range(len(header))]
    return "\n".join("| " + " | ".join(line) + " |" for line in [header, rule, *rows])


def cell(entry, is_reference):
    """`median ±spread` of the reference, `median, ratio (smallest–largest ratio)` of the others."""
    if "median" not in entry:
        return "fails" if "failure" in entry else ""
    text = number(entry["median"])
    if not is_reference and "ratio" in entry:
        text += f", **{factor(entry['ratio'])}**"
        if len(entry["samples"]) > 1:
            text += f" ({factor(entry['ratioMin'])}–{factor(entry['ratioMax'])})"
    elif len(entry["samples"]) > 1:
        text += f" ±{entry['spread'] * 50:.0f}%"
    if entry["spread"] > SPREAD_WIDE:
        text += " ~"
    return text + (" !" if entry.get("failures") else "")


def main_table(document):
    labels = [subject["label"] for subject in document["subjects"]]
    has_wanted = any("wanted" in row for row in document["rows"])
    rows = []
    for row in document["rows"]:
        arrow = "↑" if row["better"] == "higher" else "↓"
        cells = [cell(row["subjects"].get(label, {}), label == document["reference"]) for label in labels]
        wanted = [factor(row["wanted"]) if "wanted" in row else ""] if has_wanted else []
        rows.append([row["row"], f"{row['unit']} {arrow}", *cells, *wanted])
    return table([document.get("rowTitle", "workload"), "unit", *labels, *(["wanted"] if has_wanted else [])], rows, 2)


def failures(document):
    """Each reason once, with its subject and the rows."""
    rows_of = {}
    for row in document["rows"]:
        for label, entry in row["subjects"].items():
            if "failure" in entry:
                reason = entry["failure"]
            elif entry.get("failures"):
                reason = f"failed in {len(entry['failures'])} rounds: {entry['failures'][0]}"
            else:
                continue
            rows_of.setdefault((label, reason), []).append(row["row"])
    every = len(document["rows"])
    return [f"- {label}, {'every row' if len(rows) == every else ', '.join(rows)}: {reason}"
            for (label, reason), rows in rows_of.items()]


def legend(document):
    reference = document["reference"]
    rounds = "One round" if document["rounds"] == 1 else f"Medians of {document['rounds']} rounds"
    text = (f"{rounds}; in bold how fast compared with {reference}, whatever the unit, as the "
            "median of the rounds' ratios (1.00: the same), in brackets the smallest and the largest. ↑ more is better, "
            f"↓ less is better; ± half the spread of {reference}; ~ samples spread by more than half of the median.")
    if any(entry.get("failures") for row in document["rows"] for entry in row["subjects"].values()):
        text += " ! failed in some rounds."
    return text


def subjects_list(document):
    return [f"- {subject['label']}: {subject['description']}" for subject in document["subjects"] if subject["description"]]


def markdown(document, chart_path=None):
    """All of one benchmark, but for the sentences on limits."""
    parts = [f"`{document['command']}`", system.sentence(document["machine"]), "\n".join(subjects_list(document))]
    if chart_path:
        parts.append(f"![{document['title']}]({chart_path})")
    parts += [main_table(document), legend(document)]
    if lines := failures(document):
        parts.append("Failures:\n\n" + "\n".join(lines))
    return "\n\n".join(part for part in parts if part)


def limits(document):
    """What each row does, and what limits it."""
    return table(["workload", "what is measured", "what limits it"],
                 [[row["row"], row["what"], row["limit"]] for row in document["rows"]], 3)


def publish(document, arguments, body, section, figure=None):
    """Prints the report and writes what was asked for. `figure`: the text of an SVG."""
    print(body(None))
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(document, file, indent=1)
            file.write("\n")
    if figure and getattr(arguments, "svg", None):
        with open(arguments.svg, "w") as file:
            file.write(figure)
    if arguments.write_docs:
        documents.keep(section, document, figure)
        documents.replace(section, body(f"benchmarks/{section}.svg" if figure else None))
        tell(f"docs/BENCHMARKS.md: `{section}` is up to date")


def ratio_chart(document):
    return chart.ratios(document["title"], document)
