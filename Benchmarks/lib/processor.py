"""Processor time, which says on a busy machine what wall-clock time cannot."""
import os, resource

from . import system


def descendants(processes):
    """With themselves."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        if text := system.read_text(f"/proc/{name}/stat"):
            parents.setdefault(int(text.rpartition(")")[2].split()[1]), []).append(int(name))
    found, waiting = set(), list(processes)
    while waiting:
        process = waiting.pop()
        if process not in found:
            found.add(process)
            waiting += parents.get(process, [])
    return found


def seconds(processes):
    """Of processes and those below them, and of this one's children that have ended; user and system."""
    ticks = 0
    for process in descendants(processes):
        if text := system.read_text(f"/proc/{process}/stat"):
            words = text.rpartition(")")[2].split()
            ticks += int(words[11]) + int(words[12])
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ticks / os.sysconf("SC_CLK_TCK") + children.ru_utime + children.ru_stime
