#!/usr/bin/env python3
"""Moves a domain of many files from a folder to a bucket, to a WebDAV server and back, killed on each way, and compares.

examples:
  migrate-around.py --executable .build/release/promisefs --files 10000
  migrate-around.py --executable .build/release/promisefs --files 2000 --s3 ceph-rgw --kills 5 --seed 7

On each way `promisefs migrate` is killed --kills times, each after another part of the files, and goes on. Then the domain is
mounted there: every name, content, link, mode and time, of folders and links as well, must be what they were; a reference in the
domain, one in another domain, and a bookmark must lead to their document, which is renamed before the next way. At the end the folder
must be what the first one was. Needs moto or Ceph, and apache2. Prints what each way took. Ends with 1 when something is wrong.
"""
import argparse, json, os, random, shutil, stat, subprocess, sys, tempfile, time

from domain import Failed, Mount

SERVERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "servers")
APPLICATION = "com.example.editor"


class Server:
    def __init__(self, script, folder):
        self.script, self.folder = os.path.join(SERVERS, script), folder
        said = subprocess.run([self.script, "start", folder], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.said = dict(line.split("=", 1) for line in said.splitlines())

    def stop(self):
        subprocess.run([self.script, "stop", self.folder], check=False, stdout=subprocess.DEVNULL)


def give_time(path, choose):
    date = choose.randrange(10**18, 16 * 10**17)
    os.utime(path, ns=(date, date), follow_symlinks=False)


def make_tree(top, count, choose):
    """Folders of a hundred, of several sizes; names that URLs and shells find hard."""
    for number in range(count):
        folder = os.path.join(top, f"f{number // 100}", "ä #%?&" if number % 7 == 0 else "plain")
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, f"file {number}" if number % 5 else f"{number}.txt")
        if number % 50 == 1:
            os.symlink("../plain/nothing" if number % 100 == 1 else f"file {number - 1}", path)
            give_time(path, choose)
            continue
        with open(path, "wb") as file:
            file.write(choose.randbytes(choose.choice([0, 10, 1000, 20_000])))
        os.chmod(path, choose.choice([0o600, 0o640, 0o644, 0o755]))
        give_time(path, choose)
    for folder, folders, _ in os.walk(top, topdown=False):
        for name in folders:
            os.chmod(os.path.join(folder, name), choose.choice([0o700, 0o750, 0o755]))
            give_time(os.path.join(folder, name), choose)
    with open(os.path.join(top, "large"), "wb") as file:
        file.write(choose.randbytes(20 << 20))
    with open(os.path.join(top, "document"), "wb") as file:
        file.write(b"document")


def tree(top, skip=()):
    """What each name is: kind, content, and mode with time. Of the top itself nothing, as things are made in it on the way."""
    found = {}
    for folder, folders, files in os.walk(top):
        folders[:] = [name for name in folders if name != ".promisefs"]
        for name in folders:
            status = os.lstat(os.path.join(folder, name))
            if stat.S_ISDIR(status.st_mode):
                found[os.path.relpath(os.path.join(folder, name), top)] = (
                    "folder", None, (stat.S_IMODE(status.st_mode), status.st_mtime_ns))
        for name in files + [name for name in folders if os.path.islink(os.path.join(folder, name))]:
            path = os.path.join(folder, name)
            place = os.path.relpath(path, top)
            if place in skip:
                continue
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                found[place] = ("link", os.readlink(path), (None, status.st_mtime_ns))
            else:
                with open(path, "rb") as file:
                    found[place] = ("file", file.read(), (stat.S_IMODE(status.st_mode), status.st_mtime_ns))
    return found


def compare(model, top, skip):
    found = tree(top, skip)
    model = {name: facts for name, facts in model.items() if name not in skip}
    if set(found) != set(model):
        raise Failed(f"names differ: {sorted(set(found) ^ set(model))[:5]}")
    for name, (kind, content, facts) in model.items():
        if found[name][:2] != (kind, content):
            raise Failed(f"'{name}' is not what it was")
    others = [(name, found[name][2], facts) for name, (_, _, facts) in model.items() if found[name][2] != facts]
    if others:
        raise Failed(f"{len(others)} names have other modes and times: " + ", ".join(
            f"'{name}' has {is_now}, not {facts}" for name, is_now, facts in others[:5]))


def migrate(domain, provider, kills, count, choose):
    """Killed after about 1/(kills+1), 2/(kills+1), … of the files were brought, by the log that it keeps."""
    command = [domain.executable, "migrate", domain.name, "--state-dir", domain.state, provider, "--json"]
    log = os.path.join(domain.state, "migration", "log")
    start, killed = time.monotonic(), 0
    for number in range(kills):
        wanted = (number + choose.uniform(0.6, 1)) / (kills + 1)
        job = subprocess.Popen(command, env=domain.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while job.poll() is None:
            # A line for each item.
            whole = os.path.getsize(log) if os.path.exists(log) else 0
            if whole >= wanted * count * 90:
                job.kill()
                killed += 1
                break
            time.sleep(0.005)
        job.wait()
    done = subprocess.run(command, env=domain.environment, capture_output=True, text=True, timeout=7200)
    if done.returncode != 0:
        raise Failed(f"migrate exits {done.returncode}: {(done.stdout + done.stderr).strip()[-600:]}")
    return time.monotonic() - start, killed


def work(options, folder):
    choose = random.Random(options.seed)
    s3, webdav = Server(options.s3, os.path.join(folder, "s3")), None
    try:
        webdav = Server("apache-webdav", os.path.join(folder, "webdav"))
        around(options, folder, choose, s3, webdav)
    finally:
        s3.stop()
        if webdav:
            webdav.stop()


def around(options, folder, choose, s3, webdav):
    login = {"AWS_ACCESS_KEY_ID": s3.said["S3_ACCESS_KEY"], "AWS_SECRET_ACCESS_KEY": s3.said["S3_SECRET_KEY"]}
    for prefix in ("PROMISEFS_", "PROMISEFS_OLD_"):
        login |= {prefix + "USER": webdav.said["WEBDAV_USER"], prefix + "PASSWORD": webdav.said["WEBDAV_PASSWORD"]}
    domain = Mount(options.executable, folder, ["--poll-interval", "1s"], name="travels", environment=login)
    # Beside it, with sockets in the same place.
    desk = Mount(options.executable, folder, ["--poll-interval", "1s"], name="desk", cloud=os.path.join(folder, "desk-cloud"),
                 state=os.path.join(folder, "desk-state"), environment=login)
    desk.top = os.path.join(folder, "desk")
    os.makedirs(desk.top)
    make_tree(domain.cloud, options.files, choose)
    model = tree(domain.cloud)
    mounts = [domain, desk]
    try:
        for mount in mounts:
            mount.mount()
        domain.run("sync", "--wait", domain.top, timeout=600)
        for _ in os.walk(domain.top):
            pass
        document = "document"
        domain.run("reference", "add", f"{domain.top}/{document}", f"{domain.top}/reference")
        desk.run("reference", "add", f"{domain.top}/{document}", f"{desk.top}/reference")
        bookmark = domain.run("bookmark", "create", f"{domain.top}/{document}", "--app", APPLICATION).strip()
        domain.settle()
        ways = [f"s3://{s3.said['S3_BUCKET']}/travels?endpoint={s3.said['S3_ENDPOINT']}",
                f"webdav+{webdav.said['WEBDAV_URL']}", f"folder:{folder}/back"]
        os.makedirs(f"{folder}/back")
        for number, provider in enumerate(ways):
            domain.run("unmount", "--wait", domain.top, timeout=600)
            took, killed = migrate(domain, provider, options.kills, options.files, choose)
            domain.provider = provider
            domain.mount()
            domain.run("sync", domain.top, timeout=600)
            compare(model, domain.top, {"reference", document})
            for place in (f"{domain.top}/reference", f"{desk.top}/reference"):
                deadline = time.monotonic() + 30
                while True:
                    try:
                        with open(place, "rb") as file:
                            if file.read() == b"document":
                                break
                    except OSError:
                        pass
                    if time.monotonic() > deadline:
                        raise Failed(f"'{place}' leads to '{os.readlink(place)}' at '{provider}'")
                    time.sleep(0.05)
            lead = domain.run("bookmark", "resolve", bookmark, "--app", APPLICATION).splitlines()[0]
            if lead != f"{domain.top}/{document}":
                raise Failed(f"the bookmark leads to '{lead}' at '{provider}'")
            domain.run("verify", domain.top, timeout=600)
            print(f"{provider.split(':')[0]}: {options.files:,} files in {took:.1f} s, killed {killed} times, all the same",
                  flush=True)
            model.pop(document, None)
            renamed = f"document {number}"
            os.rename(f"{domain.top}/{document}", f"{domain.top}/{renamed}")
            document = renamed
            if os.path.realpath(f"{desk.top}/reference") != f"{domain.top}/{document}":
                raise Failed("a reference in another domain did not follow its document")
            domain.settle()
        domain.run("unmount", "--wait", domain.top, timeout=600)
        compare(model, f"{folder}/back", {"reference", document})
    finally:
        for mount in mounts:
            mount.kill()
            subprocess.run(["umount", "-l", mount.top], check=False, stderr=subprocess.DEVNULL)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--executable", required=True)
    arguments.add_argument("--files", type=int, default=1000)
    arguments.add_argument("--kills", type=int, default=3, help="on each way")
    arguments.add_argument("--s3", choices=["moto-s3", "ceph-rgw"], default="moto-s3")
    arguments.add_argument("--seed", type=int, default=random.randrange(10**6))
    options = arguments.parse_args()
    print(f"seed {options.seed}", flush=True)
    folder = tempfile.mkdtemp(prefix="migrate-", dir="/var/tmp")
    try:
        work(options, folder)
    except Failed as found:
        print(f"wrong: {found}")
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
