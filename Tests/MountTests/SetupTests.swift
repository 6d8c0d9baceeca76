import Foundation
import Testing

extension MountSuites {
    /// From nothing to a mount: `setup`, and what `doctor` says of settings that were broken on purpose.
    @Suite struct SetupTests {
        /// No service manager is there for it: a path without `systemctl`, and no folder of one.
        private static let alone = """
            mkdir -p "$T/bin"; for name in bash cat fusermount3 mkdir; do
                found=$(command -v $name || true); [ -z "$found" ] || ln -sf "$found" "$T/bin/$name"
            done

            """

        @Test(.timeLimit(.minutes(2))) func setupWritesTriesAndMountsAndNeverTwice() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                let name = domain.domainName
                try await domain.shell(
                    Self.alone + """
                        export PROMISEFS_STATE_DIR="$T/states"; settings="$XDG_CONFIG_HOME/promisefs"; echo one > "$C/file"
                        mkdir -p "$settings"; printf '# mine\\n[domains.old]\\nmountpoint = "/old"' > "$settings/config.toml"
                        PATH="$T/bin" "$P" setup --yes --provider "folder:$C" --name \(name) --mountpoint "$M/../here" > "$T/said"
                        grep -q "\(name) is on $(dirname "$M")/here" "$T/said"; [ "$(cat "$M/../here/file")" = one ]
                        # The same once more, mounted or not: a setup that was killed goes on.
                        cp "$settings/config.toml" "$T/once"; again() { PATH="$T/bin" "$P" setup --yes --provider "folder:$C" \\
                            --name \(name) --mountpoint "$M/../here" && cmp "$T/once" "$settings/config.toml"; }
                        again; "$P" unmount "$M/../here"; again; [ "$(cat "$M/../here/file")" = one ]
                        grep -q '^# mine' "$settings/config.toml"; "$P" unmount "$M/../here"
                        place="$(dirname "$M")/here"
                        printf '\\n[domains.\(name)]\\nprovider = "folder:%s"\\nmountpoint = "%s"\\n' "$C" "$place" > "$T/table"
                        tail -4 "$settings/config.toml" | diff "$T/table" -
                        [ "$(stat -c %a "$settings/config.toml")" = 600 ]; [ ! -e "$settings/credentials" ]
                        "$P" mount \(name); "$P" unmount "$M/../here"; cp "$settings/config.toml" "$T/before"
                        not "$P" setup --yes --provider "folder:$C" --name \(name) --no-mount 2> "$T/said"
                        grep -q already "$T/said"
                        not "$P" setup --yes --provider "folder:$C/missing" --name other --no-mount
                        not "$P" setup --yes --provider "nonsense" --name other --no-mount
                        # What was written down and could not be mounted kept the next attempt from it.
                        mkdir -p "$T/full/x"; for place in "$T/full" "$C/inside"; do
                            not "$P" setup --yes --provider "folder:$C" --name full --mountpoint "$place" 2> "$T/said"
                            grep -q -e 'not empty' -e 'inside each other' "$T/said"
                        done; [ ! -e "$C/inside" ]
                        # What was behind the first MiB went.
                        { cat "$T/before"; head -c 1100000 /dev/zero | tr '\\0' '#'; } > "$settings/config.toml"
                        cp "$settings/config.toml" "$T/large"
                        not "$P" setup --yes --no-mount --provider "folder:$C" --name full 2> "$T/said"
                        grep -q 'larger than 1 MiB' "$T/said"; cmp "$T/large" "$settings/config.toml"
                        # Domains behind it were none, without a word.
                        not "$P" mount full 2> "$T/said"; grep -q 'larger than 1 MiB' "$T/said"
                        cp "$T/before" "$settings/config.toml"
                        # Nor where nothing could be mounted later; and a variable that is not set is no wish.
                        not "$P" setup --yes --no-mount --provider "folder:$C" --name full --mountpoint "$C" 2> "$T/said"
                        grep -q 'inside each other' "$T/said"
                        not "$P" setup --yes --no-mount --provider "folder:$C" --name full --mountpoint /dev/null 2> "$T/said"
                        grep -q '/dev/null is not a folder' "$T/said"
                        not "$P" setup --yes --no-mount --provider '' --name full 2> "$T/said"
                        grep -q 'provider is empty' "$T/said"
                        cmp "$T/before" "$settings/config.toml"
                        """)
            }
        }

        /// The shell did not show any more what was typed; a slip ended it all, and Ctrl-D mounted something.
        @Test(.timeLimit(.minutes(1))) func whoeverAnswersIsAskedAgainAndMayLeaveAtAnyQuestion() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                try await domain.shell(
                    """
                    cat > "$T/leave.py" << 'END'
                    import os, pty, select, sys, termios
                    def leave(answers, key):
                        master, slave = pty.openpty()
                        process = os.fork()
                        if process == 0:
                            os.login_tty(slave)
                            os.execv(sys.argv[1], [sys.argv[1], "setup", "--no-enable"])
                        for question, answer in [*answers.items(), key]:
                            said = b""
                            while question.encode() not in said:
                                assert select.select([master], [], [], 20)[0], said
                                said += os.read(master, 4096)
                            os.write(master, answer.encode())
                        status = os.waitpid(process, 0)[1]
                        assert status and termios.tcgetattr(slave)[3] & termios.ECHO, (key, status)
                    leave({}, ("What to mount", "\\4"))
                    slips = {"What to mount": "/srv\\n", "write folder:/srv": "webdav+http://ann@127.0.0.1:9/x\\n",
                        "What to call it": "two words\\n", "cannot name a domain": "work\\n", "Where": "\\n"}
                    leave(slips, ("Password", "\\3"))
                    END
                    python3 "$T/leave.py" "$P"; [ ! -e "$XDG_CONFIG_HOME/promisefs" ]
                    """)
            }
        }

        /// Ctrl-Z left a shell that showed nothing, and behind fg the password was shown.
        @Test(.timeLimit(.minutes(1))) func whoStopsAtThePasswordFindsAShellThatShowsWhatIsTyped() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                try await domain.shell(
                    """
                    cat > "$T/stop.py" << 'END'
                    import os, pty, select, signal, sys, termios
                    def echoes(): return bool(termios.tcgetattr(0)[3] & termios.ECHO)
                    def shell(report):
                        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
                        job = os.fork()
                        if job == 0:
                            os.setpgid(0, 0); os.tcsetpgrp(0, os.getpid())
                            signal.signal(signal.SIGTTOU, signal.SIG_DFL)
                            words = [sys.argv[1], "setup", "--no-enable", "--no-check", "--no-mount"]
                            os.execv(sys.argv[1], words + ["--provider", "webdav+http://ann@127.0.0.1:9/x",
                                "--name", "work", "--mountpoint", sys.argv[2]])
                        assert os.WIFSTOPPED(os.waitpid(job, os.WUNTRACED)[1])
                        os.tcsetpgrp(0, os.getpid())
                        os.write(report, b"S" if echoes() else b"s")
                        os.tcsetpgrp(0, job); os.kill(-job, signal.SIGCONT)
                        status = os.waitpid(job, 0)[1]
                        os.tcsetpgrp(0, os.getpid())
                        os.write(report, b"E" if status == 0 and echoes() else b"e")
                        os._exit(0)
                    reports, report = os.pipe()
                    process, terminal = pty.fork()
                    if process == 0: shell(report)
                    signal.alarm(30)
                    said = b""
                    def hear(word, count):
                        global said
                        while said.count(word) < count: said += os.read(terminal, 4096)
                    hear(b"Password", 1); os.write(terminal, b"\\x1a")
                    assert os.read(reports, 1) == b"S", said
                    hear(b"Password", 2); os.write(terminal, b"hushed\\n")
                    assert os.read(reports, 1) == b"E", said
                    while select.select([terminal], [], [], 0.5)[0]:
                        try: said += os.read(terminal, 4096)
                        except OSError: break
                    assert b"hushed" not in said, said
                    END
                    python3 "$T/stop.py" "$P" "$T/place"; grep -qx 'password = hushed' "$XDG_CONFIG_HOME/promisefs/credentials"
                    """)
            }
        }

        /// A password that was typed as soon as its question was there was shown, thrown away, and waited for without end.
        @Test(.timeLimit(.minutes(1))) func answersThatArePastedAllAtOnceAreTaken() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                try await domain.shell(
                    """
                    cat > "$T/paste.py" << 'END'
                    import os, pty, signal, sys
                    process, terminal = pty.fork()
                    if process == 0:
                        os.execv(sys.argv[1], [sys.argv[1], "setup", "--no-enable", "--no-check", "--no-mount"])
                    os.write(terminal, b"webdav+http://ann@127.0.0.1:9/x\\nwork\\n\\nsecret\\n")
                    signal.alarm(30)
                    assert os.waitpid(process, 0)[1] == 0
                    END
                    python3 "$T/paste.py" "$P"; grep -qx 'password = secret' "$XDG_CONFIG_HOME/promisefs/credentials"
                    """)
            }
        }

        /// It ended at its first line, that the provider answers: nothing was written and nothing mounted.
        @Test(.timeLimit(.minutes(1))) func aSetupWhoseReaderHasGoneMountsAllTheSame() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                try await domain.shell(
                    Self.alone + """
                        export PROMISEFS_STATE_DIR="$T/states"; echo one > "$C/file"; cat > "$T/unread.py" << 'END'
                        import os, subprocess, sys
                        reader, writer = os.pipe()
                        os.close(reader)
                        sys.exit(subprocess.run(sys.argv[1:], stdout=writer).returncode)
                        END
                        python3 "$T/unread.py" env PATH="$T/bin" "$P" setup --yes --provider "folder:$C" \\
                            --name \(domain.domainName) --mountpoint "$M"
                        [ "$(cat "$M/file")" = one ]; grep -q '^provider = ' "$XDG_CONFIG_HOME/promisefs/config.toml"
                        "$P" unmount "$M"
                        """)
            }
        }

        @Test(.timeLimit(.minutes(1))) func setupKeepsAPasswordForNobodyElse() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                try await domain.shell(
                    """
                    settings="$XDG_CONFIG_HOME/promisefs"; printf 'the # secret\\n' > "$T/password"
                    "$P" setup --yes --no-check --no-mount --provider webdav+https://ann@example.com/files --name work \\
                        --user ann --password-file "$T/password" --json | grep -q '"mounted":false'
                    printf '[work]\\nuser = ann\\npassword = the # secret\\n' | diff - "$settings/credentials"
                    [ "$(stat -c %a "$settings/credentials")" = 600 ]; [ -d "$HOME/work" ]
                    not grep -q secret "$settings/config.toml"
                    not "$P" setup --yes --no-mount --provider webdav+http://127.0.0.1:9/x --name off
                    not grep -q off "$settings/config.toml"
                    """)
            }
        }

        @Test(.timeLimit(.minutes(1))) func doctorFindsWhatIsWrongWithSettingsAndItsAdviceMendsIt() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell(
                    """
                    settings="$XDG_CONFIG_HOME/promisefs"; mkdir -p "$settings"
                    finds() { "$P" doctor > "$T/found" || true; grep -q "$1" "$T/found"; }
                    "$P" doctor | grep -q 'configuration: none'
                    echo 'cachelimit = 1' > "$settings/config.toml"; finds "problem configuration: .*no key 'cachelimit'"
                    cat > "$settings/config.toml" <<END
                    [domains.one]
                    provider = "folder:$C/missing"
                    mountpoint = "$T/place"
                    [domains.two]
                    provider = "nothing:/x"
                    mountpoint = "$T/place"
                    [domains.three]
                    END
                    finds "problem domain one: its folder $C/missing does not exist"
                    finds "problem domain one: its mount point $T/place does not exist; 'mkdir -p $T/place'"
                    finds "problem domain two: has the mountpoint of 'one'"
                    finds "problem domain two: there is no provider 'nothing'"
                    finds "warning domain three: has no mountpoint"
                    cp "$settings/config.toml" "$T/before"; cat > "$settings/config.toml" <<END
                    [domains.four]
                    provider = "folder:$C"
                    mountpoint = "$C/inside"
                    state-dir = "$T/kept"
                    [domains.five]
                    mountpoint = "here"
                    state-dir = "$T/kept/"
                    END
                    finds "problem domain four: .*inside each other"; finds "problem domain five: .*no absolute path"
                    finds "problem domain four: has the state folder of 'five'"
                    cp "$T/before" "$settings/config.toml"; finds "problem domain one"
                    eval "$(sed -n "s/.*; '\\(mkdir -p .*\\)'$/\\1/p" "$T/found" | sort -u)"; not finds 'mount point'
                    echo '[one]' > "$settings/credentials"; chmod 644 "$settings/credentials"
                    finds 'problem credentials: .*read by others'
                    eval "$(sed -n "s/.*; '\\(chmod .*\\)'$/\\1/p" "$T/found")"; finds 'ok *credentials'
                    printf '[domains.one]\\nmountpoint = "%s"\\n' "$T/place" > "$settings/config.toml"; "$P" doctor > /dev/null
                    """)
                try await domain.kill9()
                try await domain.shell(
                    """
                    "$P" doctor > "$T/found" || true
                    grep -q "warning mount $M: has lost its daemon; 'promisefs unmount $M', or mount it again" "$T/found"
                    "$P" unmount "$M"; not sh -c '"$P" doctor | grep -q "mount $M"'
                    """)
            }
        }
    }
}
