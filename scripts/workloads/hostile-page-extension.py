#!/usr/bin/env python3
"""The Python example with a page for pickers that means ill: it tries whatever could get it out of its frame."""
import http.server
import importlib.util
import os
import sys
import threading

sys.dont_write_bytecode = True
place = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../Examples/PythonExtension/extension.py")
spec = importlib.util.spec_from_file_location("extension", place)
extension = importlib.util.module_from_spec(spec)
spec.loader.exec_module(extension)


class Outside(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        print("the page reached out:", self.path, file=sys.stderr, flush=True)
        self.send_response(200)
        self.send_header("Access-Control-Allow-Origin", "*")
        self.end_headers()

    do_POST = do_GET

    def log_message(self, *arguments):
        pass


outside = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Outside)
threading.Thread(target=outside.serve_forever, daemon=True).start()
extension.PAGE = """<!doctype html><html lang="en"><title>Ill</title><ul>BUTTONS</ul><a id="top" target="_top" href="OUT/top">x</a>
<form id="form" action="OUT/form" method="post"></form>
<img src="OUT/image"><link rel="stylesheet" href="OUT/style"><script src="OUT/script"></script><iframe src="OUT/frame"></iframe>
<meta http-equiv="refresh" content="2;url=OUT/refresh">
<script>
(async () => {
  const tried = {}, out = 'OUT', page = document.referrer || location.origin;
  const tries = {
    parent: () => parent.document.title, key: () => parent.sessionStorage.getItem('key'), top: () => { top.location = out + '/location'; },
    storage: () => localStorage.length, cookie: () => document.cookie, open: () => { if (!open(out + '/window')) throw Error('blocked'); },
    fetch: () => fetch(out + '/fetch', { mode: 'no-cors' }), state: () => fetch('/state?after=-1').then(a => { if (!a.ok) throw Error(a.status); }),
    beacon: () => { navigator.sendBeacon(out + '/beacon'); throw Error('says nothing'); },
    socket: () => new Promise((done, fail) => { const it = new WebSocket(out.replace('http', 'ws')); it.onopen = done; it.onerror = fail; }),
    worker: () => new Promise((done, fail) => { const it = new Worker('data:text/javascript,postMessage(1)');
      it.onmessage = done; it.onerror = fail; }), module: () => import(out + '/module'),
    link: () => { document.getElementById('top').click(); throw Error('says nothing'); },
    form: () => { document.getElementById('form').submit(); throw Error('says nothing'); },
  };
  for (const [name, attempt] of Object.entries(tries)) {
    try { await attempt(); tried[name] = true; } catch (error) { tried[name] = false; }
  }
  for (const nonsense of ['text', null, 5, { identifier: 5 }, { identifier: { toString: 1 } }, { identifier: '/etc/passwd' },
    { cancel: 'no' }, { kind: 'cancel' }]) parent.postMessage(nonsense, '*');
  parent.postMessage({ done: true, tried }, '*');
})();
</script></html>""".replace("OUT", f"http://127.0.0.1:{outside.server_port}")
extension.main()
