import Foundation
import Testing

extension MountSuites {
    /// Ordinary programs work in the mount as on any disk; afterwards the provider has byte for byte what the mount has,
    /// and has never been shown a temporary name.
    @Suite struct ToolTests {
        struct Tool: Sendable, CustomTestStringConvertible {
            let name: String
            let script: String
            var testDescription: String { name }
        }

        /// `$T/tree` is a tree of real files, `$T/repository` a git repository.
        static let tools: [Tool] = [
            Tool(name: "cp -a", script: "cp -a \"$T/tree\" \"$M/copy\"; python3 \"$W/compare-trees.py\" \"$T/tree\" \"$M/copy\""),
            Tool(
                name: "rsync -a",
                // rsync takes times within one second for the same and leaves the new one, on every file system.
                script: """
                    sleep 1.1
                    rsync -a "$T/tree/" "$M/tree"
                    again=$(rsync -a --itemize-changes "$T/tree/" "$M/tree")
                    [ -z "$again" ] || { echo "the second run transfers: $again" >&2; exit 1; }
                    python3 "$W/compare-trees.py" "$T/tree" "$M/tree"
                    """),
            Tool(
                name: "tar x",
                script: """
                    tar --format=posix -cf "$T/tree.tar" -C "$T" tree; tar -xf "$T/tree.tar" -C "$M"
                    python3 "$W/compare-trees.py" "$T/tree" "$M/tree"
                    """),
            Tool(
                name: "git",
                script: """
                    git clone -q "$T/repository" "$M/clone"; cd "$M/clone"; [ -z "$(git status --porcelain)" ]
                    echo more >> file-1; git add -A; git commit -q -m more; git checkout -q -b side HEAD~1
                    echo side > side; git add side; git commit -q -m side; git merge -q -m merged - ; git gc -q
                    [ -z "$(git status --porcelain)" ]; git fsck --strict; [ "$(git log --oneline | wc -l)" = 5 ]
                    """),
            Tool(
                name: "sed -i",
                script: """
                    for n in 1 2 3; do seq 2000 > "$M/numbers $n"; done; sed -i 's/1/one/' "$M"/numbers*
                    for n in 1 2 3; do seq 2000 | sed 's/1/one/' | cmp - "$M/numbers $n"; done
                    """),
            Tool(
                name: "vim",
                script: """
                    printf 'first\\nsecond\\n' > "$M/note.txt"; sleep 3
                    for n in 1 2 3; do
                        vim -u NONE -es -c 'set backup writebackup backupskip=' -c "normal! Goline $n" -c 'sleep 1' -c 'wq' \\
                            "$M/note.txt"
                    done
                    printf 'first\\nsecond\\nline 1\\nline 2\\nline 3\\n' | cmp - "$M/note.txt"; rm -f "$M"/*~
                    """),
            Tool(
                name: "mv and rm -r",
                script: """
                    cp -a "$T/tree" "$M/a"; mkdir "$M/b"; mv "$M/a" "$M/b/moved"; sleep 3
                    mv "$M/b/moved" "$M/again"; mv "$M/again/hard one" "$M/b/"; cp -a "$T/tree" "$M/doomed"; rm -r "$M/doomed"
                    [ ! -e "$M/doomed" ] && [ ! -e "$M/a" ] && [ -f "$M/b/hard one" ]
                    """),
            Tool(
                name: "sqlite in WAL mode",
                script: """
                    python3 - "$M/base.db" <<'PYTHON'
                    import sqlite3, sys, time
                    one = sqlite3.connect(sys.argv[1]); two = sqlite3.connect(sys.argv[1])
                    assert one.execute("pragma journal_mode=wal").fetchone() == ("wal",)
                    one.execute("create table t (n integer primary key, text)")
                    for n in range(3000):
                        one.execute("insert into t values (?, ?)", (n, "row %d" % n * 10))
                        if n % 500 == 0:
                            one.commit(); assert two.execute("select count(*) from t").fetchone() == (n + 1,)
                    one.commit(); time.sleep(4)
                    assert two.execute("pragma integrity_check").fetchone() == ("ok",)
                    one.close(); two.close()
                    PYTHON
                    [ "$(sqlite3 "$M/base.db" 'select count(*) from t')" = 3000 ]
                    """),
        ]

        /// No file ever left at the provider has such a name in these scripts.
        static let temporaryNames =
            #"(~|\.sw[a-p]|\.lock|-wal|-shm|-journal)$|(^|/)(4913|sed[A-Za-z0-9]{6}|\.[^/]+\.[A-Za-z0-9]{6}|tmp_[^/]*)$|OVERFLOW"#

        private static let prepare = """
            python3 "$W/make-tree.py" "$T/tree" --files 150 --seed 5 > /dev/null
            git init -q -b main "$T/repository"; cd "$T/repository"
            for n in 1 2; do for f in 1 2 3 4 5 6 7 8; do seq $((n * f * 50)) > file-$f; done
            git add -A; git commit -q -m "$n"; done
            """

        /// > The provider is told when nothing has changed for the upload delay (2 s, `--upload-delay`).
        /// > Never sent, state `excluded`, and everything below such a folder:
        @Test(.timeLimit(.minutes(5)), arguments: tools)
        func aProgramWorksAndItsTemporaryFilesStayHere(tool: Tool) async throws {
            var options = MountedDomain.Options()
            options.prepare = Self.prepare
            options.uploadDelay = "2s"
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    python3 "$W/watch-names.py" "$C" "$T/seen" > "$T/watcher" 2>&1 & echo $! > "$T/watcher.pid"
                    disown; within 10 'grep -q ready "$T/watcher"'
                    """)
                try await domain.shell(tool.script, seconds: 240)
                try await domain.synchronize()
                try await domain.expectProviderEqualsMount()
                let seen = try await domain.shell(
                    "kill $(cat \"$T/watcher.pid\"); [ -s \"$T/seen\" ]; sed 's/^\"//; s/\"$//' \"$T/seen\"")
                let pattern = try Regex(Self.temporaryNames)
                let temporary = seen.output.split(separator: "\n").filter { $0.contains(pattern) }
                #expect(temporary.isEmpty, "the provider was shown temporary names")
            }
        }

        /// A document saved by a temporary file, by a backup and a new file, in place, or removed and made again is one
        /// document. An editor has read what it backs up, so the content of the second is here.
        /// > Safe save: a file (or link) that the provider has never seen, renamed over another, is an edit of that
        @Test(.timeLimit(.minutes(2))) func aSavedDocumentKeepsItsIdentifier() async throws {
            var options = MountedDomain.Options()
            options.prepare = "for n in 1 2 3 4; do echo \"old $n\" > \"$C/$n\"; done"
            let identifier = "identifier() { getfattr --absolute-names --only-values -n user.promisefs.identifier \"$1\"; }"
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    \(identifier)
                    for n in 1 2 3 4; do identifier "$M/$n" > "$T/before $n"; done
                    echo "new 1" > "$M/.1.tmp"; mv "$M/.1.tmp" "$M/1"
                    cat "$M/2"; mv "$M/2" "$M/2~"; echo "new 2" > "$M/2"; rm "$M/2~"
                    echo "new 3" > "$M/3"
                    rm "$M/4"; echo "new 4" > "$M/4"
                    for n in 1 2 3 4; do identifier "$M/$n" | cmp - "$T/before $n"; done
                    """)
                try await domain.synchronize()
                try await domain.shell(
                    """
                    \(identifier)
                    for n in 1 2 3 4; do [ "$(cat "$C/$n")" = "new $n" ]; identifier "$M/$n" | cmp - "$T/before $n"; done
                    [ "$(ls "$C")" = "$(printf '1\\n2\\n3\\n4')" ]
                    """)
            }
        }
    }
}
