#!/usr/bin/env python3
"""Asks a domain random predicates over names with every kind of letter, and compares the answers with an evaluator of its own.

usage: predicates.py --executable PROMISEFS [--predicates 20000] [--names 600] [--seed N]

Each predicate is asked twice: as it is, so that the index leaves out what it can, and in a form of which the index can make
nothing, so that each name is looked at. The evaluator here shares no code with the daemon's: case is Python's `casefold`,
accents are what `unicodedata` takes apart. Status 1: an answer differs, with the predicate, the name and the seed.
"""
import argparse, os, random, re, shutil, sys, tempfile, unicodedata

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "clients", "python"))
import promisefs
from domain import Failed, Mount

ALPHABETS = [
    "abcxyzABCXYZ0123456789", "àéîõüçñÀÉÎÕÜÇÑåÅøØłŁđĐ", "ßẞﬁﬂﬀŉǰſıİIiKÅΩ", "αβγσςΣΩωάΐΰᾳᾼ", "бвгёйЁЙжЖ", "աբգևԱԲԳ", "აბგႠႡᲐᲑ", "ꭰꭱᏠᏡᎠᎡ",
    "ǅǆǄǈǉ", "가각한글ᄀ", "漢字神豈更", "אבגשׁ", "ابتىﷺ", "कखड़्ि", "กขำ", "٠١٢３４Ⅷⅷ①Ⓐⓐ", "😀👩‍👧🏳", "̣́̀̈̇", " \u00a0\u2003\t\u200c\u2028",
    "._-+=~#%@!&()[]{}^$|", "*?\\'\"", "\u0001\u001f\u007f\n",
]
FOLDINGS = ["", "c", "d", "cd"]
TEXT_OPERATORS = ["==", "!=", "<", "<=", ">", ">=", "CONTAINS", "BEGINSWITH", "ENDSWITH", "LIKE", "MATCHES", "IN", "BETWEEN"]
RANGES = ["af", "AF", "αω", "АЯ", "09", "აჰ"]


# What a comparison overlooks.

def fold(text, folding):
    if "d" in folding:
        text = "".join(each for each in unicodedata.normalize("NFD", text) if unicodedata.category(each) != "Mn")
        # What is no accent stays whole: syllables of Hangul, vowels of two parts.
        text = unicodedata.normalize("NFC", text)
    return "".join(each.casefold() for each in text) if "c" in folding else text


# Regular expressions: trees, which are written down and matched here. A node is a tuple; `ends` are places in the text.

def is_of_kind(character, kind):
    category = unicodedata.category(character)
    if kind == "d":
        return category == "Nd"
    if kind == "s":
        return category in ("Zs", "Zl", "Zp") or character in "\t\n\v\f\r\x85"
    is_circled = 0x24B6 <= ord(character) <= 0x24E9
    return category[0] in "LM" or category in ("Nl", "Nd", "Pc") or is_circled or character in "\u200c\u200d"


def prepared(node, folding):
    """What an expression means whose characters are folded one by one: as the texts are, runs beyond ASCII are composed."""
    if "d" not in folding:
        return node
    what = node[0]
    if what == "text":
        # From one sign that may belong to the expression to the next.
        runs = re.sub("[^\0-\x7f]+", lambda run: unicodedata.normalize("NFC", run[0]), node[1])
        return ("sequence", [("text", each) for each in runs])
    if what == "class":
        return (what, "".join(each[1] for each in prepared(("text", node[1]), folding)[1]), *node[2:])
    if what == "sequence":
        # What is written without a sign in between is one text.
        parts = []
        for part in flat(node):
            if part[0] == "text" and parts and parts[-1][0] == "text":
                parts[-1] = ("text", parts[-1][1] + part[1])
            else:
                parts.append(part)
        return (what, [prepared(part, folding) for part in parts])
    if what == "choice":
        return (what, [prepared(part, folding) for part in node[1]])
    return (what, prepared(node[1], folding), *node[2:]) if what == "repeat" else node


def flat(node):
    return [each for part in node[1] for each in flat(part)] if node[0] == "sequence" else [node]


def is_member(character, members, kinds, folding):
    return any(character == each or fold(each, folding) == character for each in members) or any(
        is_of_kind(character, kind) for kind in kinds)


def after(node, text, places, folding):
    """Where a match that begins at one of `places` may end."""
    what = node[0]
    if what == "text":
        wanted = fold(node[1], folding)
        return {place + len(wanted) for place in places if text.startswith(wanted, place)}
    if what == "any":
        return {place + 1 for place in places if place < len(text)}
    if what == "class":
        _, characters, ranges, kinds, is_negated = node
        members = characters + "".join(chr(code) for low, high in ranges for code in range(ord(low), ord(high) + 1))
        found = {place + 1 for place in places
                 if place < len(text) and is_member(text[place], members, kinds, folding) != is_negated}
        for each in characters if not is_negated else "":
            if len(fold(each, folding)) > 1:
                found |= after(("text", each), text, places, folding)
        return found
    if what == "sequence":
        for part in node[1]:
            places = after(part, text, places, folding)
        return places
    if what == "choice":
        return set().union(*(after(part, text, places, folding) for part in node[1]))
    _, part, least, most = node
    found, count = set(), 0
    seen = set()
    while places and (most is None or count <= most):
        if count >= least:
            if places <= seen:
                break
            seen |= places
            found |= places
        places, count = after(part, text, places, folding), count + 1
    return found


def written(node, is_in_class=False):
    what = node[0]
    if what == "text":
        return "".join("\\" + each if each in "\\^$.|?*+()[]{}-" else each for each in node[1])
    if what == "any":
        return "."
    if what == "class":
        _, characters, ranges, kinds, is_negated = node
        inside = "".join("\\" + each if each in "\\]^-[" else each for each in characters)
        inside += "".join(f"{low}-{high}" for low, high in ranges) + "".join("\\" + kind for kind in kinds)
        return "[" + ("^" if is_negated else "") + inside + "]"
    if what == "sequence":
        return "".join(written(part) for part in node[1])
    if what == "choice":
        return "(" + "|".join(written(part) for part in node[1]) + ")"
    _, part, least, most = node
    count = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((least, most))
    return "(?:" + written(part) + ")" + (count or "{%d,%s}" % (least, "" if most is None else most))


class Maker:
    """Makes names and predicates from a seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.names = []

    def letters(self, count):
        pick = self.random
        alphabets = pick.sample(ALPHABETS, pick.randint(1, 3))
        return "".join(pick.choice(pick.choice(alphabets)) for _ in range(count))

    def name(self):
        """Bytes of a name, now and then no UTF-8."""
        pick = self.random
        if self.names and pick.random() < 0.4:
            # One that differs from another one in what a comparison may overlook.
            other = pick.choice(self.names).decode(errors="replace")
            change = pick.choice([str.upper, str.lower, str.swapcase, str.casefold, str.title])
            text = unicodedata.normalize(pick.choice(["NFC", "NFD"]), change(other))
        else:
            text = self.letters(pick.randint(1, 12))
        made = text.encode(errors="replace")[:200].decode(errors="ignore").encode()
        if pick.random() < 0.05:
            made += bytes([pick.randint(0x80, 0xFF)])
        return made.replace(b"/", b"_").replace(b"\0", b"_")

    def part(self, shown):
        """A text that is likely to be in a name, in some way of writing it."""
        pick = self.random
        if pick.random() < 0.15:
            return self.letters(pick.randint(0, 3))
        text = pick.choice(shown)
        start = pick.randint(0, len(text))
        text = text[start:start + pick.randint(0, 6)] if pick.random() < 0.7 else text
        for change in (str.upper, str.lower, str.swapcase, str.title, str.casefold):
            if pick.random() < 0.12:
                text = change(text)
        return unicodedata.normalize(pick.choice(["NFC", "NFD"]), text) if pick.random() < 0.2 else text

    def like(self, shown):
        """The pattern as it is written, and what it means: a list of texts, `?` and `*`."""
        pick, meaning, pattern = self.random, [], ""
        for character in self.part(shown) if pick.random() < 0.5 else pick.choice(shown):
            kind = pick.random()
            if kind < 0.2:
                sign = pick.choice(["*", "?"])
                meaning.append(("any",) if sign == "?" else ("repeat", ("any",), 0, None))
                pattern += sign
            else:
                # Up to the next sign it is folded as one text.
                before = meaning.pop()[1] if meaning and meaning[-1][0] == "text" else ""
                meaning.append(("text", before + character))
                pattern += "\\" + character if character in "*?\\" or pick.random() < 0.05 else character
        if pick.random() < 0.5:
            meaning.append(("repeat", ("any",), 0, None))
            pattern += "*"
        return pattern, ("sequence", meaning)

    def expression(self, shown, depth=0):
        pick = self.random
        kind = pick.random()
        if depth > 2 or kind < 0.35:
            return ("text", self.part(shown) or "a")
        if kind < 0.45:
            return ("any",)
        if kind < 0.6:
            ranges = [tuple(pick.choice(RANGES)) for _ in range(pick.randint(0, 1))]
            characters = "".join(each for each in self.letters(pick.randint(1, 3)) if each not in "\n\t")
            return ("class", characters or "a", ranges, pick.choice(["", "w", "d", "s"]), pick.random() < 0.3)
        if kind < 0.8:
            return ("sequence", [self.expression(shown, depth + 1) for _ in range(pick.randint(1, 3))])
        if kind < 0.9:
            return ("choice", [self.expression(shown, depth + 1) for _ in range(2)])
        return ("repeat", self.expression(shown, depth + 1), *pick.choice([(0, None), (1, None), (0, 1), (1, 3), (2, None)]))

    def comparison(self, shown):
        """What is written, its arguments, and a function of a name."""
        pick = self.random
        operator, folding = pick.choice(TEXT_OPERATORS), pick.choice(FOLDINGS)
        key = pick.choice(["kMDItemFSName", "kMDItemFSName", "kMDItemDisplayName"])
        sign = operator + (f"[{folding}]" if folding else "")
        if operator in ("IN", "BETWEEN"):
            values = sorted((self.part(shown) for _ in range(2)), key=lambda each: fold(each, folding))
            folded = [fold(each, folding) for each in values]
            meaning = (lambda name: fold(name, folding) in folded) if operator == "IN" else (
                lambda name: folded[0] <= fold(name, folding) <= folded[1])
            return f"{key} {sign} {{%@, %@}}", values, meaning
        if operator in ("LIKE", "MATCHES"):
            if operator == "LIKE":
                pattern, tree = self.like(shown)
            else:
                tree = ("sequence", [self.expression(shown), ("repeat", ("any",), 0, None)][:pick.randint(1, 2)])
                pattern, tree = written(tree), prepared(tree, folding)
            text, values = self.operand(pattern)
            return f"{key} {sign} {text}", values, lambda name: len(fold(name, folding)) in after(
                tree, fold(name, folding), {0}, folding)
        value = self.part(shown)
        text, values = self.operand(value)
        value = fold(value, folding)
        meaning = {
            "==": lambda name: name == value, "!=": lambda name: name != value, "<": lambda name: name < value,
            "<=": lambda name: name <= value, ">": lambda name: name > value, ">=": lambda name: name >= value,
            "CONTAINS": lambda name: value in name, "BEGINSWITH": lambda name: name.startswith(value),
            "ENDSWITH": lambda name: name.endswith(value),
        }[operator]
        return f"{key} {sign} {text}", values, lambda name: meaning(fold(name, folding))

    def operand(self, text):
        """An argument, or a text between quotes."""
        if self.random.random() < 0.5:
            return "%@", [text]
        quote = self.random.choice("'\"")
        shown = ""
        for each in text:
            if each in ("\\", quote):
                shown += "\\" + each
            elif each == "\n":
                shown += "\\n"
            elif ord(each) > 0x7E and ord(each) < 0x10000 and self.random.random() < 0.2:
                shown += "\\u%04X" % ord(each)
            else:
                shown += each
        return quote + shown + quote, []

    def predicate(self, shown, depth=0):
        kind = self.random.random()
        if depth > 2 or kind < 0.6:
            return self.comparison(shown)
        if kind < 0.7:
            text, values, meaning = self.predicate(shown, depth + 1)
            return f"NOT ({text})", values, lambda name: not meaning(name)
        one, other = self.predicate(shown, depth + 1), self.predicate(shown, depth + 1)
        if kind < 0.85:
            return f"({one[0]}) AND ({other[0]})", one[1] + other[1], lambda name: one[2](name) and other[2](name)
        return f"({one[0]}) OR ({other[0]})", one[1] + other[1], lambda name: one[2](name) or other[2](name)


def ask(domain, text, values):
    return {item["id"] for item in domain.query(text, values)}


def check(mount, arguments, maker):
    for number in range(arguments.names):
        maker.names.append(maker.name())
    for folder, names in (("there", maker.names[::2]), ("here", maker.names[1::2])):
        top = mount.cloud if folder == "there" else mount.top
        os.makedirs(os.path.join(top, folder))
        for name in names:
            if name not in (b".", b"..", b""):
                open(os.path.join(os.fsencode(top), folder.encode(), name), "w").close()
        if folder == "there":
            mount.mount()
            os.listdir(os.path.join(mount.top, "there"))
    mount.settle()
    domain, _ = promisefs.locate(mount.top)
    # Renamed, so that the index has names to forget.
    for name in os.listdir(os.fsencode(mount.top) + b"/here")[:arguments.names // 20]:
        path = os.fsencode(mount.top) + b"/here/"
        os.rename(path + name, path + b"renamed " + name[:200])
    shown = {item["id"]: item["attributes"]["kMDItemFSName"]
             for item in domain.query("TRUEPREDICATE", attributes=["kMDItemFSName"])}
    texts = sorted(set(shown.values()))
    found = 0
    for number in range(arguments.predicates):
        text, values, meaning = maker.predicate(texts)
        expected = {identifier for identifier, name in shown.items() if meaning(name)}
        found += len(expected)
        by_index = ask(domain, text, values)
        one_by_one = ask(domain, f"promisefs.links < 0 OR ({text})", values)
        for how, answer in (("by the index", by_index), ("one by one", one_by_one)):
            for identifier in sorted(answer ^ expected):
                raise Failed(f"predicate {number}, {how}: {text!r} with {values!r} "
                             f"{'finds' if identifier in answer else 'misses'} {shown.get(identifier)!r}")
    return f"{arguments.predicates} predicates over {len(shown)} names agree; {found} names found"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--executable", required=True)
    parser.add_argument("--predicates", type=int, default=20_000)
    parser.add_argument("--names", type=int, default=600)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    parser.add_argument("--folder", default=None, help="where the temporary folder is made")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    folder = tempfile.mkdtemp(prefix="predicates-", dir=arguments.folder)
    mount = Mount(arguments.executable, folder, name=f"predicates{os.getpid()}")
    os.environ.update(mount.environment)
    try:
        print(check(mount, arguments, Maker(arguments.seed)))
    except Failed as problem:
        sys.exit(f"FAILED (seed {arguments.seed}): {problem}")
    finally:
        mount.clean_up()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
