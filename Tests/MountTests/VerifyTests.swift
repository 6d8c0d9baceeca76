import Foundation
import Testing

extension MountSuites {
    /// Each damage is named in one sentence, mended by `--repair`, and nothing that exists only here is lost by that.
    @Suite struct VerifyTests {
        struct Damage: Sendable {
            /// The file that is damaged.
            let file: String
            /// Python, with `index` (a connection), `content(FILE)` and `store(NAME)` (paths), and `node(FILE)`.
            let script: String
            /// A part of the sentence that names it.
            let sentence: String
            /// Shell, after the repair and a new mount; what a repair must keep.
            let after: String
            /// The file is at the provider as it is here.
            var isSent = false
        }

        static let damages: [Damage] = [
            Damage(
                file: "missing", script: "os.unlink(content('missing'))", sentence: "'missing' is missing",
                after: "cmp \"$C/missing\" \"$M/missing\"", isSent: true),
            Damage(
                file: "gone", script: "os.unlink(content('gone'))", sentence: "edits that the provider has not seen",
                after: "[ \"$(cat \"$M/gone\")\" = old ]"),
            Damage(
                file: "cut", script: "os.truncate(content('cut'), 2)", sentence: "'cut' has 2 bytes instead of 4",
                after: "[ \"$(cat \"$M/cut\")\" = old ]", isSent: true),
            Damage(
                file: "grown", script: "open(content('grown'), 'ab').write(b'more')",
                sentence: "'grown' has 8 bytes instead of 4",
                after: "[ \"$(cat \"$M/grown\")\" = \"$(printf 'new\\nmore')\" ]"),
            Damage(
                file: "orphan", script: "open(store('ffffff.0'), 'w').write('edits')", sentence: "may hold edits",
                after: "[ \"$(cat \"$S/kept/ffffff.0\")\" = edits ]"),
            Damage(
                file: "nothing", script: "run('delete from node where id = ?', node('nothing'))",
                sentence: "which does not exist",
                after: "[ \"$(cat \"$M/nothing\")\" = old ]; grep -qx old \"$S\"/kept/*", isSent: true),
            Damage(
                file: "nameless", script: "run('delete from entry where node = ?', node('nameless'))", sentence: "but no entry",
                after: "grep -qx nameless \"$M\"/recovered*"),
            Damage(
                file: "stray", script: "run('update entry set parent = ? where node = ?', node('cut'), node('stray'))",
                sentence: "which is no folder", after: "grep -qx stray \"$M\"/recovered*"),
            Damage(
                file: "linked", script: "run('update node set link_count = 7 where id = ?', node('linked'))",
                sentence: "link count 7", after: "[ \"$(stat -c %h \"$M/linked\")\" = 1 ]"),
            Damage(
                file: "waiting",
                script: "run('delete from pending where id in (select id from entry where name = ?)', b'waiting')",
                sentence: "not in line for the provider", after: "within 20 '[ \"$(cat \"$C/waiting\")\" = waiting ]'"),
            Damage(
                file: "work", script: "run('insert into pending values (99999, null, 0, 0, 0, null, null)')",
                sentence: "pending row of entry 99999", after: "true"),
            Damage(
                file: "ranged", script: "run('insert into local_range values (?, 0, 3)', node('ranged'))",
                sentence: "no partial content", after: "grep -qx ranged \"$M/ranged\""),
            Damage(
                file: "attribute", script: "run(\"insert into attribute values (99999, x'61', x'62')\")",
                sentence: "extended attributes of node 99999", after: "true"),
        ]

        private static let tools = """
            import os, sqlite3
            index = sqlite3.connect(os.environ["S"] + "/index.sqlite")
            def run(statement, *values): index.execute(statement, values)
            place = "select node.id, generation from node join entry on entry.node = node.id where name = ?"
            def find(name): return index.execute(place, [name.encode()]).fetchone()
            def node(name): return find(name)[0]
            def store(name): return os.environ["S"] + "/content/%02x/%s" % (int(name.split(".")[0], 16) & 255, name)
            def content(name): return store("%x.%d" % find(name))

            """

        /// All at once. A file whose content exists nowhere any more is left as it is, and said.
        @Test(.timeLimit(.minutes(3))) func everyDamageIsNamedAndMended() async throws {
            var options = MountedDomain.Options()
            let old = ["missing", "gone", "cut", "grown", "nothing"]
            options.prepare = old.map { "echo old > \"$C/\($0)\"; " }.joined()
            try await MountedDomain.with(options) { domain in
                try await domain.shell("cat \"$M\"/* > /dev/null")
                try domain.setFaults(["offline=true"])
                let made = Self.damages.map(\.file).filter { !old.contains($0) } + ["lost"]
                try await domain.shell(
                    """
                    echo new > "$M/gone"; echo new > "$M/grown"
                    for n in \(made.joined(separator: " ")); do echo $n > "$M/$n"; done
                    "$P" unmount "$M" || [ $? = 7 ]
                    """)
                // Contents first: their places are asked of the index.
                let scripts = Self.damages.map(\.script) + ["os.unlink(content('lost'))"]
                let ordered = scripts.filter { $0.contains("content(") } + scripts.filter { !$0.contains("content(") }
                let harm = Self.tools + ordered.joined(separator: "\n") + "\nindex.commit()"
                try await domain.shell("python3 - <<'PYTHON'\n\(harm)\nPYTHON")
                let found = try await domain.shell("\"$P\" verify --state-dir \"$S\"", status: 1)
                for damage in Self.damages {
                    #expect(found.output.contains(damage.sentence), "\(damage.file): \(found.output)")
                }
                #expect(found.output.contains("'lost' is missing, and nobody else has it"))
                let left = try await domain.shell("\"$P\" verify --repair --state-dir \"$S\"", status: 1)
                #expect(left.output.hasSuffix("1 problem found\n"), "\(left.output)")
                try domain.setFaults([])
                try await domain.remount()
                for damage in Self.damages { try await domain.shell(damage.after) }
                try await domain.shell("not cat \"$M/lost\" 2> \"$T/why\"; grep -q 'Input/output' \"$T/why\"; rm \"$M/lost\"")
                try await domain.synchronize()
                try await domain.shell("\"$P\" verify --provider \"$M\"")
                try await domain.expectProviderEqualsMount()
            }
        }

        /// The kernel had the names and attributes from before, and showed them on.
        @Test(.timeLimit(.minutes(2))) func aRepairIsSeenOnTheMountAtOnce() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell(
                    "echo x > \"$M/linked\"; mkdir \"$M/folder\"; \"$P\" sync --wait \"$M\"; \"$P\" unmount --wait \"$M\"")
                let harm =
                    Self.tools
                    + """
                    run("update node set link_count = 7 where id = ?", node("linked"))
                    run("update node set link_count = 9 where id = 1")
                    run("insert into entry values (99999, 1, ?, ?, null, 1, null)", b"second", node("folder"))
                    index.commit()
                    """
                try await domain.shell("python3 - <<'PYTHON'\n\(harm)\nPYTHON")
                try await domain.remount()
                try await domain.shell(
                    """
                    links() { stat -c %h "$1"; }
                    [ "$(links "$M/linked")" = 7 ]; [ "$(links "$M")" = 9 ]; [ -d "$M/second" ]
                    ls "$M" > "$T/names"; grep -q second "$T/names"; "$P" verify --repair "$M"
                    [ "$(links "$M/linked")" = 1 ]; [ "$(links "$M")" = 3 ]; [ ! -e "$M/second" ]; [ -d "$M/folder" ]
                    ls "$M" > "$T/names"; not grep -q second "$T/names"
                    """)
            }
        }

        /// Bytes that rot on the disk keep their length and their times.
        @Test(.timeLimit(.minutes(2))) func contentThatRottedIsFoundByAskingTheProvider() async throws {
            var options = MountedDomain.Options()
            options.prepare = "head -c 200000 /dev/urandom > \"$C/file\""
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    cat "$M/file" > /dev/null; "$P" verify --provider "$M"
                    file=$(find "$S/content" -type f -size +100k); cp -p "$file" "$T/times"
                    printf rot | dd of="$file" bs=1 seek=1000 conv=notrunc status=none; touch -r "$T/times" "$file"
                    "$P" verify "$M"
                    """)
                let found = try await domain.shell("\"$P\" verify --provider --json \"$M\"", status: 1)
                #expect(found.output.contains("is not what the provider has"), "\(found.output)")
                try await domain.shell(
                    "\"$P\" verify --provider --repair \"$M\"; cmp \"$C/file\" \"$M/file\"; [ -n \"$(ls \"$S/kept\")\" ]")
            }
        }
    }
}
