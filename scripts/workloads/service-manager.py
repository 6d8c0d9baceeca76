"""Plays systemd for one service of Type=notify.

usage: service-manager.py SCRIPT WORD…

Runs the words with NOTIFY_SOCKET and a watchdog of 0.9 s. When the service says that it is ready, runs SCRIPT in bash with
$SERVICE, the process of the service; meanwhile the watchdog must be heard in time. Then the service is ended by SIGTERM,
says that it stops, and must end with 0.
"""
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

WATCHDOG = 0.9


def main():
    script, words = sys.argv[1], sys.argv[2:]
    with tempfile.TemporaryDirectory() as folder:
        place = os.path.join(folder, "notify")
        line = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        line.bind(place)
        line.settimeout(30)
        variables = dict(os.environ, NOTIFY_SOCKET=place, WATCHDOG_USEC=str(int(WATCHDOG * 1e6)), WATCHDOG_PID="1")
        service = subprocess.Popen(words, env=variables, stdin=subprocess.DEVNULL)
        message = line.recv(4096).decode()
        assert message.startswith("READY=1\nSTATUS="), message
        work = subprocess.Popen(["bash", "-euc", script], env=dict(os.environ, SERVICE=str(service.pid)))
        heard = time.monotonic()
        longest = 0.0
        beats = 0
        while work.poll() is None or beats < 4:
            line.settimeout(5)
            message = line.recv(4096).decode()
            if message == "WATCHDOG=1":
                beats += 1
                longest, heard = max(longest, time.monotonic() - heard), time.monotonic()
        assert work.returncode == 0, f"the script ends with {work.returncode}"
        print(f"{beats} beats, {longest:.2f} s between two at most")
        service.send_signal(signal.SIGTERM)
        line.settimeout(10)
        while (message := line.recv(4096).decode()) != "STOPPING=1":
            assert message == "WATCHDOG=1", message
        assert service.wait(20) == 0, service.returncode


main()
