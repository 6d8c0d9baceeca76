#!/usr/bin/env python3
"""Runs pjdfstest as an application in its sandbox, in its container and on the disk beside, and compares what each assertion says.

usage: pjdfstest-in-a-view.py --executable PROMISEFS --pjdfstest FOLDER [TEST…]
FOLDER: pjdfstest's sources, built (autoreconf -ifs && ./configure && make). TEST: such as `rename` or `open/06`; all without.

Programs in a view are no root, so many assertions fail on both sides: what differs is what counts. Differences that are known and
have their reason in docs/DOCUMENTS.md are in KNOWN; others end it with 1.
"""
import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from domain import Mount

APPLICATION = "com.example.posix"
# A view keeps no set-user-ID bit, so that a write finds none to take away.
KNOWN = {("chmod/12", number) for number in (4, 8, 12)}
# Each test in a folder of its own, which is left whatever happens.
INSIDE = """
export TMPDIR=/tmp
for test in TESTS; do
    for place in "$PWD/container/Documents" /beside; do
        mkdir -p "$place/work"; cd "$place/work" || exit 9
        echo "== $test $place"
        timeout 300 bash /pjd/tests/$test.t 2> /dev/null
        cd /; chmod -R u+rwx "$place/work" 2> /dev/null; rm -rf "$place/work"
    done
    cd /documents
done
"""


def words_of(options, folder):
    tests = []
    for word in options.tests or ["*"]:
        pattern = word if "/" in word else word + "/*"
        tests += sorted(glob.glob(f"{options.pjdfstest}/tests/{pattern}.t"))
    return [os.path.relpath(path, options.pjdfstest + "/tests").removesuffix(".t") for path in tests]


def results(text):
    """Test → place → what each assertion said: the number, whether it passed, and what was tried."""
    found, lines = {}, None
    for line in text.splitlines():
        if line.startswith("== "):
            _, test, place = line.split()
            lines = found.setdefault(test, {}).setdefault("disk" if place == "/beside" else "view", {})
        elif lines is not None and (match := re.match(r"(not ok|ok) (\d+)(.*)", line)):
            # Names are random.
            said = re.sub(r"pjdfstest_[0-9a-f_]+", "NAME", match[3]).strip(" -")
            lines[int(match[2])] = (match[1] == "ok", said)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executable", required=True)
    parser.add_argument("--pjdfstest", required=True, type=os.path.abspath)
    parser.add_argument("--folder", default="/var/tmp")
    parser.add_argument("tests", nargs="*")
    options = parser.parse_args()
    top = tempfile.mkdtemp(prefix="pfs-pjd-", dir=options.folder)
    os.chmod(top, 0o755)
    domain = Mount(options.executable, top, name="pjd" + os.path.basename(top)[-6:], upload_delay="10m")
    beside, profile = top + "/beside", top + "/profile"
    os.mkdir(beside)
    if os.geteuid() == 0:
        os.chown(beside, 65534, 65534)
    conf = top + "/conf"
    with open(options.pjdfstest + "/tests/conf") as file:
        text = file.read()
    with open(conf, "w") as file:
        file.write(text.replace('#fs="UFS"', "fs=EXT4"))
    with open(profile, "w") as file:
        file.write(f"--ro-bind {options.pjdfstest} /pjd\n--ro-bind {conf} /pjd/tests/conf\n--bind {beside} /beside\n".replace(" ", "\n"))
    try:
        domain.mount()
        domain.run("container", "add", "--app", APPLICATION, "--name", "Posix", domain.name)
        script = INSIDE.replace("TESTS", " ".join(words_of(options, top)))
        text = domain.run("run", "--app", APPLICATION, "--domain", domain.name, "--profile", profile, "--", "bash", "-c", script,
                          timeout=7200)
        domain.run("unmount", domain.top, statuses=(0, 1, 7))
    finally:
        domain.clean_up()
        shutil.rmtree(top, ignore_errors=True)
    found = results(text)
    count = passed = 0
    differences = []
    for test, places in found.items():
        view, disk = places.get("view", {}), places.get("disk", {})
        for number in sorted(view.keys() | disk.keys()):
            count += 1
            ours, theirs = view.get(number, (None, "nothing")), disk.get(number, (None, "nothing"))
            passed += bool(ours[0])
            if ours[0] != theirs[0] and (test, number) not in KNOWN:
                differences.append(f"{test} {number}: in the view {ours}, on the disk {theirs}")
    print(f"{len(found)} tests, {count} assertions, {passed} pass in the view, {len(differences)} differ from the disk beside")
    print("\n".join(differences))
    sys.exit(bool(differences) or not count)


main()
