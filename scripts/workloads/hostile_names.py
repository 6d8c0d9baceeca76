#!/usr/bin/env python3
"""Names and pictures that mean ill on the page of a picker, in Chromium. Usage: hostile_names.py ADDRESS NAME…

Each of the names has to be on the page as it is; nothing of them becomes an element, and no picture is larger than one of ours."""
import sys

from browser import Browser

address, names = sys.argv[1], sys.argv[2:]
browser = Browser()
try:
    browser.go(address)
    browser.until("document.querySelector('[aria-selected=true] .name')")
    for look in ("list", "grid"):
        if look == "grid":
            browser.evaluate("document.getElementById('grid').click()")
            browser.until("document.querySelector('.grid .row')")
        browser.until(f"document.querySelectorAll('.row').length >= {len(names)}")
        # Time for pictures to come, and for what is in them to do something.
        browser.evaluate("new Promise(done => setTimeout(done, 1500))")
        shown = browser.evaluate("[...document.querySelectorAll('.row .name')].map(one => one.textContent)")
        assert all(name in shown for name in names), (shown, names)
        others = browser.evaluate(
            "[...document.querySelectorAll('#list *')].map(one => one.tagName).filter(tag => !['DIV', 'SPAN', 'IMG'].includes(tag))")
        assert not others, others
        pictures = browser.evaluate("[...document.querySelectorAll('#list img')].map(one => [one.src.slice(0, 5),"
                                    " Math.max(one.naturalWidth, one.naturalHeight)])")
        assert all(kind == "blob:" and side <= 1024 for kind, side in pictures), pictures
        assert not browser.evaluate("window.touched"), browser.evaluate("window.touched")
        print(look, len(shown), "names,", len(pictures), "pictures")
    assert browser.evaluate("document.title") == "Open a document"
    wrong = [one for one in browser.messages if one["method"] == "Runtime.exceptionThrown"]
    assert not wrong, wrong
    browser.press("Escape")
    browser.until("document.getElementById('over')")
finally:
    browser.close()
