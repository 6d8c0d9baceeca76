"""Servers that clients are compared on: those of scripts/servers, each in a folder of its own, on loopback; or, by a proxy
there, as far away as is asked for."""
import glob, os, subprocess, time, urllib.parse

from . import system
from .command_line import REPOSITORY, Refused

SCRIPTS = REPOSITORY / "scripts/servers"


class Server:
    """`settings` is what the script says of it; `root` is the folder it serves, where there is one."""

    def __init__(self, scratch, script, round_trip=0, **environment):
        self.script, self.folder = str(SCRIPTS / script), scratch.folder("server-" + script)
        self.environment = dict(os.environ, **environment)
        scratch.callback(self.stop)
        try:
            said = system.run([self.script, "start", self.folder], env=self.environment).decode()
        except system.CommandFailed as failure:
            raise Refused(str(failure)) from None
        self.settings = dict(line.split("=", 1) for line in said.splitlines() if "=" in line)
        if round_trip:
            self.go_away(scratch, round_trip)

    def go_away(self, scratch, round_trip):
        """Milliseconds there and back, from now on."""
        name = "S3_ENDPOINT" if self.is_s3 else "WEBDAV_URL"
        address, port_file = urllib.parse.urlsplit(self.settings[name]), self.folder + "/distant-port"
        proxy = subprocess.Popen([str(SCRIPTS / "distance"), str(address.port), str(round_trip), port_file])
        scratch.callback(proxy.terminate)
        for _ in range(500):
            if os.path.exists(port_file):
                break
            time.sleep(0.01)
        port = system.read_text(port_file)
        self.settings[name] = address._replace(netloc=f"{address.hostname}:{port}").geturl()

    @property
    def root(self):
        return self.settings.get("WEBDAV_ROOT")

    @property
    def processes(self):
        found = []
        for path in glob.glob(self.folder + "/*.pid"):
            words = system.read_text(path).split()
            found += [int(words[0])] if words and words[0].isdigit() else []
        return found

    def stop(self):
        system.run([self.script, "stop", self.folder], env=self.environment)

    @property
    def is_s3(self):
        return "S3_BUCKET" in self.settings

    @property
    def provider(self):
        """As `promisefs mount` calls it."""
        said = self.settings
        if self.is_s3:
            return f"s3://{said['S3_BUCKET']}?endpoint={said['S3_ENDPOINT']}&region={said['S3_REGION']}"
        return "webdav+" + said["WEBDAV_URL"]

    @property
    def credentials(self):
        said = self.settings
        if self.is_s3:
            return {"AWS_ACCESS_KEY_ID": said["S3_ACCESS_KEY"], "AWS_SECRET_ACCESS_KEY": said["S3_SECRET_KEY"]}
        return {"PROMISEFS_USER": said["WEBDAV_USER"], "PROMISEFS_PASSWORD": said["WEBDAV_PASSWORD"]}
