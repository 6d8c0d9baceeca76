#!/usr/bin/env python3
"""Walks the pages of the picker in Chromium by keyboard alone, as a person without a mouse. Usage:
page_walk.py PROMISEFS MOUNT CLOUD FAULTS SCRATCH [AXE.JS [FOLDER-FOR-PICTURES]]   With axe every screen is audited.

CLOUD is the folder that is the storage, FAULTS the file of PROMISEFS_PROVIDER_FAULTS, PICTURES what is kept of each screen."""
import atexit, json
import os
import subprocess
import sys

from browser import Browser

program, mount, cloud, faults, scratch = sys.argv[1:6]
axe = sys.argv[6] if len(sys.argv) > 6 else None
pictures = sys.argv[7] if len(sys.argv) > 7 else None


def start(*words):
    picker = subprocess.Popen([program, *words, "--no-browser"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    # Also when what is looked at is not as it must be.
    atexit.register(picker.kill)
    line = (picker.stdout if words[0] == "web" else picker.stderr).readline()
    assert "http" in line, line
    return picker, line[line.index("http"):].strip()


def pick(mode, *words):
    return start("pick", "--web", "--mode", mode, "--at", mount, *words)


def ended(picker, status=0):
    text = picker.communicate(timeout=20)[0].rstrip("\n")
    assert picker.returncode == status, (picker.returncode, text)
    return text


def look(name):
    """A screen: audited, and kept."""
    if axe:
        found = browser.violations(axe)
        assert not found, (name, found)
    if pictures:
        browser.picture(os.path.join(pictures, f"{name}.png"))


def trouble(line):
    with open(faults + ".new", "w", encoding="utf-8") as file:
        file.write(line + "\n")
    os.rename(faults + ".new", faults)


def conflict():
    """On the page to look after it all, while the provider is away and after: by keyboard."""
    with open(f"{mount}/report.txt", "w", encoding="utf-8") as file:
        file.write("A plan\nfor today\n")
    subprocess.run([program, "sync", "--wait", mount], check=True, capture_output=True)
    trouble("offline=true")
    with open(f"{mount}/report.txt", "w", encoding="utf-8") as file:
        file.write("A plan\nfor tomorrow\n")
    browser.until("document.querySelector('#problems').textContent.includes('until the provider answers')", 30)
    browser.evaluate("scrollTo(0, 0)")
    look("web-offline")
    with open(f"{cloud}/report.txt", "w", encoding="utf-8") as file:
        file.write("A plan\nfor next week\n")
    trouble("")
    subprocess.run([program, "sync", "--wait", mount], check=True, capture_output=True)
    browser.until("document.querySelector('#conflicts button')", 60)
    for word in ("Compare", "Keep this"):
        # A person's Tab: to the first button of that word.
        browser.evaluate(
            f"[...document.querySelectorAll('#conflicts button')].find(one => one.textContent === '{word}').focus()")
        browser.press("Enter")
        if word == "Compare":
            browser.until("document.querySelector('#conflicts .beside .cut + .add')")
            look("web-conflict")
    browser.until("document.querySelector('#conflicts').textContent.includes('No conflicts')", 30)
    assert len([name for name in os.listdir(mount) if name.startswith("report")]) == 2, os.listdir(mount)


SELECTED = "document.querySelector('[aria-selected=true] .name')?.textContent"
os.makedirs(f"{cloud}/later/unknown")
browser = Browser()
try:
    # Open: into a folder and out of it, then a document.
    picker, address = pick("open")
    browser.go(address)
    browser.until(f"{SELECTED} === 'docs/' && document.activeElement.id === 'list'")
    look("list")
    assert "#" not in browser.evaluate("location.href"), "the token stays in no history"
    # While another list is on its way no line is said to be the chosen one that is not there.
    assert browser.evaluate("list.reset(), !list.element.hasAttribute('aria-activedescendant')")
    browser.until(f"{SELECTED} === 'docs/'")
    browser.press("Enter")
    browser.until(f"{SELECTED} === 'plan.md'")
    browser.press("Enter")
    assert ended(picker) == f"{mount}/docs/plan.md"
    browser.until("document.getElementById('over')")
    look("over")

    # Import, with a filter that leaves one, and with one that leaves none.
    picker, address = pick("import")
    browser.go(address)
    browser.until(f"{SELECTED} === 'docs/'")
    browser.focus("filter")
    browser.write("no such name")
    browser.until("document.getElementById('count').textContent.startsWith('0 items')")
    look("empty")
    browser.call("Input.dispatchKeyEvent", type="keyDown", key="a", modifiers=2, windowsVirtualKeyCode=65, commands=["selectAll"])
    browser.write("a.t")
    browser.until(f"{SELECTED} === 'a.txt'")
    browser.focus("list")
    browser.press("Enter")
    copy = ended(picker)
    assert not copy.startswith(mount) and open(copy, encoding="utf-8").read() == "one\n", copy

    # Export and create: a name, a new folder, a name that is taken.
    source = os.path.join(scratch, "report")
    with open(source, "w", encoding="utf-8") as file:
        file.write("mine")
    picker, address = pick("export", source)
    browser.go(address)
    browser.until(f"{SELECTED} === 'docs/'")
    browser.focus("name")
    browser.call("Input.dispatchKeyEvent", type="keyDown", key="a", modifiers=2, windowsVirtualKeyCode=65, commands=["selectAll"])
    browser.write("a.txt")
    browser.focus("pick")
    browser.press("Enter")
    browser.until("document.getElementById('message').textContent.includes('already')")
    look("error")
    browser.focus("newfolder")
    browser.press("Enter")
    browser.write("new")
    browser.press("Tab", "Enter")
    browser.until("document.getElementById('where').textContent.includes('new')")
    browser.focus("pick")
    browser.press("Enter")
    assert ended(picker) == f"{mount}/new/a.txt"
    picker, address = pick("create", "--suggest", "fresh.md")
    browser.dark()
    browser.go(address)
    browser.until(f"{SELECTED} === 'docs/'")
    look("dark")
    browser.focus("pick")
    browser.press("Enter")
    assert ended(picker) == f"{mount}/fresh.md"

    # A new name for something that is there, and a field that is left again.
    picker, address = pick("create", "--suggest", "other.md")
    browser.dark(False)
    browser.go(address)
    browser.until(f"{SELECTED} === 'docs/'")
    for key in ("End", "ArrowUp"):
        browser.press(key)
    browser.until(f"{SELECTED} === 'b.png'")
    browser.focus("rename")
    browser.press("Enter")
    browser.until("document.activeElement.id === 'renamename'")
    look("rename")
    browser.press("Escape")
    browser.until("document.activeElement.id === 'rename'")
    browser.press("Enter")
    browser.write("c.png")
    browser.press("Enter")
    browser.until("[...document.querySelectorAll('.name')].some(one => one.textContent === 'c.png')")
    assert not os.path.exists(f"{mount}/b.png") and os.path.exists(f"{mount}/c.png")
    browser.focus("name")
    browser.press("Enter")
    assert ended(picker) == f"{mount}/other.md"

    # Move; and who presses Escape has moved nothing.
    picker, address = pick("move", source)
    browser.dark(False)
    browser.resize(360, 640)
    browser.go(address)
    browser.until(f"{SELECTED} === 'docs/'")
    look("narrow")
    browser.press("Escape")
    ended(picker, 1)
    assert os.path.isfile(source) and not os.path.islink(source)
    picker, address = pick("move", source)
    browser.resize(1000, 700)
    browser.go(address)
    browser.until(f"{SELECTED} === 'docs/'")
    browser.focus("pick")
    browser.press("Enter")
    assert ended(picker) == f"{mount}/report" and os.path.islink(source)

    # Save: a name that is taken counts when it is said twice.
    picker, address = pick("save", "--suggest", "a.txt")
    browser.go(address)
    browser.until(f"{SELECTED} === 'docs/'")
    browser.focus("grid")
    browser.press("Enter")
    browser.until("document.querySelector('.grid .row')")
    look("grid")
    browser.focus("pick")
    browser.press("Enter")
    browser.until("document.getElementById('message').textContent.includes('once more')")
    browser.focus("pick")
    browser.press("Enter")
    assert ended(picker) == f"{mount}/a.txt"

    # What whoever asks wants to know besides; several documents, marked.
    picker, address = pick("open", "--multiple", "--json", "--choice", "Encoding\t*UTF-8\t Latin", "--choice", "Read only")
    browser.go(address)
    browser.until(f"{SELECTED} === 'docs/'")
    browser.focus("filter")
    browser.write("a.t")
    browser.until("state.filter === 'a.t' && !list.element.hasAttribute('aria-busy')")
    browser.focus("list")
    browser.press(" ")
    browser.until("document.getElementById('count').textContent.includes('1 marked')")
    browser.focus("choice0")
    browser.press("ArrowDown")
    browser.focus("choice1")
    browser.press(" ")
    browser.until("state.choices[0].chosen === 1 && state.choices[1].chosen === 1")
    look("choices")
    browser.focus("pick")
    browser.press("Enter")
    told = json.loads(ended(picker))
    assert told["choices"] == [1, 1] and told["picked"][0]["path"] == f"{mount}/a.txt", told

    # An address that was used already.
    picker, address = pick("open")
    browser.go(address)
    browser.until(f"{SELECTED} === 'docs/'")
    browser.go("about:blank")
    browser.go(address)
    browser.until("document.getElementById('over')?.textContent.includes('has been used')")
    look("used")
    picker.kill()
    picker.wait()

    # A provider that is not there: what is known is shown, and what is not is said.
    trouble("offline=true")
    picker, address = pick("open")
    browser.go(address)
    browser.until(f"{SELECTED} === 'docs/'")
    browser.press("ArrowDown")
    browser.until(f"{SELECTED} === 'later/'")
    browser.press("Enter")
    browser.until("state.where.endsWith('/later') && document.getElementById('count').textContent.includes('·')", 30)
    look("offline")
    browser.press("Escape")
    ended(picker, 1)
    trouble("")

    # The page to look after it all: a grant is revoked.
    given = subprocess.run([program, "grants", "add", f"{mount}/a.txt", "--app", "com.example.editor"], check=True)
    web, address = start("web")
    browser.go(address)
    browser.until("document.querySelector('#grants button')")
    look("overview")
    browser.evaluate("document.querySelector('#grants button').focus()")
    browser.press("Enter")
    browser.until("document.querySelector('#grants').textContent.includes('No application was given anything')")
    browser.dark()
    look("overview-dark")
    browser.dark(False)
    browser.resize(360, 640)
    look("overview-narrow")
    browser.resize(1000, 1100)
    conflict()
    # What is given now is seen without anybody's asking, and so is a new document.
    subprocess.run([program, "grants", "add", f"{mount}/docs", "--app", "com.example.mail"], check=True)
    with open(f"{mount}/seen", "w", encoding="utf-8") as file:
        file.write("x" * 1000)
    browser.evaluate("document.activeElement.blur()")
    browser.until("document.querySelector('#grants').textContent.includes('com.example.mail')", 15)
    browser.until("document.querySelector('#storage').textContent.includes('seen')", 15)
    web.kill()
    browser.until("document.getElementById('over')", 25)
    wrong = [one for one in browser.messages if one["method"] == "Runtime.exceptionThrown"]
    assert not wrong, wrong
finally:
    browser.close()
