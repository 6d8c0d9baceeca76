"""Types what README shows after `### KIND`, on a terminal, as the user ann whose `sudo` needs no password.

usage: newcomer.py KIND README

A line that begins with `$ ` is a command; one below it that has `: ` is a question, and what is typed after it. Examples of addresses
and secrets become those of the environment. Every command must succeed, and the last one show `letter.txt`.
"""
import os
import pty
import re
import select
import signal
import sys
import time

kind, readme = sys.argv[1:]
E = os.environ
EXAMPLES = [
    ("webdav+https://ann@example.com/files", "webdav+" + E["WEBDAV"].replace("://", f"://{E['WEBDAV_USER']}@")),
    ("s3://photos?endpoint=https://example.com", f"s3://{E['BUCKET']}?endpoint={E['ENDPOINT']}"),
    ("AKEXAMPLE", E["S3_ACCESS_KEY"]),
]


def steps():
    """Commands with their questions: [(command, [(question, answer)])]."""
    text = open(readme).read()
    block = re.search(rf"^#+ {kind}\b[^\n]*\n(?:(?! {{4}}|#).*\n)*((?: {{4}}.*\n)+)", text, re.M)
    found = []
    for line in block[1].splitlines():
        line = line[4:]
        for example, real in EXAMPLES:
            line = line.replace(example, real)
        if line.startswith("$ "):
            found.append((re.sub(r"\s+#.*", "", line[2:]), []))
        elif ": " in line or line.endswith(":"):
            question, _, answer = line.partition(": ") if ": " in line else (line[:-1], "", "")
            secret = E["S3_SECRET_KEY"] if kind == "S3" else E["WEBDAV_PASSWORD"]
            found[-1][1].append((question.split(" (")[0].split(" [")[0], secret if answer.startswith("***") else answer))
    return found


class Terminal:
    def __init__(self):
        self.process, self.file = pty.fork()
        if self.process == 0:
            os.environ.update(HOME="/home/ann", PS1="READY:$?> ", TERM="dumb", NO_COLOR="1")
            os.chdir("/home/ann")
            os.execvp("setpriv", ["setpriv", "--reuid", "ann", "--regid", "ann", "--init-groups", "bash", "--norc", "-i"])
        self.seen = ""

    def wait(self, pattern, seconds=120):
        end = time.monotonic() + seconds
        while not (found := re.search(pattern, self.seen)):
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.file], [], [], left)[0]:
                sys.exit(f"nothing like {pattern!r} came; the terminal shows:\n{self.seen}")
            try:
                self.seen += os.read(self.file, 4096).decode(errors="replace")
            except OSError:
                sys.exit(f"the shell has ended:\n{self.seen}")
        shown, self.seen = self.seen[:found.end()], self.seen[found.end():]
        return shown, found

    def type(self, text):
        os.write(self.file, text.encode() + b"\n")


def main():
    terminal, typed, begun, shown = Terminal(), 0, time.monotonic(), ""
    terminal.wait("READY:0> ")
    for command, questions in steps():
        typed += 1
        if command.startswith("sudo "):
            # Nobody is asked for a password here.
            if os.system(f"cd /home/ann; {command[5:]} -y -qq >/tmp/apt 2>&1 </dev/null"):
                sys.exit(open("/tmp/apt").read())
            continue
        terminal.type(command)
        for question, answer in questions:
            terminal.wait(re.escape(question) + r"[^\n]*: $")
            terminal.type(answer)
            typed += 1
        shown, found = terminal.wait(r"READY:(\d+)> ")
        if found[1] != "0":
            sys.exit(f"'{command}' ended with {found[1]}:\n{shown}")
    if "letter.txt" not in shown:
        sys.exit(f"the last line shows no letter.txt:\n{shown}")
    seconds = time.monotonic() - begun
    for command in ("cat work/letter.txt", "promisefs unmount --all"):
        terminal.type(command)
        shown, found = terminal.wait(r"READY:(\d+)> ")
        if found[1] != "0" or command.startswith("cat") and "from the server" not in shown:
            sys.exit(f"'{command}' ended with {found[1]}:\n{shown}")
    os.kill(terminal.process, signal.SIGHUP)
    print(f"{typed} lines, {seconds:.0f} s, ok")
    if typed > 8 or seconds > 300:
        sys.exit("that is too much")


main()
