#!/usr/bin/env python3
"""Strangers at the control socket of a real mount: requests made from docs/openapi.yaml, right and wrong ones, and idle connections.

usage: control-api-attacks.py --executable PROMISEFS [--schemathesis PROGRAM] [--examples 50] [--connections 10000] [--seed N]

With --schemathesis, a program of that name, every operation of the control API but `unmount` and `restart` is called with bodies and
parameters that fit and that do not; no answer may be a 5xx. Then so many connections are opened that say nothing, and others that say a
byte a second; meanwhile programs work on the mount, and afterwards the daemon answers as before. Status 1: it was not so.
"""
import os, resource, socket, subprocess, sys, threading, time

import domain

OPENAPI = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "openapi.yaml")
# A stream that says nothing for so long has begun, which is all that is asked of it.
STREAM_PATIENCE = 0.3
SLOW_COUNT = 100
CALL_LIMIT = 5.0


class Relay:
    """TCP for a client that knows no Unix sockets. Ends the streams of events, which go on for ever."""

    def __init__(self, path):
        self.path = path
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(self.path)
            threading.Thread(target=self.pass_on, args=(client, server), daemon=True).start()
            is_stream = False
            while True:
                server.settimeout(STREAM_PATIENCE if is_stream else 60)
                try:
                    data = server.recv(1 << 16)
                except TimeoutError:
                    data = b"0\r\n\r\n" if is_stream else b""
                    client.sendall(data)
                    return
                if not data:
                    return
                client.sendall(data)
                is_stream = is_stream or b"text/event-stream" in data.lower()
        except OSError:
            pass
        finally:
            for each in (client, server):
                try:
                    each.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
                each.close()

    def pass_on(self, client, server):
        try:
            while data := client.recv(1 << 16):
                server.sendall(data)
        except OSError:
            pass


def fuzz(mount, path, arguments):
    relay = Relay(path)
    words = [arguments.schemathesis, "run", OPENAPI, "--url", f"http://127.0.0.1:{relay.port}", "--checks", "not_a_server_error",
             "--max-examples", str(arguments.examples), "--request-timeout", "60", "--mode", "all", "--phases",
             "examples,coverage,fuzzing", "--exclude-path", "/v1/unmount", "--exclude-path", "/v1/restart", "--seed",
             str(arguments.seed), "--continue-on-failure", "--suppress-health-check", "all", "--warnings", "off"]
    done = subprocess.run(words, cwd=mount.folder, env=mount.environment, text=True, capture_output=True, errors="replace")
    relay.listener.close()
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    if done.returncode != 0:
        raise domain.Failed("schemathesis found:\n" + "\n".join(lines[-80:]) + done.stderr[-2000:])
    told = [line.strip() for line in lines if "generated" in line or "Operations" in line or "Tested" in line]
    print("no 5xx: " + "; ".join(told), flush=True)


def timed(what, body):
    began = time.monotonic()
    body()
    if (took := time.monotonic() - began) > CALL_LIMIT:
        raise domain.Failed(f"{what} took {took:.1f} s")
    return took


def crowd(mount, path, count):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < count + 100:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count + 100, count + 100))
    else:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count + 100), hard))
    idle, refused = [], 0
    for _ in range(count):
        one = socket.socket(socket.AF_UNIX)
        one.settimeout(5)
        try:
            one.connect(path)
            idle.append(one)
        except OSError:
            refused += 1
            one.close()
    request = b"GET /v1/status HTTP/1.1\r\nHost: promisefs\r\n"
    worst = 0.0
    for second in range(10):
        for one in idle[-SLOW_COUNT:]:
            try:
                one.send(request[second:second + 1])
            except OSError:
                pass
        name = os.path.join(mount.top, f"beside-{second}")

        def work():
            with open(name, "w") as file:
                file.write("x" * 10_000)
            with open(name) as file:
                file.read()
            os.listdir(mount.top)
            os.remove(name)
        worst = max(worst, timed("work on the mount", work))
        time.sleep(1)
    for one in idle:
        one.close()
    took = timed("status afterwards", mount.status)
    print(f"{len(idle)} connections were open and {refused} refused: work on the mount took {worst:.3f} s at most, "
          f"`status` afterwards {took:.3f} s", flush=True)


def body(mount, arguments, generator):
    arguments.seed = arguments.seed if arguments.seed is not None else generator.randrange(10**9)
    mount.mount()
    for name in ("a.txt", "b.txt"):
        with open(os.path.join(mount.top, name), "w") as file:
            file.write(name)
    mount.settle()
    daemons = mount.processes()
    path = domain_socket(mount)
    if arguments.schemathesis:
        fuzz(mount, path, arguments)
    crowd(mount, path, arguments.connections)
    if mount.processes() != daemons:
        raise domain.Failed("the daemon is another one by now")
    return "all is as it should be"


def domain_socket(mount):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "clients", "python"))
    os.environ.update(mount.environment)
    import promisefs
    return promisefs.locate(mount.top)[0].socket_path


def main():
    def add(parser):
        parser.add_argument("--schemathesis", default=None, help="the program")
        parser.add_argument("--examples", type=int, default=50, help="of each operation")
        parser.add_argument("--connections", type=int, default=10_000)
        parser.set_defaults(kills=0)
    domain.run(__doc__.splitlines()[0], "control-", add, body)


if __name__ == "__main__":
    main()
