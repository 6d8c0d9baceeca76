#!/usr/bin/env python3
"""Processes claim items and places on a mount, while others show them, know nothing of it, or are killed, and so is the daemon.

usage: claims-on-a-mount.py --executable PROMISEFS [--cases 3000] [--seconds 8] [--seed N] [--folder DIR] [--keep]

Claims of all kinds, by the Python client and by `promisefs coordinate`, on files, folders, hard links and what is not there yet,
of a tree that programs write, save, rename, link and remove meanwhile, folders above included. Each process notes what it does
with the time of the machine's clock. From that it is checked, after each round of so many seconds:

- no two conflicting claims of different purposes were inside at once;
- who was granted a claim finds at the path what it asked for, or was told that it is gone;
- programs that know nothing were held up for as long as a claim was in their way, or until the deadline, and no longer;
- presenters were asked before a writer got in, and told where their item went, that it changed, and that it has gone;
- who waited was answered, and nothing is left of who was killed.

Status 1: it was not so. A case is one claim.
"""
import argparse, bisect, json, os, random, shutil, signal, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "clients", "python"))
import promisefs
from domain import Failed, Mount

REQUEST_DEADLINE, NAME_DEADLINE, ANSWER_LIMIT, TIMEOUT = 5.0, 0.4, 5.0, 15.0
OPEN_DEADLINE = REQUEST_DEADLINE * 4 / 5
PATIENCE = {"write": OPEN_DEADLINE, "truncate": NAME_DEADLINE, "remove": NAME_DEADLINE, "move": NAME_DEADLINE,
            "link": NAME_DEADLINE, "make": NAME_DEADLINE + OPEN_DEADLINE, "replace": 2 * NAME_DEADLINE + OPEN_DEADLINE}
ROLES = ["claimer"] * 8 + ["commander"] + ["unaware"] * 3 + ["presenter"] * 6
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "claims_program.py")
# What a busy machine takes for what needs no time.
SLACK = 20.0


def is_about_metadata(item):
    return bool({"immediatelyAvailableMetadataOnly", "contentIndependentMetadataOnly"} & set(item["options"]))


def changes_name(item):
    return bool({"forDeleting", "forMoving", "forReplacing"} & set(item["options"]))


def conflict(one, other):
    """Of the reference: whether two kinds of access exclude each other."""
    if one["access"] == "read" == other["access"]:
        return False
    return is_about_metadata(one) == is_about_metadata(other) or changes_name(one) or changes_name(other)


class Change:
    """What a program did, from before it until it was done or the program killed."""

    def __init__(self, begin):
        self.kind, self.paths, self.nodes, self.chains = (begin[key] for key in ("kind", "paths", "nodes", "chains"))
        self.claim, self.begin, self.end, self.error, self.node = begin["claim"], begin["t"], None, None, None
        self.effect, self.closing, self.links = None, None, begin["links"]

    def finish(self, end):
        self.end, self.error, self.node = end["t"], end.get("error"), end.get("node")
        self.effect, self.closing = end.get("opened", self.end), end.get("closing", self.end)

    @property
    def is_nothing(self):
        """A name moved over itself, or over another name of the same file (rename(2))."""
        return self.kind == "move" and self.nodes[0] == self.nodes[1]

    def touches(self, path):
        """The path, or a folder on the way to it."""
        return any(path == each or path.startswith(each + "/") for each in self.paths)


class History:
    """Of one round, from the logs of its processes."""

    def __init__(self, folder, killed, daemon_kills):
        self.killed, self.daemon_kills = killed, sorted(daemon_kills)
        self.claims, self.presenters, self.changes = {}, {}, []
        self.told_count = 0
        for name in sorted(os.listdir(folder)):
            self.read(os.path.join(folder, name), name)
        self.changes.sort(key=lambda change: change.begin)
        self.begins = [change.begin for change in self.changes]
        for claim in self.claims.values():
            self.bound(claim)

    def read(self, path, name):
        who, changes = int(name), {}
        with open(path) as file:
            for line in file:
                if not line.endswith("\n"):
                    break  # It was killed in the middle of it.
                event = json.loads(line)
                what = event["what"] if "of" in event or "number" in event else None
                if what == "begin":
                    changes[event["number"]] = Change(event)
                elif what == "end":
                    changes[event["number"]].finish(event)
                elif what:
                    claim = self.claims.setdefault(event["of"], {"who": who, "number": event["of"]})
                    claim["alive" if what == "alive" else what] = event["t"] if what == "alive" else event
                elif "style" in event or event["what"] in ("answered", "ended"):
                    self.presenters.setdefault(who, []).append(event)
        for change in changes.values():
            if change.end is None:
                change.end = self.killed.get(who, (1e18,))[0] + 1.0
        self.changes += changes.values()

    def daemon_died(self, start, end):
        return any(start <= each <= end for each in self.daemon_kills)

    def bound(self, claim):
        """When a claim was inside for certain: from `start` to `stop`; nil where nobody can say."""
        claim["start"] = None
        if "granted" not in claim:
            return
        start = claim["granted"]["t"]
        if "release" in claim:
            stop = claim["release"]["t"]
        elif "lost" in claim:
            stop = claim["lost"]["t"]
            if not self.daemon_died(claim["ask"]["t"], stop):
                raise Failed(f"claim {claim['number']} ended before it was given back, and no daemon died: {claim['lost']}")
        elif "alive" in claim:
            stop = claim["alive"]
            killing = claim.get("killing", {}).get("t")
            if killing and stop < killing + 0.3:
                stop = min(stop, killing)  # The command ends with its claim, but not in the same instant.
        else:
            stop = min(self.killed.get(claim["who"], (start,))[0], claim.get("killing", {"t": 1e18})["t"])
        deaths = [each for each in self.daemon_kills if claim["ask"]["t"] <= each <= stop]
        if deaths:
            stop = deaths[0]
        if stop > start:
            claim["start"], claim["stop"] = start, stop

    # Who disturbed whom is known only to those who did it.

    def between(self, start, end):
        first = bisect.bisect_left(self.begins, start - 20)
        for change in self.changes[first:bisect.bisect_right(self.begins, end)]:
            if change.end >= start:
                yield change

    def is_touched(self, path, start, end, but=None):
        return any(change.touches(path) and change is not but for change in self.between(start, end))

    def is_replaced(self, nodes, kinds, start, end):
        nodes = set(nodes) - {None}
        return any(change.kind in kinds and nodes & set(change.nodes) for change in self.between(start, end))

    def check(self):
        self.fill()
        self.check_exclusion()
        for claim in self.claims.values():
            self.check_answer(claim)
            self.check_path(claim)
            self.check_open_writers(claim)
        for change in self.changes:
            self.check_unaware(change)
        for who, events in self.presenters.items():
            self.check_presenter(who, events)

    def fill(self):
        """Each claim's items with the node, the folders above and the place that were granted."""
        for claim in self.claims.values():
            claim["items"] = []
            if claim["start"] is None:
                continue
            found = claim.get("found")
            for index, item in enumerate(claim["ask"]["items"]):
                granted = claim["granted"]["items"][index]
                path, node = granted["path"], granted["node"]
                if claim["ask"].get("command"):
                    # Only the path is told: it is sure when nothing happened there.
                    if node != item["node"] or self.is_touched(path, claim["ask"]["t"] - 1, claim["start"]):
                        continue
                    chain, sight = None, node
                elif found:
                    chain, sight = found["chains"][index], found["nodes"][index]
                else:
                    chain, sight = None, None
                claim["items"].append(item | {"now": node, "at": path, "chain": chain, "sight": sight})

    def check_exclusion(self):
        inside = []
        for claim in sorted((each for each in self.claims.values() if each["start"]), key=lambda each: each["start"]):
            inside = [other for other in inside if other["stop"] > claim["start"]]
            for other in inside:
                purpose = claim["ask"]["purpose"]
                if purpose is not None and purpose == other["ask"]["purpose"]:
                    continue
                for one in claim["items"]:
                    for two in other["items"]:
                        if conflict(one, two) and self.is_one(one, claim, two, other):
                            raise Failed(f"two claims were inside at once: {self.tell(other)} and then {self.tell(claim)}: "
                                         f"{two} {one}")
            inside.append(claim)

    def is_one(self, one, claim, two, other):
        """Whether two items are the same, or one is in the other, as far as nobody moved or replaced anything meanwhile."""
        start, end = other["ask"]["t"] - 1, claim["start"] + 1
        if one["now"] is not None and one["now"] == two["now"]:
            # A program that has waited long enough moves what one of them has to the place that the other one has: what were
            # two things when they were asked for is one.
            is_moved = one["node"] != two["node"] and self.is_replaced([one["now"]], ("move",), start, end)
            return not is_moved and not self.is_replaced([one["now"]], ("replace",), start, end)
        for item, held in ((one, two), (two, one)):
            if held["now"] is not None and item["chain"] and held["now"] in item["chain"]:
                nodes = [*item["chain"], item["now"], item["sight"]]
                return not self.is_replaced(nodes, ("move", "replace", "link"), start, end) \
                    and not self.is_touched(item["at"], start, end)
        if one["now"] is None and two["now"] is None and one["chain"] and two["chain"]:
            is_same = one["chain"][-1] == two["chain"][-1] and os.path.basename(one["at"]) == os.path.basename(two["at"])
            return is_same and not self.is_touched(one["at"], start, end)
        return False

    def tell(self, claim):
        return f"{claim['number']} ({claim['start']:.4f} to {claim['stop']:.4f}, asked {claim['ask']['t']:.4f})"

    def check_answer(self, claim):
        """Everybody who waits is answered, and nobody is told that something is gone that is not."""
        ask, outcome = claim["ask"], claim.get("granted") or claim.get("refused")
        if outcome is None:
            if claim["who"] in self.killed or "killing" in claim:
                return
            raise Failed(f"the claim {ask} was never answered")
        waited = outcome["t"] - ask["t"]
        if waited > TIMEOUT + SLACK:
            raise Failed(f"the claim {ask} was answered after {waited:.1f} s")
        refused = claim.get("refused", {})
        if refused.get("code") == "gone":
            nodes = {item["node"] for item in ask["items"]}
            touched = any(self.is_touched(item["path"], ask["t"] - 1, outcome["t"]) for item in ask["items"])
            if not touched and not self.is_replaced(nodes, ("remove", "replace", "move"), ask["t"] - 1, outcome["t"]):
                raise Failed(f"the claim {ask} was told that its item is gone, and nobody removed it")

    def check_path(self, claim):
        """Who is let in finds what it asked for."""
        for item in claim["items"]:
            if claim["ask"].get("command"):
                continue
            start, granted = claim["ask"]["t"] - 1, claim["start"]
            if item["node"] != item["now"] and not self.is_touched(item["path"], start, granted) \
                    and not self.is_replaced([item["node"]], ("replace", "move", "remove"), start, granted):
                raise Failed(f"{self.tell(claim)} was granted another thing: {item}")
            # Another name of the same file, which link(2) made, is another thing, too. Who saves by way of a backup's name leaves
            # that for its own again, when the backup goes.
            path = item["path"].strip("/")
            if item["node"] == item["now"] and item["at"].strip("/") != path \
                    and not any(change.kind in ("move", "replace") and change.touches(path)
                                for change in self.between(start - 10, granted)):
                raise Failed(f"{self.tell(claim)} was led to another name of the file: {item}")
            seen = claim.get("found", {"t": None})["t"]
            if seen is None or item["sight"] == item["now"]:
                continue
            if not self.is_touched(item["at"], start, seen) and not self.daemon_died(granted, seen) \
                    and not self.is_replaced([item["now"], item["node"]], ("replace", "move", "remove"), start, seen):
                raise Failed(f"{self.tell(claim)} finds {item['sight']} at {item['at']}, and was granted {item['now']}")

    def check_open_writers(self, claim):
        """A claim to write waits for programs that write already, five seconds at most."""
        for item in claim["items"]:
            if item["access"] != "write" or is_about_metadata(item) or item["now"] is None:
                continue
            for change in self.between(claim["ask"]["t"], claim["start"]):
                if change.kind != "write" or change.claim or not change.effect or change.node != item["now"]:
                    continue
                asked, closing = claim["ask"]["t"], change.closing or change.end
                is_open = change.effect < asked - 0.05 and closing > claim["start"]
                if is_open and claim["start"] - asked < ANSWER_LIMIT * 0.9 and not self.daemon_died(change.begin, closing):
                    raise Failed(f"{self.tell(claim)} was let in while a program had {item} open for writing: {vars(change)}")

    def check_unaware(self, change):
        if change.claim is not None:
            return
        patience = PATIENCE[change.kind]
        end = change.effect or change.end
        if change.effect and end - change.begin > patience + SLACK and not self.daemon_died(change.begin, end):
            raise Failed(f"a program was held up for {end - change.begin:.1f} s: {vars(change)}")
        if change.error or change.effect is None or change.is_nothing \
                or change.kind not in ("write", "truncate", "remove", "move"):
            return
        node = change.node or change.nodes[0]
        options = {"remove": ["forDeleting"], "move": ["forMoving"]}.get(change.kind, [])
        access = {"access": "write", "options": options}
        if change.kind != "write" and self.is_touched(change.paths[0], change.begin - 0.5, end, but=change):
            return  # Another thing may have been there by then.
        for claim in self.claims.values():
            if not claim["start"] or not claim["start"] < change.begin or not end < claim["stop"]:
                continue
            for item in claim["items"]:
                if item["now"] != node or not conflict(item, access) or end - change.begin >= patience * 0.9:
                    continue
                if self.is_replaced([node], ("replace",), claim["ask"]["t"] - 1, end):
                    continue
                raise Failed(f"a program was let in after {end - change.begin:.3f} s: {vars(change)}, "
                             f"while {self.tell(claim)} had {item}")

    def check_presenter(self, who, events):
        """By what it heard over one connection, until that ended, or the presenter, or the daemon."""
        spans = []
        for event in events:
            if event["what"] == "presenting":
                spans.append({"node": event["node"], "since": event["t"], "until": None, "is_deaf": event["style"] is None,
                              "asked": [], "told": [], "places": [(event["t"], (event["path"] or "").strip("/"))]})
            elif event["what"] == "ended" and spans:
                spans[-1]["until"] = spans[-1]["until"] or event["t"]
            elif event["what"] in ("ask", "tell") and spans:
                spans[-1]["asked" if event["what"] == "ask" else "told"].append((event["t"], event["told"]))
                if event["told"] == "didMove":
                    spans[-1]["places"].append((event["t"], (event["path"] or "").strip("/")))
        for span in spans:
            until = min(span["until"] or 1e18, self.killed.get(who, (1e18,))[0])
            until = min([until, *[each for each in self.daemon_kills if each >= span["since"]]])
            # What is saved by a new file is another node from then on, of which no log tells.
            # Who showed a name that has gone has nothing to do with the others.
            until = min([until, *[each for each, what in span["told"] if what == "didDelete"]])
            span["alive"] = until
            for change in self.changes:
                if change.kind == "replace" and span["node"] in change.nodes and change.end > span["since"]:
                    until = min(until, change.begin)
            if span["node"] is not None:
                self.check_asked(span, until)
                self.check_told(span, until)

    def check_asked(self, span, until):
        """Before a writer got in; what it has given up and not got back it is not asked for again."""
        for claim in [] if span["is_deaf"] else self.claims.values():
            if not claim["start"] or claim["ask"]["t"] < span["since"] + 0.05 or claim["start"] > until - 0.05:
                continue
            for item in claim["items"]:
                if not item["now"] == span["node"] == item["node"] or item["access"] != "write" or is_about_metadata(item):
                    continue
                asked = [each for each, what in span["asked"] if what == "relinquishToWriter" and each <= claim["start"]]
                back = [each for each, what in span["told"] if what == "reacquire" and each <= claim["ask"]["t"]]
                if not asked or back and max(back) > max(asked):
                    raise Failed(f"nobody asked the presenter of {span['node']} before {self.tell(claim)} got in "
                                 f"for {claim['items']}: {span}")

    def check_told(self, span, until):
        """Of what was written to its item, and where that went."""
        for change in self.changes:
            if change.error or change.effect is None or not span["since"] + 0.05 < change.begin <= until:
                continue
            if change.end > span["alive"] - 1.5:
                continue
            words = self.words_for(change, span)
            if words and not any(what in words and each > change.begin for each, what in span["told"]):
                raise Failed(f"nobody told the presenter of {span['node']} of {vars(change)}: {span}")
            self.told_count += bool(words)

    def words_for(self, change, span):
        """What the presenter has to hear of a change, one of these; none: of that nobody is sure."""
        if change.kind == "write":
            return ("didChange", "didDelete") if change.node == span["node"] else ()
        if change.kind not in ("move", "remove", "replace") or change.is_nothing or change.links != 1 and change.nodes[0] == span["node"]:
            return ()
        place = [path for each, path in span["places"] if each <= change.begin][-1]
        is_own = change.nodes[0] == span["node"] and change.paths[0] == place
        is_above = change.kind == "move" and place.startswith(change.paths[0] + "/")
        if not is_own and not is_above or self.is_touched(place, change.begin - 1, change.end + 0.2, but=change):
            return ()
        return {"remove": ("didDelete",), "replace": ("didChange", "didDelete"), "move": ("didMove",)}[change.kind]


class Round:
    """Some seconds of work, with programs that are killed, and what is left of it."""

    def __init__(self, world, number):
        self.world, self.pick, self.mount = world, world.pick, world.mount
        self.folder = os.path.join(self.mount.folder, f"round{number}")
        self.stop, self.logs = os.path.join(self.folder, "stop"), os.path.join(self.folder, "logs")
        os.makedirs(self.logs)
        self.running, self.killed, self.daemon_kills, self.count = {}, {}, [], 0

    def start(self, role):
        log = os.path.join(self.logs, str(self.count))
        seed = str(self.pick.randrange(10**9))
        words = [sys.executable, PROGRAM, role, self.mount.top, self.world.socket, self.stop, log, seed]
        self.running[self.count] = (role, subprocess.Popen(
            words, env=self.world.environment, stdin=subprocess.DEVNULL, stdout=self.world.errors, stderr=self.world.errors))
        self.count += 1

    def kill(self, number):
        role, process = self.running.pop(number)
        self.killed[number] = (time.monotonic(), role)
        process.kill()
        process.wait()
        return role

    def work(self, seconds, kills_daemon):
        for role in ROLES:
            self.start(role)
        end = time.monotonic() + seconds
        daemon_dies = end - seconds * self.pick.uniform(0.3, 0.7) if kills_daemon else end + 1
        while time.monotonic() < end:
            time.sleep(self.pick.uniform(0.1, 0.8))
            self.start(self.kill(self.pick.choice(list(self.running))))
            if time.monotonic() > daemon_dies:
                self.kill_daemon()
                daemon_dies = end + 1

    def kill_daemon(self):
        processes = self.mount.processes()
        self.daemon_kills.append(time.monotonic())
        self.mount.send(signal.SIGKILL, processes)

    def finish(self, dies):
        """Whoever asks ends by itself, or is killed where he is: then nothing of it is in the way any more."""
        open(self.stop, "w").close()
        others = [number for number, (role, _) in self.running.items() if role != "presenter"]
        if dies:
            for number in others:
                self.kill(number)
        deadline = time.monotonic() + TIMEOUT + SLACK
        for number in others:
            if number not in self.running:
                continue
            try:
                self.running[number][1].wait(timeout=max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise Failed(f"a {self.running[number][0]} does not end: somebody waits for ever")
            role, process = self.running.pop(number)
            if process.returncode != 0:
                raise Failed(f"a {role} ended with {process.returncode}: {self.world.words()}")
        self.everything_is_free()

    def everything_is_free(self):
        """Presenters that do not answer hold up for five seconds, one after the other in folders above each other at most."""
        began, limit = time.monotonic(), 4 * ANSWER_LIMIT + SLACK
        try:
            with promisefs.Domain(self.world.socket).coordinate(promisefs.writing("/"), timeout=limit):
                pass
        except promisefs.PromiseError as problem:
            raise Failed(f"a claim of what is gone is in the way after {time.monotonic() - began:.1f} s: {problem}")

    def end(self):
        for number in list(self.running):
            self.kill(number)
        return History(self.logs, self.killed, self.daemon_kills)


class World:
    def __init__(self, mount, pick):
        self.mount, self.pick = mount, pick
        self.socket = promisefs.locate(mount.top)[0].socket_path
        self.errors = open(os.path.join(mount.folder, "errors"), "w+")
        self.environment = mount.environment | {"PROMISEFS_EXECUTABLE": mount.executable, "PYTHONDONTWRITEBYTECODE": "1"}
        for folder in ("a", "a/c", "b"):
            os.mkdir(os.path.join(mount.top, folder))
        for path in ("a/f0", "a/f1", "a/c/f0", "b/f0"):
            with open(os.path.join(mount.top, path), "w") as file:
                file.write("first\n")
        os.link(os.path.join(mount.top, "a/f0"), os.path.join(mount.top, "b/f2"))

    def words(self):
        self.errors.seek(0)
        return self.errors.read()[-2000:]

    def run(self, arguments):
        asked = granted = changes = told = kills = daemon_kills = number = 0
        while asked < arguments.cases:
            work = Round(self, number)
            try:
                work.work(arguments.seconds, kills_daemon=number % 2 == 0)
                work.finish(dies=number % 3 == 1)
            finally:
                history = work.end()
            history.check()
            if words := self.words():
                raise Failed(f"a program failed: {words}")
            number += 1
            asked += len(history.claims)
            granted += sum(claim["start"] is not None for claim in history.claims.values())
            changes, told = changes + len(history.changes), told + history.told_count
            kills, daemon_kills = kills + len(work.killed), daemon_kills + len(work.daemon_kills)
            print(f"{asked} claims, {granted} granted, {changes} changes, of which presenters had to hear {told}, "
                  f"{kills} programs and {daemon_kills} daemons killed", flush=True)
            shutil.rmtree(work.folder)
        self.mount.settle()
        return f"{asked} claims, {granted} of them granted, beside {changes} changes in {number} rounds: all is as it should be"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--executable", required=True)
    parser.add_argument("--cases", type=int, default=3_000, help="claims")
    parser.add_argument("--seconds", type=float, default=30, help="of a round")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    parser.add_argument("--folder", default=None, help="where the temporary folder is made")
    parser.add_argument("--keep", action="store_true", help="keep the folder when something failed")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    folder = tempfile.mkdtemp(prefix="claims-", dir=arguments.folder)
    mount = Mount(arguments.executable, folder, name=f"claims{os.getpid()}",
                  arguments=["--request-deadline", f"{REQUEST_DEADLINE:g}s", "--name-deadline", f"{NAME_DEADLINE:g}s"])
    os.environ.update(mount.environment)
    failed = False
    try:
        mount.mount()
        print(World(mount, random.Random(arguments.seed)).run(arguments), flush=True)
    except (Failed, subprocess.TimeoutExpired, OSError) as problem:
        failed = True
        print(f"FAILED (seed {arguments.seed}): {problem}", flush=True)
        print("the daemon's last words:\n" + mount.last_words(), flush=True)
    finally:
        mount.clean_up()
        if failed and arguments.keep:
            print(f"kept: {folder}", flush=True)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
