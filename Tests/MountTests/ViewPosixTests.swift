import Foundation
import Testing

extension MountSuites {
    /// A container in a view answers as a disk does to the same user in the same sandbox.
    @Suite struct ViewPosixTests {
        /// Those of the scripts that need no root, which a program in a view never is.
        static let steps = [
            "posix-content every_way_to_allocate holes copies mappings rename_flags locks_and_sync writing_in_every_way",
            "posix-errors every_operation_in_every_place every_kind_over_every_kind links_and_kinds",
            "posix-ownership what_changes_which_time exact_times",
        ]

        @Test(.timeLimit(.minutes(5)), arguments: steps)
        func aContainerAnswersAsTheDiskBelow(step: String) async throws {
            try await MountedDomain.with { domain in
                try await domain.shell(
                    """
                    ID=com.example.editor; D=\(domain.domainName); chmod 755 $T/.. $T
                    "$P" container add --app $ID --name Editor $D > /dev/null
                    mkdir -m 777 $T/beside; [ "$(id -u)" != 0 ] || chown 65534:65534 $T/beside
                    printf '%s\\n' --ro-bind $W /w --bind $T/beside /beside > $T/profile
                    cat > $T/both.sh << 'END'
                    script=$1; shift; mkdir /beside/work container/Documents/work
                    python3 /w/$script.py /beside/work "$@" > /beside/expected
                    python3 /w/$script.py container/Documents/work "$@" > /beside/actual
                    END
                    "$P" run --app $ID --domain $D --profile $T/profile -- bash -e -s \(step) < $T/both.sh
                    [ "$(wc -l < $T/beside/expected)" -gt 50 ]; diff -u $T/beside/expected $T/beside/actual
                    """, seconds: 250)
                try await domain.synchronize()
                try await domain.expectProviderEqualsMount()
            }
        }

        /// As on the mount, see docs/TESTING.md; pjdfstest is no part of this repository.
        @Test(.timeLimit(.minutes(20)), .enabled(if: Machine.pjdfstest != nil, "PROMISEFS_PJDFSTEST names none"))
        func pjdfstestSaysInAContainerWhatItSaysOnTheDiskBelow() async throws {
            let folder = try #require(Machine.pjdfstest)
            try await MountedDomain.with(mounts: false) { domain in
                let tests = Machine.isFullScale ? "" : "rename unlink mkdir open mknod/08"
                try await domain.shell(
                    """
                    chmod 755 "$T/.." "$T"
                    python3 "$W/pjdfstest-in-a-view.py" --executable "$P" --pjdfstest '\(folder)' --folder "$T" \(tests)
                    """, seconds: 1_000)
            }
        }
    }
}

extension Machine {
    fileprivate static let pjdfstest = ProcessInfo.processInfo.environment["PROMISEFS_PJDFSTEST"]
}
