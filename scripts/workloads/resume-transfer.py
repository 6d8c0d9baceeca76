#!/usr/bin/env python3
"""Kills the daemon during a large upload and a large download, and measures through a proxy how much is sent again.

examples:
  resume-transfer.py --executable .build/release/promisefs --server s3
  resume-transfer.py --executable .build/release/promisefs --server webdav --size 256 --kills 1

The server is one of scripts/servers. Ends with 1 when a content is wrong, or when more than a part is sent again for each kill:
16 MiB.
"""
import argparse, hashlib, json, os, shutil, subprocess, sys, tempfile, time

from domain import Failed, Mount

SERVERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "servers")
MIB = 1 << 20
PART = 16 * MIB


class Server:
    """Behind a proxy that counts."""

    def __init__(self, kind, folder):
        self.script = os.path.join(SERVERS, {"s3": "ceph-rgw", "webdav": "apache-webdav"}[kind])
        self.folder = os.path.join(folder, "server")
        said = subprocess.run([self.script, "start", self.folder], stdout=subprocess.PIPE, text=True, check=True).stdout
        said = dict(line.split("=", 1) for line in said.splitlines())
        self.rules, port_file, self.counts = (os.path.join(folder, name) for name in ("rules", "port", "counts"))
        open(self.rules, "w").close()
        address = said["S3_ENDPOINT" if kind == "s3" else "WEBDAV_URL"]
        port = address.rstrip("/").rpartition(":")[2]
        self.proxy = subprocess.Popen([sys.executable, os.path.join(SERVERS, "fault-proxy"), port, self.rules, port_file,
                                       "--counts", self.counts])
        while not (os.path.exists(port_file) and os.path.exists(self.counts)):
            time.sleep(0.02)
        with open(port_file) as file:
            front = "http://127.0.0.1:" + file.read()
        if kind == "s3":
            self.provider = f"s3://{said['S3_BUCKET']}?endpoint={front}&region={said['S3_REGION']}"
            self.credentials = {"AWS_ACCESS_KEY_ID": said["S3_ACCESS_KEY"], "AWS_SECRET_ACCESS_KEY": said["S3_SECRET_KEY"]}
        else:
            self.provider = f"webdav+{front}/"
            self.credentials = {"PROMISEFS_USER": said["WEBDAV_USER"], "PROMISEFS_PASSWORD": said["WEBDAV_PASSWORD"]}

    def passed(self, what):
        with open(self.counts) as file:
            return json.load(file).get(what, 0)

    def settled(self, what):
        """When the last bytes have been counted."""
        time.sleep(0.2)
        return self.passed(what)

    def stop(self):
        self.proxy.terminate()
        self.proxy.wait()
        subprocess.run([self.script, "stop", self.folder], check=False)


def wait_for(server, what, count, job):
    """Until so many bytes have passed; fails when the job has ended before."""
    deadline = time.monotonic() + 600
    while server.passed(what) < count:
        if job is not None and job.poll() is not None:
            raise Failed(f"it was over before {count // MIB} MiB had passed: use a larger --size")
        if time.monotonic() > deadline:
            raise Failed(f"only {server.passed(what) // MIB} MiB passed in 600 s")
        time.sleep(0.005)


def make_file(path, size):
    """Random bytes; their hash."""
    digest = hashlib.sha256()
    with open(path, "wb") as file:
        for start in range(0, size, MIB):
            piece = os.urandom(min(MIB, size - start))
            digest.update(piece)
            file.write(piece)
    return digest.hexdigest()


def hash_of(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def kill_during(mount, server, what, size, kills, start):
    """Runs `start` again and again, each time until a kill; returns the bytes that were sent more than once."""
    before = server.settled(what)
    for number in range(kills):
        job = start()
        # Not where a part ends.
        wait_for(server, what, before + size * (number + 1) // (kills + 1) + PART // 3, job)
        mount.kill()
        if job is not None:
            job.kill()
            job.wait()
        print(f"  killed after {(server.settled(what) - before) / MIB:.1f} MiB", flush=True)
        mount.mount()
    job = start()
    if job is not None and job.wait(timeout=1800) != 0:
        raise Failed("the download fails after the kills")
    mount.settle(timeout=1800)
    return server.settled(what) - before - size


def run(arguments, folder, server):
    mount = Mount(arguments.executable, folder, name="resume", environment=server.credentials, provider=server.provider)
    size, path = arguments.size * MIB, os.path.join(folder, "mnt", "large")
    try:
        mount.mount()
        content = make_file(path, size)
        again = kill_during(mount, server, "PUT sent", size, arguments.kills, lambda: None)
        report("upload", arguments, again)
        mount.run("evict", path)
        fetch = [mount.executable, "fetch", path]
        again = kill_during(mount, server, "GET received", size, arguments.kills, lambda: subprocess.Popen(
            fetch, env=mount.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        if hash_of(path) != content:
            raise Failed("what came back is not what was sent")
        report("download", arguments, again)
    finally:
        mount.clean_up()


def report(direction, arguments, again):
    print(f"{arguments.server} {direction} of {arguments.size} MiB, {arguments.kills} kills: {again / MIB:.1f} MiB sent again",
          flush=True)
    if again > PART * arguments.kills:
        raise Failed(f"more than a part of {PART // MIB} MiB is sent again for each kill")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executable", required=True)
    parser.add_argument("--server", choices=["s3", "webdav"], required=True)
    parser.add_argument("--size", type=int, default=1024, metavar="MIB", help="of the file (%(default)s)")
    parser.add_argument("--kills", type=int, default=3, help="during each transfer (%(default)s)")
    parser.add_argument("--folder", help="where the temporary folder is made")
    arguments = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="resume-", dir=arguments.folder)
    os.chmod(folder, 0o755)
    server = None
    try:
        server = Server(arguments.server, folder)
        run(arguments, folder, server)
    except (Failed, subprocess.SubprocessError, OSError) as problem:
        sys.exit(f"FAILED: {problem}")
    finally:
        if server:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
