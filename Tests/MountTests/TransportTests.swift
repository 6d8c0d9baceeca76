import Foundation
import Testing

extension MountSuites {
    /// How requests come from the kernel: by the device, or by rings where they are asked for. What a mount does must not
    /// depend on it, so all other suites run with either (`PROMISEFS_TRANSPORT=io_uring`).
    @Suite struct TransportTests {
        enum Transport: String, Sendable, CaseIterable {
            case device
            case rings = "io_uring"

            /// Those that this machine and this run permit.
            static let usable = allCases.filter {
                $0 == .device || Machine.canUseRings
            }
        }

        private func options(_ transport: Transport, _ arguments: [String] = []) -> MountedDomain.Options {
            var options = MountedDomain.Options()
            options.arguments = [transport == .device ? "--no-io-uring" : "--io-uring"] + arguments
            return options
        }

        @Test(.timeLimit(.minutes(1)), arguments: Transport.usable)
        func theStatusNamesTheTransportAndWhyItIsTheDevice(transport: Transport) async throws {
            try await MountedDomain.with(options(transport)) { domain in
                try await domain.shell("echo a > \"$M/a\"; [ \"$(cat \"$M/a\")\" = a ]")
                let status = try await domain.status()
                #expect(status.transport == transport.rawValue)
                #expect(status.transportMessage == nil)
                #expect(status.requests["create"] == 1, "\(status.requests)")
            }
        }

        @Test(
            .timeLimit(.minutes(1)),
            .enabled(if: Machine.isRoot && Machine.canUseRings, "needs root and rings"))
        func aMountMadeWhileRingsAreSwitchedOffUsesTheDeviceAndSaysHow() async throws {
            try await MountedDomain.with(options(.rings), mounts: false) { domain in
                try await domain.shell(
                    "echo N > /sys/module/fuse/parameters/enable_uring; \(domain.mountCommand)"
                        + "; echo Y > /sys/module/fuse/parameters/enable_uring; echo a > \"$M/a\"; cat \"$M/a\"")
                let status = try await domain.status()
                #expect(status.transport == "device")
                #expect(status.transportMessage?.contains("enable_uring") ?? false)
            }
        }

        /// io_uring itself is refused: by a seccomp filter in containers, by this setting here.
        @Test(
            .timeLimit(.minutes(1)),
            .enabled(if: Machine.isRoot && Machine.canUseRings, "needs root and rings"))
        func aMountWhereRingsCannotBeMadeUsesTheDevice() async throws {
            try await MountedDomain.with(options(.rings), mounts: false) { domain in
                try await domain.shell(
                    """
                    before=$(cat /proc/sys/kernel/io_uring_disabled); echo 2 > /proc/sys/kernel/io_uring_disabled
                    \(domain.mountCommand) || true
                    echo $before > /proc/sys/kernel/io_uring_disabled
                    echo a > "$M/a"; [ "$(cat "$M/a")" = a ]
                    """)
                let status = try await domain.status()
                #expect(status.transport == "device")
                #expect(status.transportMessage?.contains("io_uring_disabled") ?? false)
            }
        }

        @Test(.timeLimit(.minutes(3)), arguments: Transport.usable)
        func hundredsOfRequestsThatWaitForTheProviderHoldNobodyUp(transport: Transport) async throws {
            var options = options(transport, ["--request-deadline", "60s"])
            options.prepare = """
                mkdir "$C/slow" "$C/other"; for n in $(seq 300); do echo $n > "$C/slow/$n"; done; echo x > "$C/other/x"
                """
            try await MountedDomain.with(options) { domain in
                try await domain.shell("ls -l \"$M\" \"$M/slow\" \"$M/other\" > /dev/null")
                try domain.setFaults(["hang=true"])
                try await domain.shell(
                    """
                    for n in $(seq 300); do cat "$M/slow/$n" > "$T/out-$n" 2> /dev/null & done; disown -a
                    within 30 '[ "$(pgrep --count --full "^cat $M/slow/")" = 300 ]'; sleep 1
                    """, seconds: 60)
                let local = try await domain.shell(
                    """
                    for n in 1 2 3 4 5 6 7 8; do
                        for cpu in $(seq 0 $(($(nproc) - 1))); do
                            taskset --cpu-list $cpu stat "$M/missing $n $cpu" > /dev/null 2>&1 || true
                            taskset --cpu-list $cpu sh -c "echo $n > '$M/local $n $cpu'; cat '$M/local $n $cpu' > /dev/null"
                        done
                        ls -l "$M/other" > /dev/null
                    done
                    """, seconds: 50)
                #expect(local.elapsed < .seconds(40), "the request deadline is 60 s")
                try domain.setFaults([])
                try await domain.shell(
                    """
                    within 60 '! pgrep --full "^cat $M/slow/" > /dev/null'
                    for n in $(seq 300); do [ "$(cat "$M/slow/$n")" = "$n" ]; done
                    """, seconds: 90)
                // The entries that waited serve again.
                try await domain.shell("for n in $(seq 300); do stat \"$M/none $n\" > /dev/null 2>&1 || true; done")
            }
        }

        /// By a ring the interruption takes another way than its request, and may overtake it.
        @Test(.timeLimit(.minutes(2)), arguments: Transport.usable)
        func aSignalEndsAWaitingRequestWheneverItComes(transport: Transport) async throws {
            var options = options(transport, ["--request-deadline", "100s"])
            options.prepare = "for n in $(seq 200); do echo $n > \"$C/$n\"; done"
            try await MountedDomain.with(options) { domain in
                try await domain.shell("ls -l \"$M\" > /dev/null")
                try domain.setFaults(["hang=true"])
                let ended = try await domain.shell(
                    """
                    for round in 1 2; do
                        for n in $(seq 200); do
                            timeout -s INT 0.0$((RANDOM % 9 + 1)) cat "$M/$n" > /dev/null 2>&1 & pids="${pids:-} $!"
                        done
                        for pid in $pids; do not wait $pid; done; pids=
                    done
                    """, seconds: 80)
                #expect(ended.elapsed < .seconds(60), "the request deadline is 100 s")
                try domain.setFaults([])
                try await domain.shell("for n in $(seq 200); do [ \"$(cat \"$M/$n\")\" = $n ]; done")
            }
        }

        /// The kernel cannot use the line of a folder that it still has, in use, at another place, while something moves from
        /// one folder to another (__d_unalias in fs/dcache.c). It then sends a FORGET that its caller waits for, who cannot be
        /// killed: the connection is aborted when the listing has not ended.
        @Test(
            .timeLimit(.minutes(2)), .enabled(if: Machine.isRoot, "connections are aborted by root"), arguments: Transport.usable)
        func aListingWithALineThatTheKernelCannotUseEnds(transport: Transport) async throws {
            var options = options(transport, ["--request-deadline", "100s"])
            options.prepare = "mkdir -p \"$C/from/moved\" \"$C/to\" \"$C/one\" \"$C/unlisted\"; echo x > \"$C/one/file\""
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    [ -e /sys/fs/fuse/connections/0 ] || mount -t fusectl none /sys/fs/fuse/connections 2> /dev/null || true
                    connection=/sys/fs/fuse/connections/$(stat -c %d "$M")
                    # With a pause, or this would be a walk, and the last folder listed ahead of it.
                    ls -l "$M" "$M/from" > /dev/null; sleep 2.5; ls -l "$M/to" "$M/one" > /dev/null
                    exec 9< "$M/from/moved"
                    mv "$C/from/moved" "$C/to/moved"; within 30 'not stat "$M/from/moved"'
                    echo hang=true > "$PROMISEFS_PROVIDER_FAULTS"
                    python3 -c 'import os, sys; os.rename(*sys.argv[1:])' "$M/one/file" "$M/unlisted/file" & renaming=$!
                    waits() { [ "$(cat $connection/waiting)" -gt 0 ]; }
                    within 20 'waits && sleep 0.2 && waits'
                    ls "$M/to" > "$T/listing" 2>&1 & listing=$!
                    within 20 'not kill -0 $listing' || { echo 1 > $connection/abort; false; }
                    wait $listing; grep -qx moved "$T/listing"
                    not stat "$M/to/moved" 2> "$T/problem"; grep -q Stale "$T/problem"; kill -0 $renaming
                    : > "$PROMISEFS_PROVIDER_FAULTS"; wait $renaming; [ "$(cat "$M/unlisted/file")" = x ]
                    """, seconds: 60)
            }
        }

        enum Ending: String, Sendable, CaseIterable { case lazyUnmount, abort, signals }

        static let endings = Transport.usable.flatMap { transport in Ending.allCases.map { (transport, $0) } }

        @Test(.timeLimit(.minutes(3)), .enabled(if: Machine.isRoot, "connections are aborted by root"), arguments: endings)
        func aMountThatEndsWhileRequestsWaitEndsTheDaemon(transport: Transport, ending: Ending) async throws {
            var options = options(transport)
            options.prepare = "for n in $(seq 40); do echo $n > \"$C/$n\"; done"
            try await MountedDomain.with(options) { domain in
                try await domain.shell("ls -l \"$M\" > /dev/null")
                try domain.setFaults(["hang=true"])
                try await domain.shell(
                    """
                    [ -e /sys/fs/fuse/connections/0 ] || mount -t fusectl none /sys/fs/fuse/connections 2> /dev/null || true
                    number=$(stat -c %d "$M")
                    for n in $(seq 40); do (cat "$M/$n" > /dev/null 2>&1; echo $? > "$T/end-$n") & done; disown -a
                    within 20 '[ "$(pgrep --count --full "^cat $M/")" = 40 ]'; sleep 0.5
                    case \(ending.rawValue) in
                        lazyUnmount) umount -l "$M"; pkill -INT --full "^cat $M/" ;;
                        abort) echo 1 > /sys/fs/fuse/connections/$number/abort ;;
                        signals) "$P" unmount --lazy "$M" || true; pkill -KILL --full "^cat $M/" ;;
                    esac
                    within 20 '! pgrep --full "^cat $M/" > /dev/null'
                    """, seconds: 60)
                for _ in 0..<200 where !domain.daemonProcesses().isEmpty { try await Task.sleep(for: .milliseconds(100)) }
                #expect(domain.daemonProcesses().isEmpty, "the daemon is still there")
                try await domain.shell("not mountpoint -q \"$M\"")
                try domain.setFaults([])
                try await domain.remount()
                try await domain.shell("for n in $(seq 40); do [ \"$(cat \"$M/$n\")\" = $n ]; done")
            }
        }

        /// Every reader gets the bytes of its own file, whichever thread answers.
        @Test(.timeLimit(.minutes(3)), arguments: Transport.usable)
        func answersOfManyThreadsReachTheirOwnRequests(transport: Transport) async throws {
            var options = options(transport, ["--no-passthrough"])
            options.prepare = "for n in $(seq 24); do head -c $((n * 150000)) /dev/urandom > \"$C/$n\"; done"
            try await MountedDomain.with(options) { domain in
                try domain.setFaults(["delay=50ms"])
                try await domain.shell(
                    """
                    for round in 1 2; do
                        for n in $(seq 24); do cmp "$C/$n" "$M/$n" & pids="${pids:-} $!"; done
                        for pid in $pids; do wait $pid; done; pids=
                    done
                    for n in $(seq 24); do (cp "$M/$n" "$M/copy $n"; cmp "$C/$n" "$M/copy $n") & pids="${pids:-} $!"; done
                    for pid in $pids; do wait $pid; done
                    """, seconds: 120)
            }
        }
    }
}
