#!/usr/bin/env python3
"""Picks on the page of a picker in Chromium by keyboard alone. Usage: page_person.py ADDRESS NAME|--here [FOLDER]

Goes into FOLDER, and then picks NAME there, or with --here the folder itself."""
import sys

from browser import Browser

address, wanted, folder = sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None
SELECTED = "document.querySelector('[aria-selected=true] .name')?.textContent"


def select(shown, text):
    browser.focus("filter")
    browser.write(text)
    # What is not shown yet is picked by no key.
    browser.until(f"state.filter === '{text}' && !list.element.hasAttribute('aria-busy') && {SELECTED} === '{shown}'", 30)
    browser.focus("list")


browser = Browser()
try:
    browser.go(address)
    browser.until(f"{SELECTED} && document.activeElement.id === 'list'", 60)
    if folder:
        select(folder + "/", folder)
        browser.press("Enter")
        browser.until(f"document.getElementById('where').textContent.endsWith('/{folder}')", 30)
    if wanted == "--here":
        browser.focus("pick")
    else:
        select(wanted, wanted)
    browser.press("Enter")
    browser.until("document.getElementById('over') || document.querySelector('#message.bad')", 60)
    assert browser.evaluate("document.getElementById('over')?.textContent || ''").startswith("Done"), \
        browser.evaluate("document.body.innerText")
finally:
    browser.close()
