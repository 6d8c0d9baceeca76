"""Counts the words of the text files of a folder, and goes on where a file cannot be had just now. A program that knows nothing of
PromiseFS.

usage: wordcount.py FOLDER
"""
import os
import sys


def count(folder):
    """The words of each file, and the sentences about those that could not be read."""
    words, problems = {}, []
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(place, name)
            try:
                with open(path, encoding="utf-8") as file:
                    words[os.path.relpath(path, folder)] = len(file.read().split())
            except OSError as error:
                problems.append(f"{os.path.relpath(path, folder)}: {error.strerror}")
    return words, problems


if __name__ == "__main__":
    found, unread = count(sys.argv[1])
    for name, number in found.items():
        print(f"{number:7} {name}")
    for sentence in unread:
        print(sentence, file=sys.stderr)
    sys.exit(1 if unread else 0)
