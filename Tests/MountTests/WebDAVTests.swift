import Foundation
import Testing

extension MountSuites {
    /// A mount of Apache's WebDAV: trees both ways, ranges, other clients, and a server that goes and comes back.
    @Suite(.enabled(if: WebDAVServer.canRun, "there is no apache2, so there is no server to mount"))
    struct WebDAVTests {
        static let fileCount = Machine.isFullScale ? 10_000 : 120
        static let largeMegabytes = Machine.isFullScale ? 1024 : 48

        private func mounted(
            _ arguments: [String] = [], prepare: String = "", _ body: (MountedDomain, WebDAVServer) async throws -> Void
        ) async throws {
            try await WebDAVServer.with { server in
                var options = server.options(arguments)
                options.prepare = prepare
                try await MountedDomain.with(options) { domain in try await body(domain, server) }
            }
        }

        @Test(.timeLimit(.minutes(3))) func aServerPassesTheChecksOfProviders() async throws {
            try await WebDAVServer.with { server in
                try await MountedDomain.with(server.options(), mounts: false) { domain in
                    let result = try await domain.shell(
                        "echo text > \"$C/file\"; \"$P\" provider check \(server.provider) --destructive-in a/b --json",
                        seconds: 150)
                    let document = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any]
                    #expect(document?["score"] as? Int == 100, "\(result.output)")
                    #expect((document?["passed"] as? Int ?? 0) > 50)
                    #expect(result.output.contains("private-objects"))
                    #expect(!result.output.contains(WebDAVServer.password))
                    try await domain.shell("[ -z \"$(find \"$C/a/b\" -mindepth 1 -not -path '*/.DAV*')\" ]")
                }
            }
        }

        @Test(.timeLimit(.minutes(5))) func treesGoBothWays() async throws {
            let prepare = """
                mkdir -p "$C/from server/a b/é"
                for n in $(seq \(Self.fileCount)); do echo "$n" > "$C/from server/a b/é/#$n%?"; done
                printf 'name with a newline' > "$C/from server/one
                two"; chown -R www-data: "$C"/*
                """
            try await mounted(prepare: prepare) { domain, _ in
                try await domain.shell(WebDAVServer.equality, seconds: 120)
                try await domain.shell(
                    """
                    mkdir -p "$M/from here/x/y"
                    for n in $(seq \(Self.fileCount)); do echo "$n$n" > "$M/from here/x/y/$n &+;"; done
                    touch -d 2001-02-03 "$M/from here/x/y/1 &+;"; chmod 750 "$M/from here/x/y/1 &+;"; : > "$M/from here/empty"
                    printf x > "$M/from here/"$'no\\xffutf8'; ln -s ../elsewhere "$M/link"
                    """)
                try await domain.synchronize()
                try await domain.shell("rm \"$M/link\"; mv \"$M/from here/\"$'no\\xffutf8' \"$M/from here/utf8\"")
                try await domain.synchronize()
                try await domain.shell(WebDAVServer.equality)
                // Folders that move keep what is in them, without a byte going over the wire again.
                let before = try await domain.status()
                try await domain.shell(
                    """
                    mv "$M/from here/x" "$M/moved"; mv "$M/from server/a b" "$M/moved/"; rm -r "$M/moved/a b/é/#1%?"
                    mv "$M/moved/y/2 &+;" "$M/2"; echo again > "$M/moved/y/2 &+;"
                    """)
                try await domain.synchronize()
                try await domain.shell(WebDAVServer.equality)
                let after = try await domain.status()
                #expect(after.bytesFetched == before.bytesFetched && after.bytesUploaded - before.bytesUploaded < 100)
                // A second mount with an empty index shows the same, modes and times included.
                try await domain.shell("\"$P\" unmount \"$M\"; rm -rf \"$S\"/*")
                try await domain.remount()
                try await domain.shell(
                    """
                    \(WebDAVServer.equality); [ "$(stat -c '%a %y' "$M/moved/y/1 &+;" | cut -c1-14)" = "750 2001-02-03" ]
                    """)
            }
        }

        @Test(.timeLimit(.minutes(3))) func aRangeOfALargeFileFetchesLittleMoreAndTheWholeComesRight() async throws {
            let size = Self.largeMegabytes
            try await mounted(prepare: "head -c \(size)M /dev/urandom > \"$C/large\"") { domain, _ in
                let offset = size * 3 / 4
                try await domain.shell(
                    """
                    cmp <(dd if="$M/large" bs=1M skip=\(offset) count=1 status=none) \\
                        <(dd if="$C/large" bs=1M skip=\(offset) count=1 status=none); sleep 0.5
                    """)
                let fetched = try await domain.status().bytesFetched
                #expect(fetched >= 1 << 20 && fetched < 16 << 20)
                try await domain.shell("cmp \"$M/large\" \"$C/large\"; cp \"$M/large\" \"$M/copy\"", seconds: 120)
                try await domain.synchronize()
                try await domain.shell("cmp \"$C/copy\" \"$C/large\"")
            }
        }

        @Test(.timeLimit(.minutes(3))) func changesByAnotherClientAreSeen() async throws {
            let prepare =
                "for n in a b c d; do echo \"first $n\" > \"$C/$n\"; done; mkdir \"$C/folder\"; chown -R www-data: \"$C\"/*"
            try await mounted(prepare: prepare) { domain, _ in
                try await domain.shell(
                    """
                    cat "$M"/[a-d] > /dev/null; ls "$M/folder"; sleep 1.1
                    curl -fsS -u "$L" -T - "$U/new" <<< new; curl -fsS -u "$L" -T - "$U/a" <<< second
                    curl -fsS -u "$L" -X DELETE "$U/b"; curl -fsS -u "$L" -X MOVE -H "Destination: $U/folder/c" "$U/c" > /dev/null
                    within 20 '[ "$(cat "$M/new")" = new ]'
                    within 20 '[ "$(cat "$M/a")" = second ]'
                    within 20 'not [ -e "$M/b" ]'
                    within 20 '[ "$(cat "$M/folder/c")" = "first c" ]'
                    within 20 'not [ -e "$M/c" ]'
                    """)
                // Edited on both sides: both stay.
                try await domain.shell(
                    """
                    echo 'theirs, longer' > "$T/theirs"; echo ours > "$M/d"; curl -fsS -u "$L" -T "$T/theirs" "$U/d"
                    """)
                try await domain.synchronize()
                try await domain.shell(
                    """
                    within 20 'cat "$M"/d* | sort | grep -c "ours\\|theirs" | grep -q 2'
                    """)
                // The folder for uploads is gone: it is made again.
                try await domain.shell("rm -r \"$C/.promisefs\"; echo more > \"$M/more\"")
                try await domain.synchronize()
                try await domain.shell(WebDAVServer.equality)
            }
        }

        /// A save went with the mode that was known here, and undid the other one.
        @Test(.timeLimit(.minutes(3))) func aModeThatAnotherMachineGaveStaysWhenTheFileIsSavedHere() async throws {
            let prepare = "echo first > \"$C/letter\"; chown www-data: \"$C/letter\""
            try await mounted(["--poll-interval", "10m"], prepare: prepare) { here, server in
                try await here.shell("[ \"$(cat \"$M/letter\")\" = first ]")
                try await MountedDomain.with(server.options()) { there in
                    try await there.shell("chmod 600 \"$M/letter\"")
                    try await there.synchronize()
                }
                try await here.shell("[ \"$(stat -c %a \"$M/letter\")\" = 644 ]; echo second > \"$M/letter\"")
                try await here.shell("until [ \"$(cat \"$C/letter\")\" = second ]; do sleep 0.1; done", seconds: 60)
                try await here.synchronize()
                try await here.shell("[ \"$(stat -c %a \"$M/letter\")\" = 600 ]")
                try await MountedDomain.with(server.options()) { there in
                    try await there.shell("[ \"$(stat -c %a \"$M/letter\")\" = 600 ] && [ \"$(cat \"$M/letter\")\" = second ]")
                }
            }
        }

        @Test(.timeLimit(.minutes(3))) func aServerThatGoesAndComesBackLosesNothing() async throws {
            let prepare = "for n in a b c; do echo \"first $n\" > \"$C/$n\"; done; chown www-data: \"$C\"/*"
            try await mounted(["--request-deadline", "2s"], prepare: prepare) { domain, _ in
                try await domain.shell(
                    """
                    ls "$M" > /dev/null; cat "$M/a"
                    kill -STOP -- -$(cut -d' ' -f1 "$D/server.pid")
                    [ "$(cat "$M/a")" = "first a" ]; echo edited > "$M/a"
                    not timeout 20 cat "$M/b" 2> "$T/slow"; grep -q 'timed out' "$T/slow"
                    kill -CONT -- -$(cut -d' ' -f1 "$D/server.pid")
                    within 30 '[ "$(cat "$M/b")" = "first b" ]'
                    """, seconds: 90)
                try await domain.synchronize()
                try await domain.shell(
                    """
                    [ "$(cat "$C/a")" = edited ]
                    kill -KILL -- -$(cut -d' ' -f1 "$D/server.pid")
                    not timeout 20 cat "$M/c" 2> "$T/gone"; grep -qi 'network\\|timed out' "$T/gone"
                    echo offline > "$M/offline"; mkdir "$M/made"; mv "$M/a" "$M/made/a"
                    """, seconds: 120)
                // A mount begins without the server, too.
                try await domain.kill9()
                try await domain.remount()
                try await domain.shell(
                    """
                    [ "$(cat "$M/made/a")" = edited ]; not timeout 20 cat "$M/c"
                    "$SERVER" start "$D" > /dev/null
                    within 60 '[ "$(cat "$M/c")" = "first c" ]'
                    """, seconds: 120)
                try await domain.synchronize()
                try await domain.shell("[ \"$(cat \"$C/offline\")\" = offline ]; \(WebDAVServer.equality)")
            }
        }

        @Test(.timeLimit(.minutes(3))) func aDaemonKilledDuringAnUploadLosesNothingAndLeavesNoHalf() async throws {
            try await mounted(prepare: "echo old > \"$C/file\"; chown www-data: \"$C/file\"") { domain, _ in
                try await domain.shell("cat \"$M/file\"; head -c \(Self.largeMegabytes)M /dev/urandom > \"$T/model\"")
                for round in 0..<3 {
                    try await domain.shell(
                        """
                        cp "$T/model" "$M/file"; cp "$T/model" "$M/new-\(round)"
                        within 30 '[ "$("$P" pending --json "$M" | grep -c "isRunning\\":true")" -ge 1 ]'; sleep 0.0\(round * 3)
                        """)
                    try await domain.kill9()
                    // What is there is whole, old or new.
                    try await domain.shell(
                        """
                        for name in file new-\(round); do
                            [ ! -e "$C/$name" ] || cmp -s "$C/$name" "$T/model" || [ "$(cat "$C/$name")" = old ]
                        done
                        """)
                    try await domain.remount()
                }
                try await domain.synchronize()
                try await domain.shell("for name in file new-0 new-1 new-2; do cmp \"$C/$name\" \"$T/model\"; done")
                try await domain.shell(WebDAVServer.equality)
            }
        }

        @Test(.timeLimit(.minutes(3))) func thePasswordIsNowhereToBeSeen() async throws {
            try await mounted { domain, server in
                let secret = WebDAVServer.password
                let daemon = try await domain.status().processID
                try await domain.shell(
                    """
                    echo text > "$M/file"; "$P" sync --wait "$M"
                    not grep -r '\(secret)' "$S"; not grep '\(secret)' /proc/\(daemon)/cmdline
                    not grep -az '^PROMISEFS_PASSWORD=[a-z]' /proc/\(daemon)/environ
                    { "$P" status --json "$M"; "$P" status "$M"; "$P" info "$M/file"; "$P" pending "$M"; } > "$T/said"
                    not grep '\(secret)' "$T/said"
                    """)
                let refused = try await domain.shell(
                    "\"$P\" mount 'webdav+http://u:\(secret)@127.0.0.1/' \"$T\"", status: 2)
                #expect(refused.errorText.contains("credentials file") && !refused.errorText.contains(secret))
                // From the file, which nobody else may read.
                try await domain.shell(
                    """
                    "$P" unmount "$M"; unset PROMISEFS_USER PROMISEFS_PASSWORD; mkdir -p "$XDG_CONFIG_HOME/promisefs"
                    file="$XDG_CONFIG_HOME/promisefs/credentials"
                    printf '[127.0.0.1]\\nuser = \(WebDAVServer.user)\\npassword = \(secret)\\n' > "$file"
                    chmod 644 "$file"
                    # What is here can be worked on, and why the server cannot be asked is said.
                    \(domain.mountCommand); cat "$M/file"; within 20 '"$P" status "$M" | grep -q "chmod 0600"'
                    "$P" unmount "$M"; chmod 600 "$file"; \(domain.mountCommand); cat "$M/file"
                    """)
                // What is here can be worked on with a password that was changed there.
                try await domain.shell(
                    """
                    "$P" unmount "$M"; export PROMISEFS_USER=\(WebDAVServer.user) PROMISEFS_PASSWORD=wrong-one
                    \(domain.mountCommand); cat "$M/file"
                    within 20 '"$P" status "$M" | grep -q "credentials are missing or wrong"'
                    "$P" status --json "$M" > "$T/said"; not grep wrong-one "$T/said"
                    """, seconds: 60)
                let check = try await domain.shell(
                    """
                    export PROMISEFS_USER=\(WebDAVServer.user) PROMISEFS_PASSWORD=wrong-one
                    "$P" provider check \(server.provider)
                    """, status: 5)
                #expect(check.errorText.contains("credentials are missing or wrong") && !check.errorText.contains("wrong-one"))
            }
        }
    }
}
