import Foundation
import Testing

extension MountSuites {
    /// What applications do with a document, on two machines and a real server.
    @Suite struct StoryTests {
        private static let words = #"""
            N=0; A=com.example.notes
            editor() { printf '%s\n' "$@" | "$(dirname "$P")/editor" "$M"; }
            fetched() { "$P" status "$M" --json | grep -o '"bytesFetched":[0-9]*' | cut -d: -f2; }
            resolved() { "$P" bookmark resolve "$(cat "$T/bookmark")" --app $A 2> /dev/null || true; }

            """#

        private func shell(_ domain: MountedDomain, _ script: String) async throws {
            let words = Self.words.replacingOccurrences(of: "N=0", with: "N=" + domain.domainName)
            try await domain.shell(words + script, seconds: 100)
        }

        /// References and bookmarks did not find what another machine had moved.
        @Test(.timeLimit(.minutes(4)), .enabled(if: WebDAVServer.canRun, "apache2 is not installed"))
        func twoApplicationsOnTwoMachinesKeepTheirDocument() async throws {
            try await WebDAVServer.with { server in
                try await MountedDomain.with(server.options()) { one in
                    try await MountedDomain.with(server.options()) { two in
                        try await begin(one)
                        try await move(one, two)
                        try await editBoth(one, two)
                    }
                }
            }
        }

        /// An editor makes a document in its container; another application picks it up and edits it in place.
        private func begin(_ one: MountedDomain) async throws {
            try await shell(
                one,
                #"""
                editor 'a first line' q | grep -qx 'editing Editor/Documents/test.txt'
                "$P" container add --app $A --name Notes $N > /dev/null
                "$P" reference add "$M/Editor/Documents/test.txt" "$M/Notes/Documents" > /dev/null
                "$P" bookmark create "$M/Editor/Documents/test.txt" --app $A > "$T/bookmark"
                echo 'a second line' >> "$M/Notes/Documents/test.txt"; "$P" kv set position 2 --app $A --domain $N
                "$P" sync --wait "$M"; [ "$(wc -l < "$C/Editor/Documents/test.txt")" = 3 ]; [ "$(fetched)" = 0 ]
                """#)
        }

        private func move(_ one: MountedDomain, _ two: MountedDomain) async throws {
            try await shell(
                one,
                #"""
                : > "$T/live"; "$P" find "$M" 'kMDItemFSName BEGINSWITH "test"' --live --json > "$T/live" &
                echo $! > "$T/query"; within 10 'grep -q gathered "$T/live"'
                """#)
            try await shell(
                two,
                #"""
                within 10 '[ -e "$M/Editor/Documents/test.txt" ]'
                within 10 '[ "$("$P" kv get position --app $A --domain $N)" = 2 ]'; mkdir "$M/Papers"
                mv "$M/Editor/Documents/test.txt" "$M/Papers/test renamed.txt"; "$P" sync --wait "$M"
                [ "$(fetched)" = 0 ]
                """#)
            // A poll is a second here; telling takes another.
            try await shell(
                one,
                #"""
                within 5 '[ "$(readlink "$M/Notes/Documents/test.txt")" = "../../Papers/test renamed.txt" ]'
                within 5 '[ "$(resolved)" = "$M/Papers/test renamed.txt" ]'
                within 5 'grep -q "Papers/test%20renamed.txt\|Papers/test renamed.txt" "$T/live"'
                kill "$(cat "$T/query")"; [ "$(fetched)" = 0 ]
                """#)
            // Where the move was made as well, though the reference is of the other machine.
            try await shell(
                two, #"within 5 '[ "$(readlink "$M/Notes/Documents/test.txt")" = "../../Papers/test renamed.txt" ]'"#)
        }

        /// Both edit at once, and both versions are there, until somebody resolves them.
        private func editBoth(_ one: MountedDomain, _ two: MountedDomain) async throws {
            let size = try await one.shell(#"stat -c %s "$M/Papers/test renamed.txt""#).text
            try await shell(one, #"editor p q | grep -qx 'a second line'"#)
            try await shell(two, #"grep -qx 'a second line' "$M/Notes/Documents/test.txt""#)
            try one.setFaults(["offline=true"])
            try await shell(one, #"editor 'a from one' q | grep -qx 'editing Papers/test renamed.txt'"#)
            try await shell(two, #"echo 'from two' >> "$M/Notes/Documents/test.txt"; "$P" sync --wait "$M""#)
            try one.setFaults([])
            for domain in [one, two] {
                try await shell(
                    domain,
                    #"""
                    within 30 '"$P" conflicts "$M" | grep -q "test renamed.txt"'
                    [ "$(fetched)" = \#(size) ]
                    """#)
            }
            try await shell(
                one,
                #"""
                cat "$M"/Papers/* > "$T/both"; grep -qx 'from one' "$T/both"; grep -qx 'from two' "$T/both"
                "$P" resolve "$M/Papers/test renamed.txt" --keep current; "$P" sync --wait "$M"
                """#)
            for domain in [one, two] {
                try await shell(
                    domain,
                    #"""
                    within 30 '[ -z "$("$P" conflicts "$M")" ]'; [ "$(ls "$M/Papers")" = 'test renamed.txt' ]
                    [ "$(readlink "$M/Notes/Documents/test.txt")" = "../../Papers/test renamed.txt" ]
                    """#)
            }
            try await shell(
                one, #"[ "$(resolved)" = "$M/Papers/test renamed.txt" ]; "$P" kv set position 4 --app $A --domain $N"#)
            try await shell(two, #"within 10 '[ "$("$P" kv get position --app $A --domain $N)" = 4 ]'"#)
        }
    }
}
