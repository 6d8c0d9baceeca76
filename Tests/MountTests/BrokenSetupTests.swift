import Foundation
import Testing

extension MountSuites {
    /// `doctor` on set-ups that were broken on purpose, in copies of the machine's folders.
    @Suite(.enabled(if: getuid() == 0 && Machine.hasOverlay, "needs root and overlayfs"))
    struct BrokenSetupTests {
        @Test(.timeLimit(.minutes(5))) func doctorFindsEachAndItsAdviceFollowedToTheLetterMendsIt()
            async throws
        {
            try await MountedDomain.with(mounts: false) { domain in
                let result = try await domain.shell(
                    "chmod 755 \"$T/..\" \"$T\"; \"$W/broken-setups\" \"$P\" \"$T\"", seconds: 280)
                #expect(result.output.contains(" set-ups, 0 wrong"), "\(result.output)")
            }
        }
    }
}
