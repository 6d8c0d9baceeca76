#!/usr/bin/env python3
"""Other sites in the browser of somebody who has a picker open, in Chromium: none of what they try reaches the picker.
Usage: hostile_site.py ADDRESS NAME      in the end the person picks NAME, by the token that nobody else has used up"""
import http.server
import json
import sys
import threading
import urllib.parse

from browser import Browser

address, wanted = sys.argv[1:]
port = urllib.parse.urlsplit(address).port
HERE = f"http://127.0.0.1:{port}"
PAGE = """<!doctype html><meta charset="utf-8"><iframe id="frame" src="HERE/"></iframe>
<form id="form" method="post" enctype="text/plain" target="sink" action="HERE/event">
<input name='{"kind":"cancel","x":"' value='"}'></form><iframe name="sink" id="sink"></iframe>
<script>
window.attempts = (async () => {
  const tried = {};
  const loaded = (tag, name, address) => new Promise((done, fail) => {
    const one = document.createElement(tag);
    one.onload = done; one.onerror = () => fail(Error('refused')); one[name] = address;
    document.head.append(one); });
  const sent = { method: 'POST', mode: 'no-cors', credentials: 'include', body: '{"kind":"cancel"}' };
  const json = { method: 'POST', body: '{"kind":"cancel"}',
    headers: { 'content-type': 'application/json', 'x-promisefs-key': 'x' } };
  const tries = {
    read: async () => { (await fetch('HERE/')).text(); }, state: async () => { await fetch('HERE/state?after=-1'); },
    json: async () => { await fetch('HERE/event', json); },
    blind: async () => { await fetch('HERE/event', sent); throw Error('says nothing'); },
    guesses: async () => { for (let n = 0; n < 8; n++) await fetch('HERE/session', { ...sent, body: '{"token":"guess"}' });
      throw Error('says nothing'); },
    script: () => loaded('script', 'src', 'HERE/page.js'), style: async () => {
      const link = document.createElement('link'); link.rel = 'stylesheet'; link.href = 'HERE/page.css';
      await new Promise((done, fail) => { link.onload = done; link.onerror = () => fail(Error()); document.head.append(link); }); },
    picture: () => loaded('img', 'src', 'HERE/thumbnail?domain=x&path=y'),
    socket: () => new Promise((done, fail) => { const it = new WebSocket('HERE/state'.replace('http', 'ws'));
      it.onopen = done; it.onerror = () => fail(Error()); }),
    events: () => new Promise((done, fail) => { const it = new EventSource('HERE/state?after=-1');
      it.onopen = done; it.onerror = () => fail(Error()); }),
    form: async () => { document.getElementById('form').submit(); throw Error('says nothing'); },
    window: async () => { const it = open('HERE/'); if (!it) throw Error('blocked');
      await new Promise(done => setTimeout(done, 1500)); it.document.title; },
  };
  for (const [name, attempt] of Object.entries(tries)) {
    try { await attempt(); tried[name] = true; } catch (error) { tried[name] = false; }
  }
  return tried;
})();
</script>""".replace("HERE", HERE)


class Site(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(PAGE.encode())

    def log_message(self, *arguments):
        pass


site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
threading.Thread(target=site.serve_forever, daemon=True).start()


def frames(tree):
    yield tree["frame"]["url"]
    for child in tree.get("childFrames", []):
        yield from frames(child)


# Every name of the other sites leads to this machine: so does a name that was another machine's a moment ago.
browser = Browser(arguments=["--host-resolver-rules=MAP example.com 127.0.0.1"])
try:
    for other in (f"http://127.0.0.1:{site.server_port}/", f"http://example.com:{site.server_port}/"):
        browser.go(other)
        browser.until("window.attempts")
        tried = browser.evaluate("window.attempts")
        print(json.dumps({other: tried}))
        assert not any(tried.values()), tried
        shown = list(frames(browser.call("Page.getFrameTree")["frameTree"]))
        assert HERE + "/" not in shown, ("it can be framed", shown)
    # DNS rebinding: the picker's own port, by the name of the other site.
    browser.go(f"http://example.com:{port}/")
    browser.until("document.body && document.body.innerText.trim() === 'refused'")
    # A look at the page without its token, and then the person.
    browser.go(HERE + "/")
    browser.until("document.getElementById('over')")
    browser.go("about:blank")
    browser.go(address)
    browser.until("document.querySelector('[aria-selected=true] .name')")
    browser.evaluate(
        "(() => { const row = [...document.querySelectorAll('.row')].find(row => row.querySelector('.name').textContent === "
        + json.dumps(wanted) + "); row.dispatchEvent(new MouseEvent('click', { bubbles: true }));"
        " row.dispatchEvent(new MouseEvent('dblclick', { bubbles: true })); })()")
    browser.until("document.getElementById('over')?.textContent.startsWith('Done')", 20)
finally:
    browser.close()
