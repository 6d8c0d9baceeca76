import Testing

extension MountSuites {
    /// Presenters follow documents, whichever way a program saves them, and the name that they show.
    @Suite struct PresentedSaveTests {
        private var options: MountedDomain.Options {
            var options = MountedDomain.Options()
            options.prepare = "mkdir \"$C/a\" \"$C/z\"; echo 0 > \"$C/a/file\""
            return options
        }

        private static let watch = """
            pids=""
            watch() { : > "$T/$1"; "$P" watch "$2" >> "$T/$1" & pids+=" $!"; within 10 'grep -q presenting "$T/'"$1"'"'; }
            stop() { kill $pids; wait $pids || true; }

            """

        /// Who showed the document heard that it had been deleted, or heard nothing at all.
        @Test(.timeLimit(.minutes(10))) func everyWayOfSavingIsAChangeOfThePresentedDocument() async throws {
            let result = try await runShell(
                """
                python3 '\(Machine.workloads)/presented-saves.py' --executable '\(Machine.executable)' \
                    --folder '\(Machine.folder)' \(Machine.isFullScale ? "" : "--quick")
                """, seconds: 500)
            #expect(result.status == 0, "\(result.output.suffix(4000))\n\(result.error.suffix(2000))")
        }

        /// The backup was the document for who shows it, which had gone with that.
        @Test(.timeLimit(.minutes(2))) func aBackupByRenameIsNoEndOfTheDocument() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    Self.watch + """
                        save() { mv "$1" "$2"; echo "$3" > "$1"; rm "$2"; }
                        cat "$M/a/file" > /dev/null; watch file "$M/a/file"
                        for backup in file~ .#backup file.bak; do
                            : > "$T/file"; save "$M/a/file" "$M/a/$backup" "$backup"
                            within 5 'grep -qx "tell didChange $M/a/file" "$T/file"'; sleep 0.3
                            not grep didDelete "$T/file"; grep didMove "$T/file" | tail -1 | grep -qx "tell didMove $M/a/file"
                            : > "$T/file"; echo more >> "$M/a/file"; within 5 'grep -q didChange "$T/file"'
                        done
                        mv "$M/a/file" "$M/z/file"; within 5 'grep -qx "tell didMove $M/z/file" "$T/file"'; stop
                        """)
            }
        }

        /// Who showed the first name was told of the second one, and who showed the second one of the first, or of nothing.
        @Test(.timeLimit(.minutes(2))) func eachNameOfAFileIsShownForItself() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    Self.watch + """
                        cat "$M/a/file" > /dev/null; ln "$M/a/file" "$M/z/two"; ln "$M/a/file" "$M/a/three"; "$P" sync --wait "$M"
                        watch one "$M/a/file"; watch two "$M/z/two"; watch three "$M/a/three"; watch a "$M/a"; watch z "$M/z"
                        clear() { for w in one two three a z; do : > "$T/$w"; done; }
                        echo both >> "$M/z/two"; for w in one two three; do within 5 'grep -q didChange "$T/'$w'"'; done
                        sleep 0.3; clear; mv "$M/z/two" "$M/z/moved"
                        within 5 'grep -qx "tell didMove $M/z/moved" "$T/two"'
                        echo new > "$M/.draft"; mv "$M/.draft" "$M/z/moved"; within 5 'grep -q didChange "$T/two"'
                        heard() { grep "^tell" "$T/$1" | grep -v reacquire; }
                        sleep 0.3; not heard one; not heard three; not heard a
                        clear; rm "$M/a/three"; within 5 'grep -qx "tell didDelete (gone)" "$T/three"'
                        within 5 'grep -qx "tell subitemDidDelete (gone) (was $M/a/three)" "$T/a"'
                        sleep 0.3; not heard one; not heard z
                        clear; echo more >> "$M/a/file"; within 5 'grep -q didChange "$T/one"'
                        echo more >> "$M/z/moved"; within 5 'grep -q didChange "$T/two"'; sleep 0.3
                        not heard three; stop
                        """)
            }
        }
    }
}
