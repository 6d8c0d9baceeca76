import Foundation
import Testing

extension MountSuites {
    /// A provider that never answers holds up nobody for longer than the deadline, and nothing for good.
    @Suite struct HangTests {
        private var options: MountedDomain.Options {
            var options = MountedDomain.Options()
            options.arguments = ["--request-deadline", "1s"]
            options.prepare = """
                mkdir "$C/small" "$C/unlisted"; head -c 9000000 /dev/urandom > "$C/large"
                for n in 0 1 2 3 4 5 6 7 8 9; do
                    head -c 1000 /dev/urandom > "$C/small/$n"; mkdir "$C/unlisted/$n"; echo x > "$C/unlisted/$n/file"
                done
                """
            return options
        }

        private func listed(_ body: (MountedDomain) async throws -> Void) async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell("ls -l \"$M\" \"$M/small\" \"$M/unlisted\" > /dev/null")
                try await body(domain)
            }
        }

        /// A few calls wait twice, for two folders or for the content of two places: each of these has its own deadline.
        @Test(.timeLimit(.minutes(5)), arguments: Machine.isFullScale ? ["hang=true", "bandwidth=1"] : ["hang=true"])
        func noCallOutlastsItsDeadline(fault: String) async throws {
            try await listed { domain in
                try domain.setFaults([fault])
                let calls = try await domain.shell("python3 \"$W/waiting-calls.py\" \"$M\" --limit 20", seconds: 200)
                print(calls.output)
                try domain.setFaults([])
                try await domain.shell(
                    "within 60 'cmp -s \"$M/small/7\" \"$C/small/7\"'; cat \"$M/unlisted/8/file\"", seconds: 90)
            }
        }

        @Test(.timeLimit(.minutes(3))) func aReaderThatWaitsCanBeKilledAtOnce() async throws {
            var options = options
            options.arguments = ["--request-deadline", "2m"]
            try await MountedDomain.with(options) { domain in
                try await domain.shell("ls -l \"$M\" \"$M/small\" \"$M/unlisted\" > /dev/null")
                try domain.setFaults(["hang=true"])
                for command in ["cat \"$M/small/1\"", "tail -c 1000 \"$M/large\"", "ls \"$M/unlisted/1\""] {
                    let killed = try await domain.shell("timeout -s KILL 0.3 \(command)", status: 137)
                    #expect(killed.elapsed < .seconds(30), "\(command)")
                }
            }
        }

        /// Its content stayed on the disk until the next mount.
        @Test(.timeLimit(.minutes(2))) func aFileRemovedWhileItsOpenWaitedIsGoneForGood() async throws {
            try await listed { domain in
                try domain.setFaults(["hang=true"])
                try await domain.shell(
                    """
                    cat "$M/small/1" > /dev/null 2>&1 & reader=$!
                    sleep 0.5; rm "$M/small/1"; kill -KILL $reader; wait $reader || true
                    """)
                try domain.setFaults([])
                try await domain.synchronize()
                try await domain.shell("\"$P\" unmount \"$M\"; sleep 0.5")
                try await domain.remount()
                try await domain.shell("not grep 'recovered from an unclean end' \"$S/log/daemon.log\"")
            }
        }

        /// It was online for minutes, and each call waited to its own end.
        @Test(.timeLimit(.minutes(2))) func aSilentProviderIsSaidToBeAwayWithinSeconds() async throws {
            var options = options
            options.arguments = ["--request-deadline", "30s", "--poll-interval", "2s"]
            try await MountedDomain.with(options) { domain in
                try await domain.shell("ls -l \"$M\" \"$M/small\" > /dev/null")
                try domain.setFaults(["hang=true"])
                let noticed = try await domain.shell(
                    """
                    for n in 1 2 3; do not cat "$M/small/$n" 2> "$T/err.$n" & pids="${pids:-} $!"; done
                    for pid in $pids; do wait $pid; done; grep -q 'Network is down' "$T/err.1"
                    "$P" status "$M" | grep 'connection.*offline (the provider does not answer) since .*, next try at'
                    timeout 1 ls "$M/unlisted/2" && exit 1; timeout 1 cat "$M/small/4" && exit 1
                    timeout 30 "$P" fetch "$M/small"
                    """, seconds: 60, status: 4)
                #expect(noticed.text.contains("0 files here"))
                let looked = try await domain.shell("\"$P\" sync \"$M\"", status: 4)
                #expect(looked.error.contains("does not answer"))
                try domain.setFaults([])
                try await domain.shell("echo new > \"$C/new\"; within 10 '[ -e \"$M/new\" ]'")
                try await domain.shell("cmp \"$M/small/4\" \"$C/small/4\"; \"$P\" sync \"$M\"")
            }
        }

        /// It waited for ever for content that does not come, and counted what failed as here.
        @Test(.timeLimit(.minutes(2))) func aFetchThatGetsNothingEndsByTheDeadline() async throws {
            try await listed { domain in
                try domain.setFaults(["hang=true", "only=fetchContents"])
                let fetched = try await domain.shell("\"$P\" fetch \"$M/small\"", seconds: 40, status: 4)
                #expect(fetched.text.contains("0 files here"))
                #expect(fetched.error.contains("did not answer in time"))
            }
        }

        /// The kernel asks three times for a page that it could not read.
        @Test(.timeLimit(.minutes(2))) func aPageFaultWaitsOneDeadline() async throws {
            var options = options
            options.arguments = ["--request-deadline", "3s"]
            try await MountedDomain.with(options) { domain in
                try await domain.shell("ls -l \"$M\" > /dev/null")
                try domain.setFaults(["hang=true", "only=fetchContents"])
                let touched = try await domain.shell(
                    """
                    python3 -c '
                    import mmap, os, sys
                    file = os.open(sys.argv[1], os.O_RDONLY)
                    print(mmap.mmap(file, 0, prot=mmap.PROT_READ)[5000000])' "$M/large"
                    """, seconds: 30, status: 135)
                #expect(touched.elapsed < .seconds(9), "three deadlines")
            }
        }

        /// What suspend does to all processes (cgroups(7), the freezer).
        @Test(.enabled(if: Freezer.isThere, "no freezer that this user may use"), .timeLimit(.minutes(3)))
        func aReaderThatWaitsCanBeFrozen() async throws {
            try await listed { domain in
                try domain.setFaults(["hang=true"])
                try await domain.shell(
                    """
                    group=\(Freezer.folder)/promisefs-test-$$; mkdir "$group"
                    trap 'echo THAWED > "$group/freezer.state"; sleep 0.2; rmdir "$group"' EXIT
                    cat "$M/small/1" > /dev/null 2>&1 & reader=$!
                    echo $reader > "$group/tasks"; sleep 0.3
                    echo FROZEN > "$group/freezer.state"
                    within 5 '[ "$(cat '"$group"'/freezer.state)" = FROZEN ]'
                    echo THAWED > "$group/freezer.state"; not wait $reader
                    """, seconds: 30)
            }
        }

        /// It took the whole request deadline.
        @Test(.timeLimit(.minutes(2)))
        func aKnownDomainOfASilentProviderIsMountedAtOnce() async throws {
            var options = options
            options.arguments = ["--request-deadline", "20s"]
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    ls -l "$M/small" > /dev/null; cat "$M/small/1" > /dev/null; "$P" unmount "$M"
                    """)
                try domain.setFaults(["hang=true"])
                let mounted = try await domain.shell(
                    "\(domain.mountCommand); cmp \"$M/small/1\" \"$C/small/1\"")
                #expect(mounted.elapsed < .seconds(15))
                #expect(try await domain.status().connection == "offline")
                // Who wants something of it waits, as at any other time.
                try await domain.shell(
                    """
                    cmp "$M/small/2" "$C/small/2" & reader=$!
                    cat "$M/unlisted/2/file" > /dev/null & other=$!
                    sleep 0.5; : > "$PROMISEFS_PROVIDER_FAULTS"; wait $reader; wait $other
                    """)
                try await domain.shell("within 10 '\"$P\" status \"$M\" | grep -q online'")
            }
        }

        /// Nothing is known that could be shown.
        @Test(.timeLimit(.minutes(2)))
        func theFirstMountOfASilentProviderSaysThatItDoesNotAnswer() async throws {
            try await MountedDomain.with(options, mounts: false) { domain in
                try domain.setFaults(["hang=true"])
                let refused = try await domain.shell(domain.mountCommand, status: 4)
                #expect(refused.error.contains("did not answer"))
                try await domain.shell("not mountpoint -q \"$M\"")
            }
        }

        @Test(.timeLimit(.minutes(2)))
        func aDaemonOfASilentProviderIsReplacedAndUnmounted() async throws {
            var options = options
            options.arguments += ["--no-io-uring"]
            try await MountedDomain.with(options) { domain in
                try await domain.shell("ls -l \"$M/small\"; cat \"$M/small/1\" > /dev/null")
                try domain.setFaults(["hang=true"])
                try await domain.shell("cat \"$M/small/2\" > /dev/null 2>&1 & disown; sleep 0.3")
                try domain.killDaemon()
                try await domain.shell("timeout 20 cmp \"$M/small/1\" \"$C/small/1\"")
                let unmounted = try await domain.shell(
                    "sleep 2; \"$P\" unmount \"$M\"; not pgrep --full \"$S\"")
                #expect(unmounted.elapsed < .seconds(25))
            }
        }

        @Test(.timeLimit(.minutes(3))) func aMountWithWaitersIsDetached() async throws {
            try await listed { domain in
                try domain.setFaults(["hang=true"])
                let detached = try await domain.shell(
                    """
                    cat "$M/small/1" > /dev/null 2>&1 & reader=$!
                    sleep 0.2; "$P" unmount --lazy "$M" || [ $? = 7 ]
                    not mountpoint -q "$M"; not wait $reader
                    """, seconds: 40)
                #expect(detached.elapsed < .seconds(25))
                // Its daemon ends with the last program that had something open.
                try await domain.shell("within 20 'not pgrep --full \"$S\"'", seconds: 30)
            }
        }
    }

    /// Many files and many contenders use up nothing and block nobody.
    @Suite struct EnduranceTests {
        @Test(.timeLimit(.minutes(5))) func knownFilesTakeNoDescriptors() async throws {
            let count = Machine.isFullScale ? 30_000 : 3_000
            var options = MountedDomain.Options()
            options.prepare =
                "mkdir \"$C/many\"; cd \"$C/many\"; for n in $(seq \(count)); do printf x > $n; done"
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    "cd \"$M/many\"; seq \(count) | xargs cat | wc -c | grep -qx \(count); ls -l > /dev/null", seconds: 200)
                let daemon = try #require(domain.daemonProcesses().first)
                let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(daemon)/fd").count
                #expect(descriptors < 200)
            }
        }

        @Test(.timeLimit(.minutes(3))) func contendersForOneLockAllGetIt() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell(
                    """
                    echo 0 > "$M/count"; : > "$M/lock"
                    for process in 1 2 3 4; do
                        (for turn in $(seq 50); do
                            (flock 9; n=$(cat "$M/count"); echo $((n + 1)) > "$M/count") 9<> "$M/lock"
                        done) & pids="${pids:-} $!"
                    done
                    # One process, whether it has the lock by then or waits for it.
                    flock --no-fork "$M/lock" sleep 1000 & holder=$!
                    sleep 0.3; kill -KILL $holder
                    for pid in $pids; do wait $pid; done
                    [ "$(cat "$M/count")" = 200 ]
                    """, seconds: 60)
            }
        }

        /// In folders made on the mount, and in some that the provider has, which it tells of everything that happens in them.
        @Test(.timeLimit(.minutes(60)), arguments: ["true", "mkdir \"$C/\"f{0..7}"])
        func manyProgramsDoEverythingAtOnce(prepare: String) async throws {
            let seconds = Machine.isFullScale ? 1_800 : 8
            var options = MountedDomain.Options()
            options.prepare = prepare
            try await MountedDomain.with(options) { domain in
                try await domain.shell("ls -lR \"$M\" > /dev/null")
                let seed = Machine.seed ?? Int.random(in: 0..<1_000_000_000)
                let result = try await domain.shell(
                    """
                    python3 "$W/mixed-workload.py" "$M" "$C" --executable "$P" --seconds \(seconds) --seed \(seed) \
                        --processes \(Machine.isFullScale ? 16 : 6)
                    """, seconds: seconds + 400)
                print(result.output)
                try await domain.shell("\"$P\" verify \"$M\"", seconds: 60)
            }
        }
    }
}

/// The freezer of cgroups, version 1.
private enum Freezer {
    static let folder = "/sys/fs/cgroup/freezer"
    static let isThere = geteuid() == 0 && access(folder + "/tasks", W_OK) == 0
}
