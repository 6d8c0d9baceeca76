import Foundation
import Testing

extension MountSuites {
    /// Processors are kept awake while requests come fast, and not a moment longer than needed.
    @Suite(.enabled(if: Machine.isRoot && access("/dev/cpu_dma_latency", R_OK | W_OK) == 0, "needs root and PM QoS"))
    struct LatencyTests {
        /// Asks for names that are not there, a request each, until the limit (µs) is 0, and prints it; then waits until it
        /// is something else.
        private static let script = """
            import os, struct, sys, time
            def limit():
                with open("/dev/cpu_dma_latency", "rb") as file:
                    return struct.unpack("i", file.read(4))[0]
            number, end = 0, time.monotonic() + 20
            while limit() != 0 and time.monotonic() < end:
                for _ in range(200):
                    number += 1
                    os.path.exists(f"{sys.argv[1]}/none-{number}")
            print(limit())
            while limit() == 0 and time.monotonic() < end:
                time.sleep(0.02)
            print("awake" if limit() == 0 else "asleep")
            """

        @Test(.timeLimit(.minutes(1)))
        func processorsAreKeptAwakeWhileManyRequestsComeAndSleepAfterwards() async throws {
            try await MountedDomain.with { domain in
                let result = try await domain.shell("python3 -c '\(Self.script)' \"$M\"")
                #expect(result.output == "0\nasleep\n")
            }
        }

        @Test(.timeLimit(.minutes(1)), arguments: [[], ["--no-latency-limit"]])
        func onlyADaemonThatMayKeepThemAwakeHasTheFileOpen(arguments: [String]) async throws {
            var options = MountedDomain.Options()
            options.arguments = arguments
            try await MountedDomain.with(options) { domain in
                let process = try #require(domain.daemonProcesses().first)
                let result = try await domain.shell("ls -l /proc/\(process)/fd | grep -c cpu_dma_latency || true")
                #expect(result.output == (arguments.isEmpty ? "1\n" : "0\n"))
            }
        }

        /// Or a close, which nobody waits for, is served before the program that closed the file goes on.
        @Test(
            .enabled(if: Machine.canUseRings, "needs FUSE over io_uring"),
            .timeLimit(.minutes(1)),
            arguments: [[], ["--no-latency-limit"]])
        func lanesAreBoundToAProcessorOnlyWhereProcessorsMaySleep(arguments: [String]) async throws {
            var options = MountedDomain.Options()
            options.arguments = ["--io-uring"] + arguments
            try await MountedDomain.with(options) { domain in
                let process = try #require(domain.daemonProcesses().first)
                let result = try await domain.shell(
                    """
                    for task in /proc/\(process)/task/*; do
                        if grep -q pfs-ring $task/comm; then taskset -p ${task##*/}; fi
                    done | sed 's/.*: //' | sort -u | wc -l
                    """)
                // With more processors than that a lane serves several of them, and is bound to none.
                let processors = ProcessInfo.processInfo.activeProcessorCount
                let bindings = arguments.isEmpty || processors > 16 ? 1 : processors
                #expect(result.output == "\(bindings)\n")
            }
        }
    }
}
