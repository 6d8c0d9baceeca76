"""Programs that bring files to a server and back. Names are relative to what the server serves; a client that cannot do
something has no such function."""
import os, re, subprocess

from . import system

# Transfers that run side by side where a program leaves it to its user; the others have their own default.
PARALLEL = 16
PROPERTIES = ('<propfind xmlns="DAV:"><prop><resourcetype/><getcontentlength/><getetag/><getlastmodified/></prop></propfind>')


class Curl:
    """All files of a folder by one process, over connections that it keeps."""

    def __init__(self, settings):
        self.is_s3 = "S3_BUCKET" in settings
        if self.is_s3:
            self.base = f"{settings['S3_ENDPOINT']}/{settings['S3_BUCKET']}/"
            self.options = {"user": f"{settings['S3_ACCESS_KEY']}:{settings['S3_SECRET_KEY']}",
                            "aws-sigv4": f"aws:amz:{settings['S3_REGION']}:s3",
                            "header": "x-amz-content-sha256: UNSIGNED-PAYLOAD"}
        else:
            self.base = settings["WEBDAV_URL"]
            self.options = {"user": f"{settings['WEBDAV_USER']}:{settings['WEBDAV_PASSWORD']}"}

    def run(self, *groups, options=()):
        """Each group of settings is a request, or many that differ in URL and file only."""
        text = "\nnext\n".join("\n".join(f'{name} = "{value}"' for name, value in [*self.options.items(), *group])
                               for group in groups)
        done = subprocess.run(["curl", "--silent", "--show-error", "--fail", *options, "--config", "-"], input=text.encode(),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=3600)
        if done.returncode != 0:
            raise system.CommandFailed(f"curl: {done.stderr.decode(errors='replace').strip()[:200]}")
        return done.stdout

    def all(self, pairs, key):
        settings = [setting for url, file in pairs for setting in (("url", self.base + url), (key, file))]
        self.run(settings, options=["--parallel", "--parallel-max", str(PARALLEL)])

    def up(self, source, name):
        self.run([("url", self.base + name), ("upload-file", source)])

    def down(self, name, target):
        self.run([("url", self.base + name), ("output", target)])

    def up_folder(self, source, name):
        if not self.is_s3:
            self.run([("url", f"{self.base}{name}/"), ("request", "MKCOL")])
        self.all([(f"{name}/{file}", f"{source}/{file}") for file in os.listdir(source)], "upload-file")

    def down_folder(self, name, target, files):
        os.mkdir(target)
        self.all([(f"{name}/{file}", f"{target}/{file}") for file in files], "output")

    def remove(self, name):
        self.run([("url", self.base + name), ("request", "DELETE")])

    def listing(self, name, target):
        """Of WebDAV only: what S3 lists in pages needs more than a request."""
        self.run([("url", f"{self.base}{name}/"), ("request", "PROPFIND"), ("header", "Depth: 1"),
                  ("header", "Content-Type: application/xml"), ("data", PROPERTIES.replace('"', '\\"')), ("output", target)])
        with open(target, "rb") as file:
            return len(re.findall(rb"</(\w+:)?response>", file.read())) - 1


class Rclone:
    """`rclone copy` as it comes."""

    def __init__(self, settings):
        self.environment = dict(os.environ, RCLONE_CONFIG="/dev/null")
        # rclone 1.60 does not start with it.
        self.environment.pop("AWS_CA_BUNDLE", None)
        if "S3_BUCKET" in settings:
            remote = {"TYPE": "s3", "PROVIDER": "Ceph", "ENDPOINT": settings["S3_ENDPOINT"], "REGION": settings["S3_REGION"],
                      "ACCESS_KEY_ID": settings["S3_ACCESS_KEY"], "SECRET_ACCESS_KEY": settings["S3_SECRET_KEY"]}
            self.top = f"bench:{settings['S3_BUCKET']}/"
        else:
            obscured = system.run(["rclone", "obscure", settings["WEBDAV_PASSWORD"]]).decode().strip()
            remote = {"TYPE": "webdav", "VENDOR": "other", "URL": settings["WEBDAV_URL"], "USER": settings["WEBDAV_USER"],
                      "PASS": obscured}
            self.top = "bench:"
        self.environment.update({"RCLONE_CONFIG_BENCH_" + name: value for name, value in remote.items()})

    def run(self, *words):
        return system.run(["rclone", *words], timeout=3600, env=self.environment)

    def up(self, source, name):
        self.run("copyto", source, self.top + name)

    def down(self, name, target):
        self.run("copyto", self.top + name, target)

    def up_folder(self, source, name):
        self.run("copy", source, self.top + name)

    def down_folder(self, name, target, files):
        self.run("copy", self.top + name, target)

    def remove(self, name):
        self.run("deletefile", self.top + name)

    def listing(self, name, target):
        return self.run("lsf", "--files-only", self.top + name).count(b"\n")

    def list_tree(self, name):
        return self.run("lsl", self.top + name).count(b"\n")

    def copy_tree(self, name, target):
        self.run("copy", self.top + name, target)

    def rename_tree(self, name, new_name):
        self.run("moveto", self.top + name, self.top + new_name)

    def remove_tree(self, name):
        self.run("purge", self.top + name)

    def read(self, name):
        return system.count_bytes(["rclone", "cat", self.top + name], env=self.environment)


class AWS:
    """`aws s3 cp` as it comes, but without checksums that not every server takes."""

    def __init__(self, settings):
        self.top = f"s3://{settings['S3_BUCKET']}/"
        self.endpoint = settings["S3_ENDPOINT"]
        self.environment = dict(
            os.environ, AWS_ACCESS_KEY_ID=settings["S3_ACCESS_KEY"], AWS_SECRET_ACCESS_KEY=settings["S3_SECRET_KEY"],
            AWS_DEFAULT_REGION=settings["S3_REGION"], AWS_CONFIG_FILE="/dev/null", AWS_SHARED_CREDENTIALS_FILE="/dev/null",
            AWS_REQUEST_CHECKSUM_CALCULATION="when_required", AWS_RESPONSE_CHECKSUM_VALIDATION="when_required")

    def run(self, *words):
        return system.run(["aws", "--endpoint-url", self.endpoint, "s3", *words], timeout=3600, env=self.environment)

    def up(self, source, name):
        self.run("cp", "--only-show-errors", source, self.top + name)

    def down(self, name, target):
        self.run("cp", "--only-show-errors", self.top + name, target)

    def up_folder(self, source, name):
        self.run("cp", "--only-show-errors", "--recursive", source, self.top + name)

    def down_folder(self, name, target, files):
        self.run("cp", "--only-show-errors", "--recursive", self.top + name, target)

    def remove(self, name):
        self.run("rm", "--only-show-errors", self.top + name)

    def listing(self, name, target):
        return self.run("ls", self.top + name + "/").count(b"\n")


class Mounted:
    """A mount of PromiseFS: copying into it until the server has it, and having it fetched."""

    def __init__(self, settings):
        self.mount, self.executable = settings["mount"] + "/", settings["executable"]
        self.environment = settings["environment"]

    def run(self, *words):
        return system.run([self.executable, *words], timeout=3600, env=self.environment)

    def up(self, source, name):
        system.run(["cp", source, self.mount + name])
        self.run("sync", "--wait", self.mount)

    def down(self, name, target):
        self.run("fetch", self.mount + name)

    def up_folder(self, source, name):
        system.run(["cp", "-r", source, self.mount + name])
        self.run("sync", "--wait", self.mount)

    def down_folder(self, name, target, files):
        self.run("fetch", self.mount + name)

    def remove(self, name):
        os.unlink(self.mount + name)
        self.run("sync", "--wait", self.mount)

    def listing(self, name, target):
        return system.run(["ls", "-f", self.mount + name], timeout=3600).count(b"\n") - 2

    def list_tree(self, name):
        return system.run(["find", self.mount + name, "-type", "f", "-printf", "%s %T@ %p\\n"], timeout=3600).count(b"\n")

    def copy_tree(self, name, target):
        system.run(["cp", "-r", self.mount + name, target], timeout=3600)

    def rename_tree(self, name, new_name):
        os.rename(self.mount + name, self.mount + new_name)
        self.run("sync", "--wait", self.mount)

    def remove_tree(self, name):
        system.run(["rm", "-r", self.mount + name], timeout=3600)
        self.run("sync", "--wait", self.mount)

    def read(self, name):
        return system.count_bytes(["cat", self.mount + name])


CLIENTS = {"curl": Curl, "rclone": Rclone, "aws": AWS, "promisefs": Mounted}


def client(configuration):
    return CLIENTS[configuration["client"]](configuration["settings"])
