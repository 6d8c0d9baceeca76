import Foundation
import Testing

extension MountSuites {
    /// The provider's folder is on a disk that hangs, as one on a network does: another mount,
    /// whose daemon is stopped. A call there cannot even be ended with its process once that daemon
    /// has read it.
    @Suite(.enabled(if: Machine.canOutliveDaemon, "before Linux 6.9 no daemon is replaced"))
    struct HangingDiskTests {
        private func nested(
            _ body: (_ disk: Disk, _ domain: MountedDomain) async throws -> Void
        ) async throws {
            var outer = MountedDomain.Options()
            outer.arguments = ["--no-io-uring"]
            outer.prepare = """
                mkdir "$C/sub"; echo here > "$C/sub/here"; head -c 3000 /dev/urandom > "$C/sub/there"
                """
            try await MountedDomain.with(outer) { outer in
                try await outer.shell("ls \"$M/sub\"")
                var inner = MountedDomain.Options()
                inner.arguments = ["--no-io-uring", "--poll-interval", "1h"]
                inner.cloud = outer.mount + "/sub"
                let disk = Disk(domain: outer, process: try #require(outer.daemonProcesses().first))
                // Whatever happens, or nothing could be removed.
                defer { disk.goOn() }
                try await MountedDomain.with(inner) { inner in
                    defer { disk.goOn() }
                    try await inner.shell("cat \"$M/here\" > /dev/null; ls -l \"$M\" > /dev/null")
                    try await body(disk, inner)
                    disk.goOn()
                    try outer.setFaults([])
                }
            }
        }

        private struct Disk {
            let domain: MountedDomain
            let process: pid_t

            func hang() { kill(process, SIGSTOP) }
            func goOn() { kill(process, SIGCONT) }
        }

        /// Has a thread of the inner daemon wait for what the outer one has read and does not
        /// answer: nothing ends that.
        private func holdAThread(_ disk: Disk, _ domain: MountedDomain) async throws {
            try disk.domain.setFaults(["hang=true", "only=fetchContents"])
            try await domain.shell(
                """
                waiting="/sys/fs/fuse/connections/$(stat -c %d '\(disk.domain.mount)')/waiting"
                (cat "$M/there" > "$T/there"; touch "$T/read") > /dev/null 2>&1 & disown
                [ ! -r "$waiting" ] || within 20 '[ "$(cat "$waiting")" -gt 0 ]'; sleep 1
                """)
            disk.hang()
        }

        /// > The daemon of a mount whose provider is silent
        @Test(.timeLimit(.minutes(2)))
        func aDaemonWhoseFolderHangsIsReplacedAndServesWhatIsHere() async throws {
            try await nested { disk, domain in
                disk.hang()
                try domain.killDaemon()
                try await domain.shell(
                    "[ \"$(cat \"$M/here\")\" = here ]; echo new > \"$M/new\"", seconds: 20)
                disk.goOn()
                try await domain.synchronize()
                try await domain.shell(
                    "cmp \"$M/there\" \"$C/there\"; [ \"$(cat \"$C/new\")\" = new ]")
                #expect(try await domain.status().connection == "online")
            }
        }

        @Test(.timeLimit(.minutes(2)))
        func aThreadThatNothingEndsHoldsUpNoSuccessor() async throws {
            try await nested { disk, domain in
                try await holdAThread(disk, domain)
                let old = try #require(domain.daemonProcesses().first)
                // The index's transaction is open when the daemon dies.
                try await domain.shell("echo last > \"$M/last\"")
                try domain.killDaemon()
                try await domain.shell(
                    "[ \"$(cat \"$M/here\") $(cat \"$M/last\")\" = 'here last' ]", seconds: 20)
                #expect(kill(old, 0) == 0, "the old one is still there, or nothing was shown")
                #expect(try await domain.status().restarts == 1)
                try disk.domain.setFaults([])
                disk.goOn()
                try await domain.shell(
                    "within 30 '[ -e \"$T/read\" ]'; cmp \"$T/there\" \"$C/there\"", seconds: 40)
                try await domain.synchronize()
                try await domain.shell("[ \"$(cat \"$C/last\")\" = last ]; \"$P\" verify \"$M\"")
            }
        }

        @Test(.timeLimit(.minutes(2))) func aThreadThatNothingEndsHoldsUpNoUnmount() async throws {
            try await nested { disk, domain in
                try await holdAThread(disk, domain)
                let unmounted = try await domain.shell(
                    """
                    pkill -KILL --full "cat $M/there"
                    "$P" unmount "$M"; not mountpoint -q "$M"
                    """)
                #expect(unmounted.elapsed < .seconds(25))
                #expect(domain.daemonProcesses(of: "promisefs-holder").isEmpty)
                // What is left of the old daemon is in nobody's way.
                let mounted = try await domain.shell(
                    "\(domain.mountCommand); [ \"$(cat \"$M/here\")\" = here ]")
                #expect(mounted.elapsed < .seconds(20))
            }
        }

        /// It took the whole request deadline, and a command that looked at the folder never ended.
        @Test(.timeLimit(.minutes(2)))
        func aKnownDomainOfAHangingFolderIsMountedAtOnce() async throws {
            try await nested { disk, domain in
                try await domain.shell("\"$P\" unmount \"$M\"")
                disk.hang()
                let mounted = try await domain.shell(
                    "\(domain.mountCommand); [ \"$(cat \"$M/here\")\" = here ]")
                #expect(mounted.elapsed < .seconds(20), "the request deadline is 30 s")
                #expect(try await domain.status().connection == "offline")
                let unmounted = try await domain.shell(
                    "\"$P\" unmount \"$M\"; not pgrep --full \"$S\"")
                #expect(unmounted.elapsed < .seconds(25))
            }
        }
    }
}
