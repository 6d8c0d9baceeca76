import Foundation
import Testing

extension MountSuites {
    /// One clear sentence and the documented exit status for each mistake; nothing half-mounted, nothing lost.
    @Suite struct BadInputTests {
        struct Case: Sendable, CustomTestStringConvertible {
            let testDescription: String
            let script: String
            let status: Int32
            /// Part of the sentence.
            let says: String
            var needsRoot = false
        }

        static let options = "--state-dir \"$T/state\" --domain bad"

        static let cases: [Case] = [
            Case(
                testDescription: "unknown provider", script: "\"$P\" mount \(options) nosuch:/x \"$M\"", status: 2, says: "nosuch"
            ),
            Case(
                testDescription: "room for few open files, of which only the log told",
                script: "ulimit -n 64; \"$P\" mount \(options) folder:$C \"$M\"", status: 1, says: "ulimit -n"),
            Case(
                testDescription: "files that may not grow, of which only the log told",
                script: "ulimit -f 100; \"$P\" mount \(options) folder:$C \"$M\"", status: 1, says: "ulimit -f"),
            Case(testDescription: "unknown command", script: "\"$P\" frobnicate", status: 2, says: "frobnicate"),
            Case(testDescription: "unknown option", script: "\"$P\" mount --frobnicate \"$M\"", status: 2, says: "frobnicate"),
            Case(
                testDescription: "missing folder", script: "\"$P\" mount \(options) folder:$T/missing \"$M\"", status: 1,
                says: "missing"),
            Case(
                testDescription: "provider is a file", script: "touch \"$T/f\"; \"$P\" mount \(options) folder:$T/f \"$M\"",
                status: 1,
                says: "folder"),
            Case(
                testDescription: "mount point is not empty", script: "touch \"$M/x\"; \"$P\" mount \(options) folder:$C \"$M\"",
                status: 1, says: "empty"),
            Case(
                testDescription: "mount point is a file", script: "touch \"$T/f\"; \"$P\" mount \(options) folder:$C \"$T/f\"",
                status: 1, says: "director"),
            Case(
                testDescription: "mount point is missing", script: "\"$P\" mount \(options) folder:$C \"$T/none\"", status: 1,
                says: "none"),
            Case(
                testDescription: "cache limit that is no size",
                script: "\"$P\" mount \(options) --cache-limit lots folder:$C \"$M\"", status: 2, says: "lots"),
            Case(
                testDescription: "unknown option with a value",
                script: "\"$P\" mount \(options) --cache-limt 3G folder:$C \"$M\"", status: 2,
                says: "Did you mean '--cache-limit'"),
            Case(
                testDescription: "unknown option where operands are missing", script: "\"$P\" unmount --alll", status: 2,
                says: "Did you mean '--all'"),
            Case(
                testDescription: "a word that names nothing", script: "\"$P\" status nosuch", status: 3,
                says: "no domain of this name"),
            Case(
                testDescription: "help of an unknown command, which was everybody's help",
                script: "\"$P\" frobnicate --help", status: 2, says: "'frobnicate' is no command"),
            Case(
                testDescription: "a user without a name",
                script: """
                    chmod 755 "$T/.." "$T" "$C"; cp "$P" "$T/promisefs"; mkdir "$T/run" "$T/states"
                    chown 54321 "$T/run" "$T/states" "$M"; mknod "$T/fuse" c 10 229; chmod 666 "$T/fuse"
                    exec unshare --mount bash -c 'mount --bind "$T/fuse" /dev/fuse; XDG_RUNTIME_DIR="$T/run" exec setpriv \
                        --reuid=54321 --regid=54321 --clear-groups \
                        "$T/promisefs" mount --state-dir "$T/states/s" --domain bad folder:$C "$M"'
                    """, status: 5, says: "user 54321 has no name", needsRoot: true),
            Case(
                testDescription: "sync without a domain, which was 0 without a look", script: "\"$P\" sync --wait", status: 3,
                says: "no domain is mounted"),
            Case(
                testDescription: "a server that refuses connections, at a name with several addresses",
                script: "\"$P\" mount \(options) webdav+http://localhost:1/ \"$M\"", status: 4,
                says: "localhost:1 cannot be reached: Connection refused"),
            Case(testDescription: "status of another path", script: "\"$P\" status /usr", status: 3, says: "/usr"),
            Case(testDescription: "info of another path", script: "\"$P\" info /usr", status: 3, says: "/usr"),
            Case(testDescription: "unmount of another path", script: "\"$P\" unmount /usr", status: 3, says: "/usr"),
            Case(
                testDescription: "no /dev/fuse",
                script: """
                    unshare --mount bash -c 'mount -t tmpfs none /dev; mknod -m 666 /dev/null c 1 3
                    mknod -m 666 /dev/urandom c 1 9
                    exec "$P" mount \(options) folder:$C "$M"'
                    """, status: 1, says: "/dev/fuse", needsRoot: true),
            Case(
                testDescription: "a state folder of another user",
                script: "mkdir \"$T/state\"; chown 65534 \"$T/state\"; \"$P\" mount \(options) folder:$C \"$M\"",
                status: 5, says: "belongs to another user", needsRoot: true),
            Case(
                testDescription: "a state folder that everybody may write",
                script: "mkdir -m 777 \"$T/state\"; \"$P\" mount \(options) folder:$C \"$M\"", status: 5,
                says: "written by everybody"),
            Case(
                testDescription: "a configuration that everybody may write",
                script: """
                    echo '[domain.a]' > "$T/c"; chmod 666 "$T/c"
                    PROMISEFS_CONFIG="$T/c" "$P" mount \(options) folder:$C "$M"
                    """, status: 5, says: "written by everybody"),
            Case(
                testDescription: "a configuration of another user",
                script: """
                    echo '[domain.a]' > "$T/c"; chown 65534 "$T/c"
                    PROMISEFS_CONFIG="$T/c" "$P" mount \(options) folder:$C "$M"
                    """, status: 5, says: "belongs to another user", needsRoot: true),
            Case(
                testDescription: "credentials of another user",
                script: """
                    mkdir -p "$T/config/promisefs"; echo '[127.0.0.1]' > "$T/config/promisefs/credentials"
                    chmod 600 "$T/config/promisefs/credentials"; chown 65534 "$T/config/promisefs/credentials"
                    XDG_CONFIG_HOME="$T/config" "$P" mount \(options) webdav+http://127.0.0.1:9/x "$M"
                    """, status: 2, says: "belongs to another user", needsRoot: true),
            Case(
                testDescription: "no permission for the state folder",
                script: """
                    chmod 755 "$T/.." "$T" "$C"; cp "$P" "$T/promisefs"; mkdir "$T/run"; chown 65534 "$T/run" "$M"
                    XDG_RUNTIME_DIR="$T/run" setpriv --reuid=65534 --regid=65534 --clear-groups \
                        "$T/promisefs" mount --state-dir "$T/state" --domain bad folder:$C "$M"
                    """, status: 5, says: "ermi", needsRoot: true),
        ]

        @Test(.timeLimit(.minutes(2)), arguments: cases)
        func aMistakeIsAnsweredWithOneSentenceAndAnExitStatus(mistake: Case) async throws {
            if mistake.needsRoot && !Machine.isRoot { return }
            try await MountedDomain.with(mounts: false) { domain in
                let result = try await domain.shell(mistake.script, seconds: 30, status: mistake.status)
                let lines = result.errorText.split(separator: "\n")
                #expect(!lines.isEmpty && result.errorText.localizedCaseInsensitiveContains(mistake.says), "\(result.error)")
                // A usage error is followed by the usage.
                #expect(lines.count == 1 || mistake.status == 2, "\(result.error)")
                try await domain.shell("not grep -q \" $T\\| $M\" /proc/self/mountinfo")
                #expect(domain.daemonProcesses().isEmpty)
            }
        }

        /// The prompt came behind what was left of it.
        @Test(.timeLimit(.minutes(2))) func anInterruptedFetchLeavesNoHalfOfABar() async throws {
            var options = MountedDomain.Options()
            options.prepare = "for n in $(seq 60); do echo $n > \"$C/$n\"; done"
            try await MountedDomain.with(options) { domain in
                try await domain.shell("ls \"$M\"")
                try domain.setFaults(["delay=500ms"])
                try await domain.shell(
                    """
                    TERM=xterm python3 - <<'END'
                    import os, pty, signal, time
                    process, terminal = pty.fork()
                    if process == 0:
                        os.execv(os.environ["P"], [os.environ["P"], "fetch", os.environ["M"]])
                    shown, end = b"", time.time() + 20
                    while b"files" not in shown and time.time() < end:
                        shown += os.read(terminal, 65536)
                    os.write(terminal, b"\\x03")
                    try:
                        while more := os.read(terminal, 65536):
                            shown += more
                    except OSError:
                        pass
                    status = os.waitpid(process, 0)[1]
                    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGINT, (status, shown)
                    assert b"files" in shown and shown.endswith(b"\\r\\x1b[K"), shown[-80:]
                    END
                    """, seconds: 40)
            }
        }

        @Test(.timeLimit(.minutes(2))) func aStateFolderOrMountPointInUseIsRefusedAndTheFirstMountGoesOn() async throws {
            var options = MountedDomain.Options()
            options.prepare = "echo x > \"$C/x\"; mkdir \"$T/other\" \"$T/otherstate\""
            try await MountedDomain.with(options) { domain in
                let state = try await domain.shell(
                    "\"$P\" mount --state-dir \"$S\" --domain other folder:$C \"$T/other\"", seconds: 30, status: 1)
                #expect(state.errorText.split(separator: "\n").count == 1)
                let place = try await domain.shell(
                    "\"$P\" mount --state-dir \"$T/otherstate\" --domain other folder:$C \"$M\"", seconds: 30, status: 1)
                #expect(place.errorText.split(separator: "\n").count == 1 && place.error.contains("mounted"))
                try await domain.shell("[ \"$(cat \"$M/x\")\" = x ]; not mountpoint -q \"$T/other\"")
            }
        }

        /// > A full local disk is `ENOSPC`.
        @Test(.timeLimit(.minutes(3)), .enabled(if: Machine.isRoot, "a small disk can be made by root only"))
        func aFullDiskFailsTheWriteAndLosesNothing() async throws {
            var options = MountedDomain.Options()
            options.prepare = """
                mount -t tmpfs -o size=48M,mode=700 none "$S"
                head -c 20M /dev/urandom > "$C/remote"; head -c 100M /dev/urandom > "$C/too large"
                """
            try await MountedDomain.with(options) { domain in
                try domain.setFaults(["fail=1", "only=create"])
                try await domain.shell("head -c 8M /dev/urandom > \"$T/kept\"; cp \"$T/kept\" \"$M/kept\"")
                let full = try await domain.shell("head -c 80M /dev/zero > \"$M/large\"", status: 1)
                #expect(full.error.contains("No space left on device"))
                try await domain.shell(
                    "cmp \"$T/kept\" \"$M/kept\"; rm \"$M/large\"; within 20 'cmp \"$M/remote\" \"$C/remote\"'")
                // What was fetched is given up again for what follows, so this may even succeed.
                try await domain.shell("cat \"$M/too large\" > /dev/null || true")
                try domain.setFaults([])
                try await domain.shell("\"$P\" evict \"$M/remote\"; echo small > \"$M/small\"; cmp \"$T/kept\" \"$M/kept\"")
                try await domain.synchronize()
                try await domain.shell("cmp \"$T/kept\" \"$C/kept\"; [ \"$(cat \"$C/small\")\" = small ]; [ ! -e \"$C/large\" ]")
            }
        }

        /// While less than 3 % of the disk is free, what the provider has goes by itself.
        @Test(.timeLimit(.minutes(2)), .enabled(if: Machine.isRoot, "a small disk can be made by root only"))
        func aDiskThatFillsUpGetsRoomBack() async throws {
            var options = MountedDomain.Options()
            options.prepare = """
                mount -t tmpfs -o size=100M,mode=700 none "$S"
                for n in 1 2 3 4 5 6; do head -c 8M /dev/urandom > "$C/$n"; done
                """
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    free() { df --output=avail -B1 "$S" | tail -n 1; }
                    for n in 1 2 3 4 5 6; do cmp "$M/$n" "$C/$n"; done
                    head -c $(( $(free) - 1000000 )) /dev/zero > "$S/somebody else's"; [ "$(free)" -lt 3000000 ]
                    within 30 'echo $RANDOM > "$C/news"; cat "$M/news" > /dev/null; [ "$(free)" -gt 3000000 ]'
                    rm "$S/somebody else's"; for n in 1 2 3 4 5 6; do cmp "$M/$n" "$C/$n"; done
                    """)
            }
        }

        @Test(.timeLimit(.minutes(2)), .enabled(if: Machine.isRoot, "another user can be played by root only"))
        func anOrdinaryUserMountsWithoutPassthrough() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                // In a mount namespace of its own, with a /dev/fuse as distributions set it up.
                try await domain.shell(
                    """
                    cp "$P" "$T/promisefs"; mknod "$T/fuse" c 10 229; chmod 666 "$T/fuse"; echo remote > "$C/file"
                    chmod 755 "$T/.." ; chown -R 65534:65534 "$T" "$C" "$S" "$M" "$HOME" "$XDG_RUNTIME_DIR"
                    unshare --mount bash -c '
                        set -e; mount --bind "$T/fuse" /dev/fuse
                        cd "$T"; export P="$T/promisefs"
                        as() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
                        as "$P" mount --state-dir "$S" --domain user --upload-delay 200ms "folder:$C" "$M"
                        [ "$(as cat "$M/file")" = remote ]; as sh -c "echo mine > \\"$M/mine\\""
                        as "$P" sync --wait "$M"; [ "$(cat "$C/mine")" = mine ]
                        as "$P" status --json "$M"
                        as "$P" unmount "$M"' > "$T/out"
                    tr -d ' ' < "$T/out" | grep -q '"hasPassthrough":false'
                    """)
            }
        }
    }
}
