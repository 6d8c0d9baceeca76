#!/usr/bin/env python3
"""Walks the pages of the picker in Chromium by keyboard alone, as a person without a mouse. Usage:
page_walk.py PROMISEFS MOUNT SCRATCH [AXE.JS [FOLDER-FOR-PICTURES]]   With axe every screen is audited."""
import os
import subprocess
import sys

from browser import Browser

program, mount, scratch = sys.argv[1:4]
axe = sys.argv[4] if len(sys.argv) > 4 else None
pictures = sys.argv[5] if len(sys.argv) > 5 else None


def start(*words):
    picker = subprocess.Popen([program, *words, "--no-browser"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = picker.stderr.readline()
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


def focus(identifier):
    """Tab until it is there."""
    for _ in range(30):
        if browser.evaluate(f"document.activeElement.id === '{identifier}'"):
            return
        browser.press("Tab")
    raise AssertionError(f"no Tab leads to {identifier}")


SELECTED = "document.querySelector('[aria-selected=true] .name')?.textContent"
browser = Browser()
try:
    # Open: into a folder and out of it, then a document.
    picker, address = pick("open")
    browser.go(address)
    browser.until(f"{SELECTED} === 'docs/' && document.activeElement.id === 'list'")
    look("list")
    assert "#" not in browser.evaluate("location.href"), "the token stays in no history"
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
    focus("filter")
    browser.write("no such name")
    browser.until("document.getElementById('count').textContent.startsWith('0 items')")
    look("empty")
    browser.call("Input.dispatchKeyEvent", type="keyDown", key="a", modifiers=2, windowsVirtualKeyCode=65, commands=["selectAll"])
    browser.write("a.t")
    browser.until(f"{SELECTED} === 'a.txt'")
    focus("list")
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
    focus("name")
    browser.call("Input.dispatchKeyEvent", type="keyDown", key="a", modifiers=2, windowsVirtualKeyCode=65, commands=["selectAll"])
    browser.write("a.txt")
    focus("pick")
    browser.press("Enter")
    browser.until("document.getElementById('message').textContent.includes('already')")
    look("error")
    focus("newfolder")
    browser.press("Enter")
    browser.write("new")
    browser.press("Tab", "Enter")
    browser.until("document.getElementById('where').textContent.includes('new')")
    focus("pick")
    browser.press("Enter")
    assert ended(picker) == f"{mount}/new/a.txt"
    picker, address = pick("create", "--suggest", "fresh.md")
    browser.dark()
    browser.go(address)
    browser.until(f"{SELECTED} === 'docs/'")
    look("dark")
    focus("pick")
    browser.press("Enter")
    assert ended(picker) == f"{mount}/fresh.md"

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
    focus("pick")
    browser.press("Enter")
    assert ended(picker) == f"{mount}/report" and os.path.islink(source)

    # Save: a name that is taken counts when it is said twice.
    picker, address = pick("save", "--suggest", "a.txt")
    browser.go(address)
    browser.until(f"{SELECTED} === 'docs/'")
    browser.evaluate("[...document.querySelectorAll('button')].find(one => one.textContent === 'Pictures').click()")
    browser.until("document.querySelector('.grid .row')")
    look("grid")
    focus("pick")
    browser.press("Enter")
    browser.until("document.getElementById('message').textContent.includes('once more')")
    focus("pick")
    browser.press("Enter")
    assert ended(picker) == f"{mount}/a.txt"

    # The page to look after it all: a grant is revoked.
    given = subprocess.run([program, "grants", "add", f"{mount}/a.txt", "--app", "com.example.editor"], check=True)
    web, address = start("web")
    browser.go(address)
    browser.until("document.querySelector('#grants button')")
    look("overview")
    browser.evaluate("document.querySelector('#grants button').focus()")
    browser.press("Enter")
    browser.until("document.querySelector('#grants').textContent.includes('No application was given anything')")
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
