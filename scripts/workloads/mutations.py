#!/usr/bin/env python3
"""Puts faults into the engine, one at a time, and says how many schedules of the simulation it takes to find each.

usage: mutations.py BUILD-FOLDER [--only NAME,…] [--schedules 20000]
       mutations.py --list | --check
example: scripts/workloads/mutations.py /var/tmp/mutations --only two-operations-on-one-item

A copy of the project is made and built in BUILD-FOLDER, once, with each fault behind a switch; a later run uses it again. Ends with
1 when a fault is not found within the schedules, or when its text is not in the source any more: --check looks for that alone.
"""
import argparse, os, re, shutil, subprocess, sys, time

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
SYNC = "Sources/PromiseSync/"

# Name, file, what is there, what is put in its place, where FAULTY says whether this fault is on. Those with a number are the kinds
# of faults that daemons side by side have had; nothing blocks in the simulation (kind 9).
MUTATIONS = [
    ("1-open-writes-are-not-noted", SYNC + "Machine/Turns/Turn+Trees.swift",
     "try world.observer.noteOpenWrites(of: id, transaction)",
     "if !FAULTY { try world.observer.noteOpenWrites(of: id, transaction) }"),
    ("2-a-refused-call-leaves-its-mark", SYNC + "Machine/Turns/Turn+Sent.swift",
     "case .conflict, .notFound, .stale, .refused, .outOfSpace: true",
     "case .conflict, .notFound, .stale, .refused, .outOfSpace: !FAULTY"),
    ("2-size-alone-recognises", SYNC + "Machine/Turns/Turn+Sent.swift",
     "return comparesTimes && item.metadata.modificationTime == modificationTime",
     "return FAULTY || comparesTimes && item.metadata.modificationTime == modificationTime"),
    ("3-what-is-under-way-goes-with-its-folder", SYNC + "Tree/Tree+Removing.swift",
     "guard case .entry(let id) = operation.subject, let other",
     "guard !FAULTY, case .entry(let id) = operation.subject, let other"),
    ("4-a-name-shown-for-another-pushes-ours-aside", SYNC + "Tree/Tree+Placing.swift",
     "guard let identifier = entry.identifier else { return false }\n        switch",
     "guard let identifier = entry.identifier, !FAULTY else { return false }\n        switch"),
    ("5-nobody-finishes-a-temporary-name", SYNC + "Tree/Tree+Following.swift",
     "return try MovesOfOthers.finish(item, aside, entry, &turn, transaction) ? .again : .done",
     "if FAULTY { return .waits }\n"
     "            return try MovesOfOthers.finish(item, aside, entry, &turn, transaction) ? .again : .done"),
    ("6-another-kind-is-the-same-item", SYNC + "Tree/Tree+Following.swift",
     "item.kind != synced.kind\n", "item.kind != synced.kind && !FAULTY\n"),
    ("7-what-comes-lands-on-what-was-written", SYNC + "Hydration/HydrationJob.swift",
     "let gaps = state.plan.present.missing(in: range.clamped(to: state.plan.size))",
     "let range = range.clamped(to: state.plan.size)\n"
     "            let gaps = FAULTY ? [range] : state.plan.present.missing(in: range)"),
    ("7-pieces-are-of-two-versions", SYNC + "Hydration/HydrationPlan.swift",
     "for range in unproven.ranges { present.remove(range) }",
     "for range in unproven.ranges where !FAULTY { present.remove(range) }"),
    ("7-pieces-are-not-kept", SYNC + "Tree/Tree+Pieces.swift",
     "guard try makeSparse(entry.node, &turn, transaction) else { return }",
     "guard !FAULTY, try makeSparse(entry.node, &turn, transaction) else { return }"),
    ("8-a-failed-write-keeps-its-claim", SYNC + "Hydration/ContentClaim.swift",
     "job.release(number, with: nil)", "if !FAULTY { job.release(number, with: nil) }"),
    ("10-another-version-is-another-content", SYNC + "Machine/Operations/Telling+Conflict.swift",
     "return known.version == agreed.version && known.size == size",
     "return !FAULTY && known.version == agreed.version && known.size == size"),
    ("a-conflict-keeps-theirs-only", SYNC + "Planning/Planner.swift",
     "return local.isEdited ? .keepBoth(remote) : .replaceContent(remote)",
     "return local.isEdited && !FAULTY ? .keepBoth(remote) : .replaceContent(remote)"),
    ("a-removal-wins-over-an-edit", SYNC + "Planning/Planner.swift",
     "return hasNewContent(remote, synced) ? .insertLocal(remote) : .deleteRemote(base: remote)",
     "return hasNewContent(remote, synced) && !FAULTY ? .insertLocal(remote) : .deleteRemote(base: remote)"),
    ("edits-are-counted-on", "Sources/PromiseIndex/Records.swift",
     "edits = max(edits, others) + (1 << 32)", "edits = max(edits, others) + (FAULTY ? 0 : 1 << 32)"),
    # Each way to give a name another node counts on ("edits-are-counted-on"), so that no two nodes of a name count alike, and the
    # line that looks after it alone changes nothing: with it goes what it covers.
    ("an-earlier-edit-is-the-last-one", SYNC + "Machine/Operations/Answering.swift",
     "if remote != local { try keepEdited(operation, than: edits, turn, transaction) }",
     "let edits = FAULTY ? operation.edits : edits\n"
     "            if remote != local && !FAULTY { try keepEdited(operation, than: edits, turn, transaction) }"),
    ("what-was-made-is-what-left", SYNC + "Machine/Turns/Turn+Identity.swift",
     "let shown = try transaction.entry(for: known.identifier), shown.id != own",
     "let shown = try transaction.entry(for: known.identifier), shown.id != own && !FAULTY"),
    ("a-listing-goes-on-in-another-folder", SYNC + "Machine/Listings/Listings+Storing.swift",
     "try turn.identifier(of: folder, transaction) == listing.identifier",
     "try turn.identifier(of: folder, transaction) == listing.identifier || FAULTY"),
    ("two-operations-on-one-item", SYNC + "Machine/Operations/Telling.swift",
     "if let item = try item(of: pending.subject, transaction), turn",
     "if let item = try item(of: pending.subject, transaction), !FAULTY, turn"),
    ("digests-come-late", SYNC + "Driver/Dispatcher.swift",
     "await mailbox.deliver(.digested(sent, digest))",
     "if !FAULTY { await mailbox.deliver(.digested(sent, digest)) }"),
    ("told-before-it-is-looked", SYNC + "Machine/Machine+Due.swift",
     "var mayTell: Bool { memory.listings.unscanned.isEmpty }",
     "var mayTell: Bool { FAULTY || memory.listings.unscanned.isEmpty }"),
    ("sent-without-a-base", SYNC + "Machine/Operations/Operation.swift", "contents: source, baseVersion: base)",
     "contents: source, baseVersion: FAULTY ? nil : base)"),
    ("deleted-without-a-base", SYNC + "Machine/Operations/Operation.swift",
     "try await provider.delete(reference, baseVersion: base)",
     "try await provider.delete(reference, baseVersion: FAULTY ? nil : base)"),
    ("old-listings-are-believed", SYNC + "Machine/Memory.swift",
     "return isTouched(item.identifier, since: count) || isTouched(place, since: count)",
     "return !FAULTY\n"
     "            && (isTouched(item.identifier, since: count) || isTouched(place, since: count))"),
    ("a-move-is-sent-again-without-a-look", SYNC + "Machine/Operations/Telling.swift",
     "if try UnansweredMoves.areToBeLookedFor(", "if !FAULTY, try UnansweredMoves.areToBeLookedFor("),
    ("the-only-copy-is-not-on-the-disk", "Sources/PromiseFilesystem/Tree/Content/LastCopies.swift",
     "guard node.kind == .file, node.content != .absent,", "guard !FAULTY, node.kind == .file, node.content != .absent,"),
    ("an-end-in-order-leaves-contents-off-the-disk", "Sources/PromiseFilesystem/Tree/Content/ContentAtEnd.swift",
     "for node in nodes {", "for node in nodes where !FAULTY {"),
    ("what-was-sent-is-awaited-at-a-name-of-others", SYNC + "Tree/Tree+Content.swift",
     "try transaction.deleteSent(for: entry.id)", "if !FAULTY { try transaction.deleteSent(for: entry.id) }"),
    ("what-was-found-is-still-awaited", SYNC + "Machine/Operations/Answering.swift",
     "try forgetMade(item, digest: remote, turn, transaction)",
     "if !FAULTY { try forgetMade(item, digest: remote, turn, transaction) }"),
    # Not when a comparison has come to nothing: nothing is believed of an item while one is under way, so that line is for what
    # cannot be today.
    ("a-removal-is-forgotten", SYNC + "Machine/Operations/Answering.swift",
     "try turn.remind(.deletion(item.identifier), transaction)",
     "if !FAULTY { try turn.remind(.deletion(item.identifier), transaction) }"),
]

# Situations that come by name alone (`simulate --situation NAME`), and what each is there to find: that is all which the process of
# situations plays for it.
PLAYED_BY = {
    "7-pieces-are-of-two-versions": "editedInPieces",
    "7-pieces-are-not-kept": "editedInPieces",
    "told-before-it-is-looked": "movedOn",
    "deleted-without-a-base": "removalMeetsEdit",
}

# Which fault is in; read once.
SWITCH = """
import Glibc

private let fault = getenv("PROMISEFS_MUTATION").map { String(cString: $0) }

package func isFaulty(_ name: String) -> Bool { fault == name }
"""


def copy_project(folder):
    tree = os.path.join(folder, "tree")
    os.makedirs(tree, exist_ok=True)
    subprocess.run(["rsync", "-a", "--delete", "--exclude=/.build*", "--exclude=/.git", ROOT + "/", tree + "/"], check=True)
    return tree


def put_in(tree, chosen):
    """All faults at once, each behind its switch. Returns those whose text is not in the source any more."""
    missing = []
    for name, path, old, new in chosen:
        place = os.path.join(tree, path)
        with open(place) as file:
            text = file.read()
        if text.count(old) != 1:
            missing.append(name)
            print(f"{name}: its text is {text.count(old)} times in {path}", flush=True)
            continue
        imported = "" if re.search(r"^(package |public )?import PromiseCore$", text, re.M) else "import PromiseCore\n"
        with open(place, "w") as file:
            file.write(imported + text.replace(old, new.replace("FAULTY", f'isFaulty("{name}")')))
    with open(os.path.join(tree, "Sources/PromiseCore/Fault.swift"), "w") as file:
        file.write(SWITCH)
    return missing


def check():
    """Whether each fault's text is in the source, once."""
    wrong = []
    for name, path, old, _ in MUTATIONS:
        with open(os.path.join(ROOT, path)) as file:
            count = file.read().count(old)
        if count != 1:
            wrong.append(name)
            print(f"{name}: its text is {count} times in {path}")
    return wrong


def build(folder, tree):
    done = subprocess.run(["swift", "build", "-c", "release", "--package-path", tree, "--scratch-path",
                           os.path.join(folder, "build"), "--product", "simulate"], capture_output=True, text=True)
    if done.returncode != 0:
        errors = [line for line in done.stdout.splitlines() if "error" in line]
        sys.exit("it does not build: " + "\n".join(errors[:5]))
    return os.path.join(folder, "build", "release", "simulate")


def schedules_until_found(executable, name, limit):
    """Three processes, each with seeds of its own, one of them with situations, one with large files; the number of schedules
    run when the first has found something, or None."""
    part = limit // 3
    situations = ["--situation", PLAYED_BY[name]] if name in PLAYED_BY else ["--situations"]
    environment = dict(os.environ, PROMISEFS_MUTATION=name)
    runs = [subprocess.Popen([executable, "--seed", str(1 + index * part), "--schedules", str(part), "--stop", *more],
                             stdout=subprocess.PIPE, text=True, env=environment)
            for index, more in enumerate(([], situations, ["--large-files", "--swarm"]))]
    try:
        while True:
            for run in runs:
                if run.poll() == 1:
                    seed = int(re.search(r"^seed (\d+):", run.stdout.read(), re.M).group(1))
                    return 3 * ((seed - 1) % part + 1), seed
            if all(run.poll() is not None for run in runs):
                return None
            time.sleep(0.2)
    finally:
        for run in runs:
            run.kill()
            run.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--only", default=None)
    parser.add_argument("--schedules", type=int, default=20_000)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    if arguments.check:
        sys.exit(1 if check() else 0)
    wanted = arguments.only.split(",") if arguments.only else None
    chosen = [each for each in MUTATIONS if wanted is None or each[0] in wanted]
    if arguments.list or not arguments.folder:
        return print("\n".join(name for name, *_ in MUTATIONS))
    tree = copy_project(arguments.folder)
    missed = put_in(tree, chosen)
    executable = build(arguments.folder, tree)
    for name, *_ in chosen:
        if name in missed:
            continue
        found = schedules_until_found(executable, name, arguments.schedules)
        if found is None:
            missed.append(name)
        print(f"{name}: " + (f"found within {found[0]} schedules, by seed {found[1]}" if found else "not found"), flush=True)
    print(f"{len(chosen) - len(missed)} of {len(chosen)} found", flush=True)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
