#!/usr/bin/env python3
"""A provider's own page in the frame of a picker, in Chromium. Usage: provider_page.py ADDRESS [button]
With `button` its first one is pressed; else the page is one that means ill: what it could do is printed, and it is left."""
import json
import sys
import time

from browser import Browser

browser = Browser()
try:
    browser.go(sys.argv[1])
    browser.until("document.querySelector('button.page')")
    browser.evaluate("window.heard = []; addEventListener('message', event => heard.push([event.origin, event.data]))")
    # Looked at when it comes: a page that answers at once is gone at once.
    browser.evaluate(
        "window.frames_seen = []; new MutationObserver(() => { const frame = document.querySelector('iframe');"
        " if (frame) frames_seen.push(frame.contentDocument === null); })"
        ".observe(document, { childList: true, subtree: true })")
    browser.evaluate("document.querySelector('button.page').click()")
    browser.until("frames_seen.length > 0")
    assert all(browser.evaluate("frames_seen")), "it is of another origin"
    if len(sys.argv) > 2:
        # By the mouse: no script of ours reaches into the frame.
        time.sleep(1)
        x, y = browser.evaluate(
            "(() => { const { x, y } = document.querySelector('iframe').getBoundingClientRect(); return [x, y]; })()")
        for step in range(60, 400, 12):
            if browser.evaluate("!!document.getElementById('over')"):
                break
            for kind in ("mousePressed", "mouseReleased"):
                browser.call("Input.dispatchMouseEvent", type=kind, x=x + 70, y=y + step, button="left", clickCount=1)
            time.sleep(0.1)
        browser.until("document.getElementById('over')", 20)
        heard = browser.evaluate("heard")
        assert heard and all(one[0] == "null" for one in heard), heard
    else:
        browser.until("heard.some(one => one[1] && one[1].done)", 20)
        time.sleep(3)
        heard = browser.evaluate("heard")
        assert all(one[0] == "null" for one in heard), "the frame is of another origin"
        tried = next(one[1]["tried"] for one in heard if one[1] and isinstance(one[1], dict) and one[1].get("done"))
        print(json.dumps({"tried": tried}))
        assert not any(tried.values()), tried
        assert browser.evaluate("location.pathname") == "/" and browser.evaluate("!document.getElementById('over')")
        browser.evaluate("document.getElementById('cancel').click()")
        browser.until("document.getElementById('over')", 20)
finally:
    browser.close()
