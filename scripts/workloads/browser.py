"""A headless Chromium that a test drives by its debugging pipe (Chrome DevTools Protocol), without any library."""
import base64
import json
import os
import shutil
import subprocess
import tempfile
import time


class Browser:
    """One page. `evaluate` waits for promises."""

    def __init__(self, width=1000, height=700, program="chromium", arguments=()):
        self.folder = tempfile.mkdtemp(prefix="browser-")
        to_browser, self.send_end = os.pipe()
        self.receive_end, from_browser = os.pipe()

        def connect():
            # Numbers that the pipe has already would be closed by this.
            one, other = os.dup(to_browser), os.dup(from_browser)
            first, second = os.dup(one), os.dup(other)
            os.dup2(first, 3)
            os.dup2(second, 4)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe",
             "--disable-background-networking", "--disable-dev-shm-usage", *arguments,
             f"--user-data-dir={self.folder}", f"--window-size={width},{height}", "about:blank"],
            close_fds=False, preexec_fn=connect, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.buffer, self.number, self.session, self.messages = b"", 0, None, []
        target = next(one for one in self.call("Target.getTargets")["targetInfos"] if one["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.resize(width, height)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.send_end, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                assert "error" not in answer, (method, answer)
                return answer["result"]
            if "method" in answer:
                self.messages.append(answer)

    def receive(self):
        while b"\0" not in self.buffer:
            more = os.read(self.receive_end, 1 << 20)
            assert more, "the browser has ended"
            self.buffer += more
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def dark(self, is_dark=True):
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}])

    def go(self, address):
        self.call("Page.navigate", url=address)

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, expression, seconds=10):
        """Waits until it is true; how long that was."""
        start = time.monotonic()
        while time.monotonic() - start < seconds:
            try:
                if self.evaluate(f"!!({expression})"):
                    return time.monotonic() - start
            except AssertionError:
                # Between two documents.
                pass
            time.sleep(0.02)
        raise AssertionError(f"not true in {seconds} s: {expression}: {self.evaluate('document.body.innerText')}")

    KEYS = {"Enter": 13, "Tab": 9, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38, "End": 35, "Home": 36, " ": 32}

    def focus(self, identifier):
        """Tab until it is there."""
        for _ in range(30):
            if self.evaluate(f"document.activeElement.id === '{identifier}'"):
                return
            self.press("Tab")
        raise AssertionError(f"no Tab leads to {identifier}")

    def press(self, *keys):
        for key in keys:
            text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
            code = self.KEYS.get(key, 0)
            self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=text, windowsVirtualKeyCode=code)
            self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def write(self, text):
        self.call("Input.insertText", text=text)

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def violations(self, script):
        """What axe finds."""
        with open(script, encoding="utf-8") as file:
            self.call("Runtime.evaluate", expression=file.read())
        found = self.evaluate("axe.run(document).then(found => found.violations.map(one => "
                              "one.id + ': ' + one.nodes.map(node => node.html).join(' ')))")
        return found

    def close(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
