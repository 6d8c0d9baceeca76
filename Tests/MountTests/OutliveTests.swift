import Foundation
import Testing

extension MountSuites {
    /// Programs on a mount notice nothing but a pause when its daemon dies or is replaced.
    @Suite(.enabled(if: Machine.canOutliveDaemon, "before Linux 6.9 the kernel sends no request again"))
    struct OutliveTests {
        private var options: MountedDomain.Options {
            var options = MountedDomain.Options()
            options.arguments = ["--no-io-uring"]
            return options
        }

        /// > A call that the old daemon had carried out, but not answered, is answered by the next one from the index and not
        @Test(.timeLimit(.minutes(30))) func programsWorkOnWhileTheirDaemonIsKilledAgainAndAgain() async throws {
            let seed = Machine.seed ?? Int.random(in: 0..<1_000_000_000)
            // How long a call may take is measured by hand, on a quiet machine: here nothing may fail.
            let result = try await runShell(
                """
                python3 '\(Machine.workloads)/outlive-workload.py' --executable '\(Machine.executable)' \
                    --kills \(Machine.isFullScale ? 300 : 12) --patience 60 --seed \(seed) --folder '\(Machine.folder)'
                """, seconds: 1700)
            print(result.output)
            if result.status != 0 {
                Issue.record("seed \(seed), exit \(result.status):\n\(result.output.suffix(6000))\n\(result.error.suffix(2000))")
            }
        }

        /// > A small process, `promisefs-holder`, starts the daemon and starts another one when it dies.
        @Test(.timeLimit(.minutes(3))) func openFilesGoOnWithTheNextDaemon() async throws {
            var options = options
            options.prepare = "seq 1 1000 > \"$C/read\"; seq 1 1000 > \"$C/written\"; seq 1 1000 > \"$C/gone\""
            try await MountedDomain.with(options) { domain in
                #expect(try await domain.status().outlivesDaemon)
                try await domain.shell(
                    """
                    (exec 3<"$M/read" 4<>"$M/written" 5<"$M/gone"; rm "$M/gone"
                     touch "$T/ready"; within 60 '[ -e "$T/killed" ]'
                     cat <&3 | cmp - "$C/read"; echo new >&4; seq 1 1000 | cmp - /dev/fd/5; mkdir "$M/folder"; touch "$T/good"
                    ) > "$T/log" 2>&1 & disown; within 20 '[ -e "$T/ready" ]'
                    """)
                try domain.killDaemon()
                try await domain.shell(
                    "touch \"$T/killed\"; within 60 '[ -e \"$T/good\" ]' || { cat \"$T/log\"; false; }", seconds: 90)
                let status = try await domain.status()
                #expect(status.restarts == 1)
                #expect(status.lastEnd == "signal 9")
                try await domain.synchronize()
                try await domain.expectProviderEqualsMount()
                try await domain.shell("[ \"$(head -1 \"$C/written\")\" = new ]; [ ! -e \"$C/gone\" ]; \"$P\" verify \"$M\"")
            }
        }

        /// It was taken away, and a backup took the folder below, which is empty, for what is mounted. It takes a minute.
        @Test(.timeLimit(.minutes(3)), .enabled(if: Machine.isFullScale))
        func aMountThatIsGivenUpHidesTheFolderBelow() async throws {
            var options = options
            options.prepare = "echo one > \"$C/file\""
            try await MountedDomain.with(options) { domain in
                try await domain.shell("cat \"$M/file\"; mv \"$S/index.sqlite\" \"$T/aside\"; mkdir \"$S/index.sqlite\"")
                try domain.killDaemon()
                try await domain.shell(
                    """
                    within 90 '! stat "$M"'; not ls "$M" 2> "$T/said"; grep -qE 'not connected|aborted' "$T/said"
                    rmdir "$S/index.sqlite"; mv "$T/aside" "$S/index.sqlite"; "$P" unmount "$M" || true
                    \(domain.mountCommand); [ "$(cat "$M/file")" = one ]
                    """, seconds: 150)
            }
        }

        /// Commands said that there was none, and to unmount with --lazy, while programs only waited.
        @Test(.timeLimit(.minutes(2))) func aCommandRightAfterADeathIsAnsweredByTheNextDaemon() async throws {
            try await MountedDomain.with(options) { domain in
                for round in 1...4 {
                    let dying = domain.daemonProcesses().map { "\($0)" }.joined(separator: " ")
                    try domain.killDaemon()
                    try await domain.shell(
                        """
                        # Until it has ended it may take a call, and cut it off.
                        for process in \(dying); do within 20 "gone $process"; done
                        "$P" kv set --app a.b round \(round); [ "$("$P" kv get --app a.b round)" = \(round) ]
                        "$P" status "$M" | grep -q 'connection *online'
                        """)
                }
            }
        }

        /// In Python a path on a mount was on none while its daemon was replaced.
        @Test(.timeLimit(.minutes(2))) func aPathIsFoundInPythonWhileTheDaemonIsReplaced() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    PYTHONPATH="$R/clients/python" python3 - "$P" "$M" <<'PYTHON'
                    import promisefs, subprocess, sys
                    program, mount = sys.argv[1:]
                    restart = subprocess.Popen([program, "restart", mount])
                    count = 0
                    while restart.poll() is None:
                        domain, path = promisefs.locate(mount + "/folder/file")
                        assert path == b"folder/file" and promisefs.domains(), path
                        count += 1
                    assert restart.returncode == 0 and count > 3, (restart.returncode, count)
                    PYTHON
                    """, seconds: 60)
            }
        }

        /// `mount` had returned before the holder knew that its daemon serves, and gave the mount up.
        @Test(.timeLimit(.minutes(2))) func aDaemonThatDiesRightAfterItsMountHasASuccessor() async throws {
            try await MountedDomain.with(options, mounts: false) { domain in
                for _ in 1...10 {
                    try await domain.remount()
                    try domain.killDaemon()
                    try await domain.shell("touch \"$M/made\"; rm \"$M/made\"; \"$P\" unmount --wait \"$M\"")
                }
            }
        }

        /// It ended the daemon only, and the mount went on with the next one.
        @Test(.timeLimit(.minutes(2))) func aSignalInASuccessorsFirstMomentsUnmounts() async throws {
            try await MountedDomain.with(options) { domain in
                let old = domain.daemonProcesses()
                try domain.killDaemon()
                var new: [pid_t] = []
                for _ in 0..<5_000 where new.isEmpty {
                    new = domain.daemonProcesses().filter { !old.contains($0) }
                    usleep(1_000)
                }
                #expect(!new.isEmpty)
                for process in new { kill(process, SIGTERM) }
                try await domain.shell(
                    "within 15 'not mountpoint -q \"$M\"'; within 10 'not pgrep --full \"$S\"'")
                try await domain.remount()
            }
        }

        /// A thread of the daemon waited for the folder that a program had, which waited for the daemon: the device stayed open,
        /// and whoever called the mount waited until somebody aborted the connection by hand.
        @Test(
            .timeLimit(.minutes(2)), .enabled(if: Machine.isRoot, "without root the folder below is seen for a moment"),
            arguments: ["unmount", "mount"])
        func aMountThatIsKilledWithItsHolderWhileItTellsOfNamesIsGivenUp(by way: String) async throws {
            var options = options
            options.arguments += ["--name-deadline", "60s", "--poll-interval", "1s"]
            options.prepare = "mkdir \"$C/d\"; for n in a b; do echo $n > \"$C/d/$n\"; done"
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    cat "$M"/d/* > /dev/null
                    "$P" coordinate write "$M/d/a" -- sh -c 'touch "$T/claimed"; sleep 30' > "$T/log" 2>&1 & disown
                    within 10 '[ -e "$T/claimed" ]'; (rm "$M/d/a" || echo ended > "$T/said") & disown
                    [ -e /sys/fs/fuse/connections/0 ] || mount -t fusectl none /sys/fs/fuse/connections 2> /dev/null || true
                    stat -c %d "$M" > "$T/number"; connection=/sys/fs/fuse/connections/$(cat "$T/number")
                    waits() { [ "$(cat $connection/waiting)" -gt 0 ]; }
                    within 20 'waits && sleep 0.2 && waits'; rm "$C/d/b"
                    """)
                let daemon = try #require(domain.daemonProcesses().first)
                try await domain.shell("within 10 'grep -q fuse_reverse_inval_entry /proc/\(daemon)/task/*/wchan'")
                let holders = domain.daemonProcesses(of: "promisefs-holder")
                for process in holders + [daemon] { kill(process, SIGKILL) }
                if way == "unmount" {
                    try await domain.shell("timeout 20 \"$P\" unmount \"$M\"", seconds: 30)
                    try await domain.remount()
                } else {
                    // What was killed takes a moment to end as far as it can.
                    try await domain.shell(
                        "within 15 '\"$P\" doctor --no-check 2>&1 | grep \"has lost its daemon and its holder\"'",
                        seconds: 30)
                    try await domain.shell("timeout 20 " + domain.mountCommand, seconds: 30)
                }
                try await domain.shell(
                    """
                    within 10 'grep -q ended "$T/said"' || {
                        echo 1 > "/sys/fs/fuse/connections/$(cat "$T/number")/abort"; false
                    }
                    ls "$M/d"; [ ! -e "$M/d/b" ]
                    """)
            }
        }

        /// A file whose bytes are on their way is read through the daemon, which the next one has to know.
        @Test(.timeLimit(.minutes(3))) func aReaderOfAPlaceholderGetsItsBytesFromTheNextDaemon() async throws {
            var options = options
            options.prepare = "head -c 8000000 /dev/urandom > \"$C/large\""
            try await MountedDomain.with(options) { domain in
                try await domain.shell("ls \"$M\"")
                try domain.setFaults(["delay=300ms"])
                try await domain.shell(
                    "(cmp \"$M/large\" \"$C/large\" && touch \"$T/equal\") > \"$T/log\" 2>&1 & disown; sleep 0.5")
                try domain.killDaemon()
                try domain.setFaults([])
                try await domain.shell("within 60 '[ -e \"$T/equal\" ]' || { cat \"$T/log\"; false; }", seconds: 90)
            }
        }

        @Test(.timeLimit(.minutes(3))) func anUpgradeReplacesTheDaemonUnderOpenFiles() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    exec 3>"$M/file"; echo before >&3
                    "$P" restart "$M" --json | grep -q '"restarts":1'
                    echo after >&3; exec 3>&-
                    [ "$(cat "$M/file" | tr '\\n' ' ')" = "before after " ]
                    """)
                #expect(try await domain.status().lastEnd == "status 0")
            }
        }

        /// The next daemon tells the kernel again what may have changed; a folder that is right stays where it is.
        @Test(.timeLimit(.minutes(2))) func aWorkingFolderIsTheSameAfterARestart() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    "mkdir \"$M/work\"; cd \"$M/work\"; \"$P\" restart \"$M\"; sleep 0.3; [ \"$(/bin/pwd)\" = \"$M/work\" ]")
            }
        }

        /// Who asked the mount to end, and was refused because a file was open, has not asked for its loss at the next crash.
        @Test(.timeLimit(.minutes(2))) func aRefusedEndIsNotRememberedByARestart() async throws {
            try await MountedDomain.with(options) { domain in
                let holder = try #require(domain.daemonProcesses(of: "promisefs-holder").first)
                try await domain.shell(
                    """
                    exec 3>"$M/open"; kill -TERM \(holder); sleep 2; mountpoint -q "$M"
                    "$P" restart "$M"; echo kept >&3; exec 3>&-; [ "$(cat "$M/open")" = kept ]
                    """)
            }
        }

        @Test(.timeLimit(.minutes(2))) func anUnmountEndsDaemonAndHolder() async throws {
            try await MountedDomain.with(options) { domain in
                #expect(domain.daemonProcesses(of: "promisefs-holder").count == 1)
                try await domain.shell("\"$P\" unmount \"$M\"; not mountpoint -q \"$M\"")
                #expect(domain.daemonProcesses().isEmpty)
                #expect(domain.daemonProcesses(of: "promisefs-holder").isEmpty)
            }
        }

        @Test(.timeLimit(.minutes(2))) func withoutSupervisionTheMountEndsWithItsDaemonAndSaysSo() async throws {
            var options = options
            options.arguments.append("--no-supervision")
            try await MountedDomain.with(options) { domain in
                #expect(try await domain.status().isSupervised == false)
                let refused = try await domain.shell("\"$P\" restart \"$M\"", status: 1)
                #expect(refused.error.contains("unmount it and mount it again"))
                try await domain.kill9()
                try await domain.shell("not ls \"$M\"")
                try await domain.remount()
            }
        }

        /// A backup that looked in that moment found an empty folder, and took everything for removed.
        /// > A mount that cannot be kept, or whose holder died too, stays where it is until a new one has its place:
        @Test(
            .enabled(if: Machine.isRoot, "others may mount by fusermount3 only"),
            .timeLimit(.minutes(2)), arguments: [false, true])
        func whileAMountIsReplacedNobodySeesTheFolderBelow(isSilent: Bool) async throws {
            let script = """
                import os, sys, time
                seen, end = set(), time.time() + 30
                while not os.path.exists(sys.argv[2]) and time.time() < end:
                    try:
                        seen.add(",".join(sorted(os.listdir(sys.argv[1]))))
                    except OSError as problem:
                        seen.add(problem.errno)
                print(*sorted(map(str, seen)))
                """
            for arguments in [["--no-io-uring"], ["--io-uring"]] {
                var options = options
                options.arguments = arguments
                options.environment["WATCH"] = script
                try await MountedDomain.with(options) { domain in
                    try await domain.shell("echo kept > \"$M/file\"; \"$P\" sync --wait \"$M\"")
                    for number in 1...3 {
                        try await domain.kill9()
                        if isSilent { try domain.setFaults(["hang=true"]) }
                        let look = """
                            rm -f "$T/stop"; python3 -c "$WATCH" "$M" "$T/stop" > "$T/seen" & watcher=$!; sleep 0.3
                            \(domain.mountCommand) > "$T/said"; [ "$(ls "$M")" = file ]; echo \(number) > "$M/new"; rm "$M/new"
                            touch "$T/stop"; wait $watcher; [ "$(sed 's/ file,new//' "$T/seen")" = "107 file" ] || cat "$T/seen"
                            not grep -q '^ \\|  ' "$T/seen"; [ "$(findmnt -n "$M" | wc -l)" = 1 ]
                            """
                        try await domain.shell(look)
                        try domain.setFaults([])
                    }
                }
            }
        }

        /// The kernel loses what a dying process has in its rings, so the mount itself cannot be kept.
        /// > By io_uring the mount cannot be kept:
        @Test(
            .enabled(if: Machine.canUseRings, "no FUSE over io_uring here"),
            .timeLimit(.minutes(2)))
        func byRingsTheMountIsMadeAnewWhenItsDaemonDies() async throws {
            var options = options
            options.arguments = ["--io-uring"]
            try await MountedDomain.with(options) { domain in
                let status = try await domain.status()
                try #require(status.transport == "io_uring")
                #expect(status.isSupervised && !status.outlivesDaemon)
                try await domain.shell("echo kept > \"$M/file\"")
                try domain.killDaemon()
                try await domain.shell("within 60 '[ \"$(cat \"$M/file\" 2>/dev/null)\" = kept ]'", seconds: 90)
                #expect(try await domain.status().restarts == 1)
            }
        }

        /// It was refused: nobody could upgrade the daemon without unmounting.
        @Test(
            .enabled(if: Machine.canUseRings, "no FUSE over io_uring here"),
            .timeLimit(.minutes(2)))
        func byRingsARestartMakesTheMountAnewUnlessAFileIsOpen() async throws {
            var options = options
            options.arguments = ["--io-uring"]
            try await MountedDomain.with(options) { domain in
                try await domain.shell("echo kept > \"$M/file\"; touch \"$T/bare\"")
                let refused = try await domain.shell("exec 3< \"$M/file\"; \"$P\" restart \"$M\"", status: 1)
                #expect(refused.errorText.contains("a file is open"), "\(refused.errorText)")
                try await domain.shell(
                    """
                    # Whoever looks meanwhile sees the mount, or an error, and never the folder below.
                    while [ -e "$T/bare" ]; do
                        seen=$(ls "$M" 2> /dev/null) && [ -z "$seen" ] && echo bare >> "$T/seen"; true
                    done & looking=$!
                    "$P" restart "$M" --json | grep -q '"restarts":1'
                    within 20 '[ "$(cat "$M/file" 2> /dev/null)" = kept ]'; rm "$T/bare"; wait $looking
                    [ ! -e "$T/seen" ]
                    """)
                #expect(try await domain.status().transport == "io_uring")
            }
        }

        /// A pause after daemons that had served is not the start of the doubled ones after daemons that had not: three kills in
        /// a row made programs wait for over two seconds.
        /// > A daemon that dies again and again is started after pauses, up to 0.2 s while each one serves;
        @Test(.timeLimit(.minutes(1))) func daemonsThatAreKilledWhileTheyStartAreFollowedSoon() async throws {
            // Speaks to the holder as a daemon does (HolderProtocol.h): the letter says whether it serves before it ends.
            let daemon = """
                import os, socket, struct, sys
                count = int(os.environ["PROMISEFS_HOLDER"].split()[1])
                line = socket.socket(fileno=10)
                fate = "ssssffsse"[count]
                if fate == "s": line.send(struct.pack("I", 2))
                if fate == "e": line.send(struct.pack("I", 3))
                sys.exit(0 if fate == "e" else 5)
                """
            let holder = URL(fileURLWithPath: Machine.executable).deletingLastPathComponent().path + "/promisefs-holder"
            let result = try await runShell(
                "'\(holder)' / \"$(python3 -c 'import sys; print(sys.executable)')\" python3 -c '\(daemon)'", seconds: 50)
            let pauses = result.error.split(separator: "\n").compactMap { line in
                line.split(separator: " ").dropLast().last.flatMap { Int($0) }
            }
            #expect(result.status == 0 && pauses == [10, 20, 30, 40, 25, 50, 50, 60], "\(result.error)")
        }

        @Test(.timeLimit(.minutes(2))) func aForegroundMountIsHeldAndEndsOnASignalWithItsStatus() async throws {
            try await MountedDomain.with(options, mounts: false) { domain in
                // Relative paths are those of the shell, wherever the daemon runs.
                let command = domain.mountCommand.replacingOccurrences(of: "\"$P\" 'mount'", with: "\"$P\" mount --foreground")
                    .replacingOccurrences(of: domain.root + "/", with: "")
                try await domain.shell(
                    """
                    cd "$T/.."; \(command) > "$T/log" 2>&1 & daemon=$!
                    within 30 'mountpoint -q "$M"'; echo kept > "$M/file"
                    [ "$(cat /proc/$daemon/comm)" = promisefs-holde ]
                    kill -TERM $daemon; status=0; wait $daemon || status=$?; [ $status = 0 ] || { cat "$T/log"; false; }
                    not mountpoint -q "$M"
                    """)
                try await domain.remount()
                try await domain.shell("[ \"$(cat \"$M/file\")\" = kept ]")
            }
        }
    }
}
