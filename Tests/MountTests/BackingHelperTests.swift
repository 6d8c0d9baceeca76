import Testing

extension MountSuites {
    /// The program that has CAP_SYS_ADMIN and is started by whoever wants.
    @Suite(.enabled(if: Machine.hasKernelPassthrough, "without passthrough nothing is registered")) struct BackingHelperTests {
        /// It took a descriptor that was open for reading only, and one of a file that may only be appended to: the kernel opens
        /// what is registered again, for writing, and asks nobody. And each further helper had a count of its own.
        @Test(.timeLimit(.minutes(2))) func onlyContentFilesOfTheUserAreRegistered() async throws {
            try await MountedDomain.with { domain in
                guard try await domain.status().hasPassthrough else { return }
                let holder = try #require(domain.daemonProcesses(of: "promisefs-holder").first)
                let result = try await domain.shell(
                    """
                    unshare --mount --propagation private python3 "$W/attack-backing-helper.py" \
                        "$(dirname "$P")/promisefs-backing" \(holder) "$T"
                    """, seconds: 100)
                #expect(result.text.split(separator: " ").first.flatMap { Int($0) } ?? 0 >= 50, "\(result.text)")
            }
        }
    }
}
