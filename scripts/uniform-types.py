#!/usr/bin/env python3
"""Writes Sources/PromiseDomain/Types/UniformTypes.swift from the lists of utitools (https://pypi.org/project/utitools, MIT):
which uniform type identifier an extension has, and what that is a kind of.
usage: scripts/uniform-types.py FOLDER-OF-UTITOOLS > Sources/PromiseDomain/Types/UniformTypes.swift"""
import collections
import csv
import json
import sys
import textwrap

with open(f"{sys.argv[1]}/uti_tree.json", encoding="utf-8") as file:
    trees = json.load(file)
groups = collections.defaultdict(lambda: collections.defaultdict(list))
with open(f"{sys.argv[1]}/uti.csv", encoding="utf-8") as file:
    for row in csv.DictReader(file):
        extension, name = row["extension"].lower(), row["UTI"]
        tree = trees.get(name)
        # A file is no package, whatever it is called; and what is only known to one machine is no type.
        if not tree or name.startswith("dyn.") or "public.directory" in tree or not extension.isascii() or " " in extension:
            continue
        parents = [parent for parent in tree[1:] if parent != name]
        if extension not in groups[tuple(parents)][name]:
            groups[tuple(parents)][name].append(extension)
print("""// Written by scripts/uniform-types.py from the lists of utitools 0.5.0 (MIT, Copyright (c) 2024
// Rhet Turnbull); see docs/DEPENDENCIES.md.

/// Which uniform type identifier an extension has, and what that is a kind of: the published list.
enum UniformTypes {
    /// A line that begins with `<` is what all after it are kinds of; the others have identifiers,
    /// each with its extensions: `public.jpeg=jpg,jpeg`.
    static let table = \"\"\"""")
for parents in sorted(groups):
    print(textwrap.indent(textwrap.fill("< " + " ".join(parents), 92, break_long_words=False, break_on_hyphens=False,
                                        subsequent_indent="< "), " " * 8))
    words = [f"{name}={','.join(sorted(extensions))}" for name, extensions in sorted(groups[parents].items())]
    print(textwrap.indent(textwrap.fill(" ".join(words), 92, break_long_words=False, break_on_hyphens=False), " " * 8))
print('        """\n}')
