#!/usr/bin/env python3
"""Writes the manual pages of the commands, from what the program says of itself.

usage: promisefs --experimental-dump-help | scripts/manual.py FOLDER

One page for the program and one for each command (`promisefs-mount.1`); the commands of a command are on its page.
"""
import json
import os
import sys

NAME = "promisefs"


def escaped(text):
    """For roff: nothing in it is a request, and a hyphen stays one that can be copied."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line[:1] in (".", "'") else line for line in text.split("\n"))


def name_of(name):
    return ("--" if name["kind"] == "long" else "-") + name["name"]


def synopsis(argument):
    value = escaped(argument.get("valueName", ""))
    if argument["kind"] == "positional":
        text = f"\\fI{value}\\fR"
    else:
        text = f"\\fB{escaped(name_of(argument['preferredName']))}\\fR"
        if argument["kind"] == "option":
            text += f" \\fI{value}\\fR"
    if argument["isRepeating"]:
        text += " ..."
    return f"[{text}]" if argument["isOptional"] else text


def entry(argument):
    """A tagged paragraph: the names, and what it does."""
    if argument["kind"] == "positional":
        tag = f"\\fI{escaped(argument['valueName'])}\\fR"
    else:
        tag = ", ".join(f"\\fB{escaped(name_of(name))}\\fR" for name in argument["names"])
        if argument["kind"] == "option":
            tag += f" \\fI{escaped(argument['valueName'])}\\fR"
    lines = [".TP", tag, escaped(argument.get("abstract") or "")]
    if argument.get("defaultValue"):
        lines[-1] += escaped(f" (default: {argument['defaultValue']})")
    return lines


def discussion(text):
    """Its examples are those below `Example:`."""
    prose, _, example = text.partition("Example:\n")
    lines = []
    if prose.strip():
        lines += [".PP", escaped(prose.strip())]
    if example.strip():
        lines += [".SS Example" if not prose.strip() else ".PP\nExample:", ".PP", ".nf", ".RS 4"]
        lines += [escaped(line[2:] if line.startswith("  ") else line) for line in example.rstrip().split("\n")]
        lines += [".RE", ".fi"]
    return lines


def shown(command):
    return [argument for argument in command.get("arguments", []) if argument["shouldDisplay"]]


def without_common(command):
    return [a for a in shown(command) if not any(n["name"] in ("help", "h", "version") for n in a.get("names", []))]


def children(command):
    return [child for child in command.get("subcommands", []) if child["shouldDisplay"] and child["commandName"] != "help"]


def usage(command, words):
    arguments = without_common(command)
    options = [a for a in arguments if a["kind"] != "positional"]
    parts = [f"\\fB{escaped(' '.join(words))}\\fR"]
    parts += [synopsis(a) for a in options] if len(options) <= 6 else ["[\\fIoption\\fR ...]"]
    parts += [synopsis(a) for a in arguments if a["kind"] == "positional"]
    if children(command):
        parts.append("\\fIcommand\\fR ...")
    return " ".join(parts)


def page(command, words, version, root):
    title = "-".join(words)
    abstract = command.get("abstract", "")
    lines = [
        '.\\" Made from what the program says of itself.',
        f'.TH {title.upper()} 1 "" "{version}" "PromiseFS"',
        ".SH NAME", f"{escaped(title)} \\- {escaped(abstract[:1].lower() + abstract[1:].rstrip('.'))}",
        ".SH SYNOPSIS", usage(command, words), ".SH DESCRIPTION", escaped(abstract),
    ]
    lines += discussion(command.get("discussion", ""))
    if shown(command):
        lines.append(".SH OPTIONS")
        for argument in shown(command):
            lines += entry(argument)
    if command is root:
        lines.append(".SH COMMANDS")
        for child in children(command):
            lines += [".TP", f"\\fB{escaped(' '.join(words + [child['commandName']]))}\\fR", escaped(child.get("abstract", ""))]
    else:
        for child in children(command):
            lines += [f".SH {escaped(child['commandName']).upper()}", escaped(child.get("abstract", "")), ".PP"]
            lines.append(usage(child, words + [child["commandName"]]))
            lines += discussion(child.get("discussion", ""))
            for argument in without_common(child):
                lines += entry(argument)
    lines.append(".SH SEE ALSO")
    if command is root:
        others = [f"\\fB{escaped(title + '-' + child['commandName'])}\\fR(1)" for child in children(command)]
        lines.append(",\n".join(others + ["\\fBmount.promisefs\\fR(8)"]))
    else:
        lines.append(f"\\fB{NAME}\\fR(1)")
    return "\n".join(lines) + "\n"


def main():
    folder = sys.argv[1]
    root = json.load(sys.stdin)["command"]
    version = os.environ.get("PROMISEFS_VERSION", NAME)
    os.makedirs(folder, exist_ok=True)
    for command in [root] + children(root):
        words = [NAME] if command is root else [NAME, command["commandName"]]
        with open(os.path.join(folder, "-".join(words) + ".1"), "w", encoding="utf-8") as file:
            file.write(page(command, words, version, root))


if __name__ == "__main__":
    main()
