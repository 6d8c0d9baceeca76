import Foundation
import Testing

extension MountSuites {
    /// Links that follow their documents.
    @Suite struct ReferenceTests {
        private static let options = MountedDomain.Options(
            arguments: ["--poll-interval", "1s", "--upload-delay", "0s"])

        private func twoMachines(_ body: (MountedDomain, MountedDomain) async throws -> Void) async throws {
            var options = Self.options
            try await MountedDomain.with(options) { first in
                options.cloud = first.cloud
                try await MountedDomain.with(options) { second in try await body(first, second) }
            }
        }

        private static let shorthand = """
            ref() { local w=$1; shift; "$P" reference "$w" "$@"; }
            why() { getfattr -h --only-values -n system.promisefs.reference "$1"; }

            """

        /// > Of links, whose `user.` attributes the kernel lets nobody read
        @Test(.timeLimit(.minutes(2))) func aReferenceToWhatIsGoneSaysWhyAndLeadsToNothingElse() async throws {
            try await MountedDomain.with(Self.options) { domain in
                try await domain.shell(
                    Self.shorthand
                        + """
                        echo one > "$M/doc"; ref add "$M/doc" "$M/link"; rm "$M/doc"
                        within 5 'why "$M/link" | grep -q "the item was deleted"'
                        not cat "$M/link" 2> /dev/null
                        [ "$(readlink "$M/link")" = .promisefs/deleted/doc ]
                        "$P" info "$M/link" | grep -q 'leads nowhere: the item was deleted'
                        "$P" sync --wait "$M"; echo another > "$M/doc"; "$P" sync --wait "$M"
                        within 5 'why "$M/link" | grep -q "another one has its name"'
                        not cat "$M/link" 2> /dev/null
                        ref list "$M" --json | grep -q '"state":"replaced"'; rm "$M/link"
                        [ "$(cat "$M/doc")" = another ]
                        # An ordinary link says nothing of the kind.
                        ln -s doc "$M/plain"; not why "$M/plain" 2> /dev/null; [ "$(readlink "$M/plain")" = doc ]
                        """)
            }
        }

        @Test(.timeLimit(.minutes(2))) func aReferenceIsTheSameOnAnotherMachine() async throws {
            try await twoMachines { first, second in
                try await first.shell(
                    Self.shorthand + "mkdir \"$M/a\" \"$M/deep\"; echo one > \"$M/a/doc\"; ref add \"$M/a/doc\" \"$M/link\"")
                // Which has listed nothing but the root, and moves the document itself.
                try await second.shell(
                    Self.shorthand
                        + """
                        within 5 '[ "$(cat "$M/link" 2> /dev/null)" = one ]'
                        [ "$(readlink "$M/link")" = a/doc ]
                        mkdir "$M/deep/er"; mv "$M/a/doc" "$M/deep/er/doc"; [ "$(readlink "$M/link")" = deep/er/doc ]
                        "$P" sync --wait "$M"
                        """)
                // It has never looked into that folder.
                try await first.shell(
                    Self.shorthand
                        + """
                        within 10 '[ "$(readlink "$M/link")" = deep/er/doc ]'; [ "$(cat "$M/link")" = one ]
                        """)
            }
        }
    }
}
