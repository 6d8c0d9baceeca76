import Foundation
import Testing

extension MountSuites {
    /// > A mapping outlives its descriptor: what is written through a shared mapping is sent also when the file was closed
    @Suite struct MappingTests {
        private static let size = 20_000

        /// Maps a file that the provider has, closes it, and lets `body` say what happens meanwhile.
        private func whileMapped(
            _ arguments: [String], _ body: @escaping (MountedDomain) async throws -> Void
        ) async throws {
            var options = MountedDomain.Options()
            options.arguments = arguments
            options.prepare = "head -c \(Self.size) /dev/zero > \"$C/mapped\""
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    cat "$M/mapped" > /dev/null; mkdir "$T/signals"
                    python3 "$W/mapped-writer.py" "$M/mapped" "$T/signals" > "$T/log" 2>&1 & disown
                    within 30 '[ -e "$T/signals/mapped" ]' || { cat "$T/log"; false; }
                    """)
                try await body(domain)
            }
        }

        @Test(.timeLimit(.minutes(2)), arguments: [[], ["--no-passthrough"]])
        func whatIsWrittenThroughAMappingAfterItsDescriptorWasClosedIsSent(arguments: [String]) async throws {
            try await whileMapped(arguments) { domain in
                // Long enough for the close to be noted and for nothing to be on its way any more.
                try await domain.shell("sleep 2; touch \"$T/signals/write\" \"$T/signals/end\"")
                try await domain.shell("within 40 '[ \"$(head -c 12 \"$C/mapped\")\" = WRITTENAGAIN ]'", seconds: 60)
                try await domain.synchronize()
                try await domain.expectProviderEqualsMount()
            }
        }

        @Test(.timeLimit(.minutes(2))) func whatIsInAMappingStillIsSentBySync() async throws {
            try await whileMapped([]) { domain in
                try await domain.shell("sleep 2; touch \"$T/signals/write\"; within 30 '[ -e \"$T/signals/written\" ]'")
                try await domain.synchronize()
                try await domain.shell("[ \"$(head -c 7 \"$C/mapped\")\" = WRITTEN ]; touch \"$T/signals/end\"")
                try await domain.shell("within 40 '[ \"$(head -c 12 \"$C/mapped\")\" = WRITTENAGAIN ]'", seconds: 60)
            }
        }

        /// Nobody has it open, and it is in use all the same.
        @Test(.timeLimit(.minutes(2))) func aFileThatIsStillMappedIsNotEvicted() async throws {
            try await whileMapped([]) { domain in
                try await domain.shell("sleep 2; \"$P\" evict \"$M/mapped\" || true")
                try await domain.shell("touch \"$T/signals/write\" \"$T/signals/end\"")
                try await domain.shell("within 40 '[ \"$(head -c 12 \"$C/mapped\")\" = WRITTENAGAIN ]'", seconds: 60)
            }
        }

        @Test(.timeLimit(.minutes(3)), .enabled(if: Machine.canOutliveDaemon, "before Linux 6.9 no mount outlives its daemon"))
        func aMappingOutlivesItsDaemon() async throws {
            try await whileMapped(["--no-io-uring"]) { domain in
                try await domain.shell("sleep 2")
                try domain.killDaemon()
                try await domain.shell("ls \"$M\"; touch \"$T/signals/write\" \"$T/signals/end\"", seconds: 90)
                try await domain.shell("within 60 '[ \"$(head -c 12 \"$C/mapped\")\" = WRITTENAGAIN ]'", seconds: 90)
            }
        }
    }
}
