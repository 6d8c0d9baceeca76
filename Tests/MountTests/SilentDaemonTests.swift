import Foundation
import Testing

extension MountSuites {
    /// A daemon that is stopped or stuck: whoever used its mount hung for good, as nothing had ended.
    @Suite(.enabled(if: Machine.canOutliveDaemon, "before Linux 6.9 the kernel sends no request again"))
    struct SilentDaemonTests {
        private var options: MountedDomain.Options {
            var options = MountedDomain.Options()
            options.arguments = ["--no-io-uring"]
            options.environment["PROMISEFS_PATIENCE"] = "6"
            return options
        }

        /// > A daemon that lives and serves nothing, as one that was stopped (SIGSTOP) or whose threads all hang, is
        @Test(.timeLimit(.minutes(2))) func aStoppedDaemonIsReportedAndReplacedAndNobodyHangs() async throws {
            try await MountedDomain.with(options) { domain in
                let daemon = try #require(domain.daemonProcesses().first)
                try await domain.shell(
                    "echo kept > \"$M/file\"; exec 3< \"$M/file\"; kill -STOP \(daemon); cat <&3; ls \"$M\"", seconds: 40)
                let status = try await domain.status()
                #expect(status.restarts == 1 && status.lastEnd == "silence")
                try await domain.shell(
                    """
                    grep 'the daemon is stopped' "$S/log/daemon.log"; grep 'is ended for a successor' "$S/log/daemon.log"
                    not kill -0 \(daemon); [ "$(cat "$M/file")" = kept ]
                    """)
            }
        }

        /// They waited until the holder had replaced it, most of a minute, or for a day.
        @Test(.timeLimit(.minutes(2))) func aCommandToAStoppedDaemonSaysSoWithinSeconds() async throws {
            var options = options
            options.environment["PROMISEFS_PATIENCE"] = "0"
            options.prepare = "echo x > \"$C/file\"; mkdir \"$C/folder\"; echo y > \"$C/folder/slow\""
            try await MountedDomain.with(options) { domain in
                let daemon = try #require(domain.daemonProcesses().first)
                try domain.setFaults(["delay=11s", "only=fetchContents"])
                try await domain.shell(
                    """
                    # What takes long goes on as long as the daemon answers.
                    ls -R "$M" > /dev/null; "$P" fetch "$M/folder/slow"; kill -STOP \(daemon)
                    silent() { rc=0; timeout 20 "$P" "$@" 2> "$T/$1" || rc=$?; [ $rc = 4 ] && grep -q 'not answer' "$T/$1"; }
                    all=()
                    for words in pending sync info evict fetch "sync --wait" "find TRUEPREDICATE"; do
                        set -- $words; silent $1 "$M" "${@:2}" & all+=($!)
                    done
                    PYTHONPATH="$R/clients/python" timeout 20 python3 - "$M" <<'PYTHON' & all+=($!)
                    import promisefs, sys
                    try:
                        promisefs.domains()[sys.argv[1].encode()].status(); sys.exit(1)
                    except promisefs.PromiseError as error:
                        sys.exit(error.exit_status != 4 or "not answer" not in str(error))
                    PYTHON
                    for one in "${all[@]}"; do wait $one; done; kill -CONT \(daemon); within 10 '"$P" pending "$M"'
                    """, seconds: 60)
            }
        }

        /// doctor and setup looked for themselves, and hung: nobody replaces this one.
        @Test(.timeLimit(.minutes(2)))
        func whoLooksAtTheMountOfAStoppedDaemonWithoutAHolderComesBack() async throws {
            var options = options
            options.arguments.append("--no-supervision")
            try await MountedDomain.with(options) { domain in
                let daemon = try #require(domain.daemonProcesses().first)
                try await domain.shell(
                    """
                    settings="$XDG_CONFIG_HOME/promisefs"; mkdir -p "$settings" "$M/inside"
                    printf '[domains.one]\\nprovider = "folder:%s"\\nmountpoint = "%s"\\nstate-dir = "%s"\\n' \\
                        "$M/inside" "$M/place" "$M/state" > "$settings/config.toml"
                    kill -STOP \(daemon)
                    rc=0; timeout 60 "$P" doctor --no-check > "$T/found" || rc=$?; [ $rc = 1 ]
                    grep -q "domain one: its mount point $M/place does not answer" "$T/found"
                    grep -q "domain one: its state folder $M/state does not answer" "$T/found"
                    rc=0; timeout 20 "$P" setup --yes --no-check --no-mount --provider "folder:$C" \\
                        --name two --mountpoint "$M" 2> "$T/said" || rc=$?
                    [ $rc = 4 ]; grep -q "$M does not answer" "$T/said"; kill -CONT \(daemon); ls "$M"
                    """, seconds: 100)
            }
        }

        /// Only the beginning of an answer had a limit: they waited for ever.
        @Test(.timeLimit(.minutes(2)))
        func whatIsToldAsItComesEndsWhenTheDaemonIsStopped() async throws {
            var options = options
            options.environment["PROMISEFS_PATIENCE"] = "0"
            options.prepare = "mkdir \"$C/folder\"; echo y > \"$C/folder/slow\""
            try await MountedDomain.with(options) { domain in
                let daemon = try #require(domain.daemonProcesses().first)
                try domain.setFaults(["delay=15s", "only=fetchContents"])
                try await domain.shell(
                    """
                    ls -R "$M" > /dev/null
                    silent() {
                        rc=0; timeout 45 "$P" "$@" > "$T/$1.out" 2> "$T/$1.said" || rc=$?
                        [ $rc = 4 ] && grep -q 'not answer' "$T/$1.said"
                    }
                    all=()
                    silent fetch "$M/folder/slow" & all+=($!)
                    silent find "$M" TRUEPREDICATE --live & all+=($!)
                    silent changes "$M" --since 0 --follow & all+=($!)
                    within 10 '[ -s "$T/find.out" ]'; within 10 '"$P" pending "$M" | grep -q slow'
                    sleep 1; kill -STOP \(daemon)
                    for one in "${all[@]}"; do wait $one; done
                    kill -CONT \(daemon); within 10 '"$P" pending "$M"'
                    """, seconds: 80)
            }
        }

        /// Also one that is stopped before it has ever served.
        @Test(.timeLimit(.minutes(2))) func aDaemonThatIsStoppedWhileItStartsIsNoMountThatWaitsForEver() async throws {
            let daemon = """
                import os, socket, struct, signal
                line = socket.socket(fileno=10)
                count = int(os.environ["PROMISEFS_HOLDER"].split()[1])
                line.send(struct.pack("I", 6))
                os.kill(os.getpid(), signal.SIGSTOP)
                """
            let holder = URL(fileURLWithPath: Machine.executable).deletingLastPathComponent().path + "/promisefs-holder"
            let result = try await runShell(
                "PROMISEFS_PATIENCE=6 '\(holder)' / \"$(python3 -c 'import sys; print(sys.executable)')\" python3 -c '\(daemon)'",
                seconds: 30)
            #expect(result.status == 137 && result.error.contains("is stopped"), "\(result.error)")
        }

        /// It had been asked longer ago than an end takes, and so a successor served on.
        @Test(.timeLimit(.minutes(2)))
        func aStoppedDaemonThatWasToldToEndHasNoSuccessor() async throws {
            let daemon = """
                import os, socket, struct, signal
                line = socket.socket(fileno=10)
                line.send(struct.pack("I", 2))
                if os.environ["PROMISEFS_HOLDER"].split()[1] == "0":
                    signal.signal(signal.SIGTERM, signal.SIG_IGN)
                    line.send(struct.pack("I", 6))
                    os.kill(os.getpid(), signal.SIGSTOP)
                line.send(struct.pack("I", 3))
                """
            let folder = URL(fileURLWithPath: Machine.executable).deletingLastPathComponent().path
            let result = try await runShell(
                """
                PROMISEFS_PATIENCE=24 '\(folder)/promisefs-holder' / \
                    "$(python3 -c 'import sys; print(sys.executable)')" python3 -c '\(daemon)' & holder=$!
                sleep 2; kill -TERM $holder; wait $holder
                """, seconds: 60)
            #expect(result.status == 137 && result.error.contains("is given up"), "\(result.error)")
        }

        /// Looks are counted, not time, so that what held up the holder as well counts as one.
        @Test(.timeLimit(.minutes(2))) func aMachineThatSleptOrIsBusyKeepsItsDaemon() async throws {
            try await MountedDomain.with(options) { domain in
                let daemon = try #require(domain.daemonProcesses().first)
                let holder = try #require(domain.daemonProcesses(of: "promisefs-holder").first)
                try await domain.shell(
                    """
                    kill -STOP \(holder) \(daemon); sleep 9; kill -CONT \(holder); kill -CONT \(daemon); sleep 2; ls "$M"
                    for n in 1 2 3 4 5 6 7 8 9 10 11 12; do timeout 9 sh -c 'while :; do :; done' & done; wait; ls "$M"
                    """, seconds: 60)
                #expect(try await domain.status().restarts == 0)
                #expect(domain.daemonProcesses() == [daemon])
            }
        }

        @Test(.timeLimit(.minutes(2))) func aDaemonInADebuggerIsLeftAlone() async throws {
            // As gdb does: PTRACE_SEIZE, and PTRACE_INTERRUPT of the first thread.
            let debugger = """
                import ctypes, os, sys, time
                library, process = ctypes.CDLL(None, use_errno=True), int(sys.argv[1])
                assert library.ptrace(0x4206, process, None, None) == 0, os.strerror(ctypes.get_errno())
                assert library.ptrace(0x4207, process, None, None) == 0
                os.kill(process, 19)
                time.sleep(10)
                """
            var options = options
            options.environment["DEBUGGER"] = debugger
            try await MountedDomain.with(options) { domain in
                let daemon = try #require(domain.daemonProcesses().first)
                try await domain.shell(
                    "python3 -c \"$DEBUGGER\" \(daemon); kill -CONT \(daemon); sleep 0.5; ls \"$M\"", seconds: 40)
                #expect(try await domain.status().restarts == 0)
                #expect(domain.daemonProcesses() == [daemon])
            }
        }
    }
}
