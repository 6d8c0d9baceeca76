import Foundation
import Testing

extension MountSuites {
    /// How many requests of which kind reach the daemon: what is remembered by the kernel costs nothing, and a request more
    /// is a regression. The table is in docs/BENCHMARKS.md.
    @Suite struct RequestCountTests {
        struct Row: Sendable, CustomTestStringConvertible {
            let testDescription: String
            /// Python, in a folder of its own on the mount (`p` is its path), before counting.
            var prepare = ""
            /// What is counted.
            let action: String
            let expected: [String: UInt64]
        }

        static let rows: [Row] = [
            Row(testDescription: "nothing", action: "pass", expected: [:]),
            Row(
                testDescription: "stat of a known name", prepare: "make(p + '/a'); os.stat(p + '/a')",
                action: "for n in range(10): os.stat(p + '/a')", expected: [:]),
            Row(
                testDescription: "open, read and close of a known local file", prepare: "make(p + '/a'); read(p + '/a')",
                action: "for n in range(10): read(p + '/a')", expected: ["open": 10, "release": 10]),
            Row(
                testDescription: "stat after reading", prepare: "make(p + '/a'); read(p + '/a')",
                action: "read(p + '/a'); os.stat(p + '/a')", expected: ["open": 1, "release": 1, "getattr": 1]),
            Row(
                testDescription: "stat after reading what has been read before",
                prepare: "make(p + '/a'); settle(); read(p + '/a'); settle(); os.stat(p + '/a')",
                action: "read(p + '/a'); os.stat(p + '/a')", expected: ["open": 1, "release": 1]),
            Row(
                testDescription: "create, write and close", prepare: "make(p + '/before')",
                action: "for n in range(10): make(p + f'/{n}')",
                expected: ["lookup": 10, "create": 10, "getxattr": 10, "getattr": 10, "release": 10]),
            Row(
                testDescription: "100 writes to an open file", prepare: "f = os.open(p + '/a', os.O_CREAT | os.O_WRONLY)",
                action: "for n in range(100): os.write(f, b'x' * 5000)", expected: ["getxattr": 1]),
            Row(
                testDescription: "stat after writing and closing", prepare: "make(p + '/a'); os.stat(p + '/a')",
                action: "f = os.open(p + '/a', os.O_WRONLY); os.write(f, b'x'); os.close(f); settle(); os.stat(p + '/a')",
                expected: ["open": 1, "getxattr": 1, "release": 1, "getattr": 1]),
            Row(
                testDescription: "rename to a new name", prepare: "make(p + '/a'); os.stat(p + '/a')",
                action: "os.rename(p + '/a', p + '/b')", expected: ["lookup": 1, "rename": 1]),
            Row(
                testDescription: "rename over a known name", prepare: "make(p + '/a'); make(p + '/b'); os.stat(p + '/a')",
                action: "os.rename(p + '/a', p + '/b')", expected: ["lookup": 1, "rename": 1]),
            Row(
                testDescription: "unlink of a known name", prepare: "make(p + '/a'); os.stat(p + '/a')",
                action: "os.unlink(p + '/a')", expected: ["unlink": 1]),
            Row(
                testDescription: "mkdir and rmdir", action: "os.mkdir(p + '/a'); os.rmdir(p + '/a')",
                expected: ["lookup": 1, "mkdir": 1, "getattr": 1, "rmdir": 1]),
            Row(
                testDescription: "readlink twice", prepare: "os.symlink('target', p + '/a'); os.lstat(p + '/a')",
                action: "os.readlink(p + '/a'); os.readlink(p + '/a')", expected: ["readlink": 1]),
            Row(
                testDescription: "stat of a missing name twice",
                action: "assert not os.path.exists(p + '/a'); assert not os.path.exists(p + '/a')", expected: ["lookup": 1]),
            Row(
                testDescription: "chmod of a known name", prepare: "make(p + '/a'); os.stat(p + '/a')",
                action: "os.chmod(p + '/a', 0o600)",
                expected: ["setattr": 1]),
            Row(
                testDescription: "listing 1,000 names that are known", prepare: many + "; walk(p); walk(p)", action: "walk(p)",
                expected: [:]),
        ]

        /// Programs as they are; the provider's folder has 1,000 files.
        static let commands: [(command: String, expected: [String: UInt64])] = [
            // An ACL is asked for each file, and the folder for two; SELinux' label once.
            ("ls -l \"$M/many\"", ["readdirplus": 6, "getxattr": 1003]),
            // Reading a folder makes the kernel ask for its attributes once more, for the access time; find asks for the space.
            ("ls -l \"$M/many\"", ["getattr": 1, "getxattr": 1]),
            ("find \"$M/many\" -size +1M", ["statfs": 1]),
            // Only an empty page tells the kernel that a listing is complete. The links of a folder with subfolders are other
            // ones once it is listed.
            ("find \"$M/tree\"", ["readdirplus": 42, "lookup": 1, "getattr": 1, "statfs": 1]),
            ("find \"$M/tree\" -newer \"$M/many\"", ["getattr": 20, "statfs": 1]),
            ("find \"$M/tree\" -newer \"$M/many\"", ["statfs": 1]),
        ] + (access("/sys/class/bdi", W_OK) == 0 ? [readAhead] : [])

        /// A placeholder of 4 MiB, where root may say so: the kernel reads 512 KiB ahead, by itself 128. Only the first close is
        /// told.
        private static let readAhead: (command: String, expected: [String: UInt64]) = (
            "dd if=\"$M/large\" bs=1M iflag=fullblock status=none",
            ["lookup": 1, "open": 1, "read": 8, "flush": 1, "release": 1]
        )

        private static let many = "[os.close(os.open(p + f'/{n}', os.O_CREAT, 0o644)) for n in range(1000)]"

        private static let prelude = """
            import os, sys, time
            p = sys.argv[1]
            def make(path):
                f = os.open(path, os.O_CREAT | os.O_WRONLY, 0o644); os.write(f, b'x' * 5000); os.close(f)
            def read(path):
                f = os.open(path, os.O_RDONLY); os.read(f, 10000); os.close(f)
            def walk(path):
                for entry in os.scandir(path): os.lstat(entry.path)
            # A close is told to the daemon in the background.
            def settle(): time.sleep(0.2)
            """

        /// What reaches the daemon between two questions, without what the kernel sends when it likes.
        private func counted(_ domain: MountedDomain, _ script: String, seconds: Int = 60) async throws -> [String: UInt64] {
            let before = try await domain.status().requests
            try await domain.shell(script, seconds: seconds)
            let after = try await domain.status().requests
            let difference = after.map { ($0.key, $0.value - (before[$0.key] ?? 0)) }
            return Dictionary(uniqueKeysWithValues: difference).filter {
                $0.value > 0 && !["forget", "batch_forget", "interrupt"].contains($0.key)
            }
        }

        /// In one process each, that tells when it is prepared and is told when to go on.
        /// Also while applications have views, of which the mount's kernel knows nothing.
        @Test(.timeLimit(.minutes(3)), arguments: [0, 50]) func noOperationCostsARequestTooMany(views: Int) async throws {
            var options = MountedDomain.Options()
            // Uploads look at the mount's files from below and stay out of this, but for their invalidations.
            options.uploadDelay = "600s"
            try await MountedDomain.with(options) { domain in
                // The first request of a kind that is not served is answered so, and never sent again.
                try await domain.shell("mkdir \"$M/first\"; echo a > \"$M/first/a\"; cat \"$M/first/a\"; ls -l \"$M/first\"")
                try await startViews(views, domain)
                for (number, row) in Self.rows.enumerated() {
                    var requests = try await count(row, "row \(number)", domain)
                    // A machine short of memory makes the kernel forget what it knew.
                    for attempt in 1...2 where requests != row.expected {
                        requests = try await count(row, "row \(number) again \(attempt)", domain)
                    }
                    #expect(requests == row.expected, "\(row.testDescription)")
                }
                if views > 0 {
                    try await domain.shell(
                        """
                        [ "$(ls $M/.promisefs-views | wc -l)" = \(views) ]
                        kill $(cat $T/views); within 20 '[ ! -e $M/.promisefs-views ]'
                        """)
                }
            }
        }

        private func startViews(_ count: Int, _ domain: MountedDomain) async throws {
            guard count > 0 else { return }
            try await domain.shell(
                """
                # They end with whoever has started them.
                (
                    for n in $(seq \(count)); do
                        "$P" run --app com.example.editor --domain \(domain.domainName) -- sleep 600 &
                    done
                    wait
                ) > /dev/null 2>&1 &
                echo $! > $T/views; disown
                within 30 '[ "$(ls $M/.promisefs-views | wc -l)" = \(count) ]'; sleep 1
                """)
        }

        private func count(_ row: Row, _ name: String, _ domain: MountedDomain) async throws -> [String: UInt64] {
            let program = """
                \(Self.prelude)
                os.mkdir(p); os.listdir(p)
                \(row.prepare)
                settle()
                open(sys.argv[2] + '/ready', 'w').close()
                while not os.path.exists(sys.argv[2] + '/go'): time.sleep(0.01)
                \(row.action)
                settle()
                open(sys.argv[2] + '/done', 'w').close()
                while not os.path.exists(sys.argv[2] + '/end'): time.sleep(0.01)
                """
            let folder = "\"$T/\(name)\""
            try await domain.shell(
                """
                mkdir \(folder); cat > \(folder)/program <<'PYTHON'
                \(program)
                PYTHON
                python3 \(folder)/program "$M/\(name)" \(folder) > \(folder)/out 2>&1 & disown
                within 20 '[ -e \(folder)/ready ]' || { cat \(folder)/out >&2; false; }
                """)
            let requests = try await counted(
                domain, "touch \(folder)/go; within 20 '[ -e \(folder)/done ]' || { cat \(folder)/out >&2; false; }")
            try await domain.shell("touch \(folder)/end")
            return requests
        }

        @Test(.timeLimit(.minutes(2))) func commandsThatLookAtManyFilesAskForFew() async throws {
            var options = MountedDomain.Options()
            options.prepare = """
                mkdir "$C/many"; for n in $(seq 1000); do echo $n > "$C/many/$n"; done
                for n in $(seq 20); do mkdir -p "$C/tree/$n"; touch "$C/tree/$n/"{a,b,c}; done
                truncate -s 4M "$C/large"
                """
            var surplus = try await surplus(options)
            // As above; only a new mount has forgotten what the first commands ask for.
            for _ in 1...2 where !surplus.isEmpty { surplus = try await self.surplus(options) }
            #expect(surplus.isEmpty)
        }

        /// The commands, each with its requests, that did not ask for what they should.
        private func surplus(_ options: MountedDomain.Options) async throws -> [String] {
            var surplus: [String] = []
            try await MountedDomain.with(options) { domain in
                // The first folder that is opened tells the kernel to open folders by itself.
                try await domain.shell("stat \"$M\" \"$M/many\" > /dev/null; mkdir \"$M/empty\"; ls \"$M/empty\"")
                for (command, expected) in Self.commands {
                    let requests = try await counted(domain, command + " > /dev/null; sleep 0.2")
                    if requests != expected { surplus.append("\(command): \(requests)") }
                }
            }
            return surplus
        }

        @Test(.timeLimit(.minutes(2))) func aTraceTellsWhoAskedForWhatAndHowItEnded() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell(
                    """
                    mkdir "$M/folder"; echo x > "$M/folder/a"; "$P" trace --json "$M" > "$T/trace" & trace=$!
                    within 10 'ls "$M/none-$RANDOM" 2> /dev/null; [ -s "$T/trace" ]'
                    python3 -c 'import sys; open(sys.argv[1]).read()' "$M/folder/a"; not rmdir "$M/folder" 2> /dev/null
                    within 10 'grep -q removeFolder "$T/trace"'; kill $trace; wait $trace || true
                    grep '"operation":"open"' "$T/trace" | grep '"path":"/folder/a"' | grep -q '"errorNumber":0.*"process":[1-9]'
                    grep '"operation":"removeFolder"' "$T/trace" | grep -q '"errorNumber":39'
                    """)
            }
        }
    }
}
