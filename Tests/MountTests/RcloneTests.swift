import Foundation
import Testing

enum RcloneProgram {
    static let isThere = (["/usr/bin/rclone", "/usr/local/bin/rclone"] as [String]).contains { access($0, X_OK) == 0 }
}

extension MountSuites {
    /// A remote of rclone: edits both ways, ranges, conflicts, and an rclone that is killed.
    @Suite(.enabled(if: RcloneProgram.isThere, "there is no rclone, so there is no remote to mount"))
    struct RcloneTests {
        /// `work:` in a configuration of its own, whose bytes are below `$C`.
        private func mounted(_ remote: String, prepare: String, _ body: (MountedDomain) async throws -> Void) async throws {
            var template = Array((Machine.folder + "/rclone-XXXXXX").utf8CString)
            guard mkdtemp(&template) != nil else { throw HarnessError("no temporary folder in \(Machine.folder)") }
            let root = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
            defer { try? FileManager.default.removeItem(atPath: root) }
            var options = MountedDomain.Options()
            options.provider = "rclone:work:the cloud"
            options.cloud = root + "/data"
            options.arguments = ["--poll-interval", "1s"]
            options.environment = ["RCLONE_CONFIG": root + "/rclone.conf", "N": root]
            options.prepare = """
                mkdir "$C"; printf '[work]\\n%b\\n' "\(remote)" > "$RCLONE_CONFIG"
                rclone mkdir 'work:the cloud'; \(prepare)
                """
            try await MountedDomain.with(options, body)
            // It ends with the daemon.
            let left = try await runShell(
                """
                lives() { grep -qsz 'RCLONE_CONFIG=\(root)/' /proc/[0-9]*/environ; }
                for i in $(seq 600); do lives || break; sleep 0.1; done; if lives; then exit 1; fi
                """)
            #expect(left.status == 0)
        }

        /// The process that serves this mount: it has the state folder in its environment.
        private static let pid = """
            for p in $(pgrep rclone); do
                tr '\\0' '\\n' < /proc/$p/environ | grep -qx "PROMISEFS_RCLONE=$S" && echo $p || true
            done
            """

        @Test(.timeLimit(.minutes(5))) func whatIsDoneHereAndAtARemoteMeets() async throws {
            let prepare = """
                cd "$C/the cloud"; printf one > first; head -c 24M /dev/urandom > large; printf v1 > both
                """
            try await mounted("type = alias\\nremote = $C", prepare: prepare) { domain in
                try await domain.shell(
                    """
                    [ "$(cat "$M/first")" = one ]; cmp <(dd if="$M/large" bs=1M skip=12 count=1 status=none) \\
                        <(dd if="$C/the cloud/large" bs=1M skip=12 count=1 status=none)
                    [ "$("$P" status --json "$M" | grep -o '"bytesFetched" *: *[0-9]*' | grep -o '[0-9]*$')" -lt 20000000 ]
                    [ "$(cat "$M/both")" = v1 ]
                    mkdir -p "$M/a/ä b"; echo deep > "$M/a/ä b/#1%"; echo new > "$M/new"; echo longer > "$M/first"
                    """)
                try await domain.synchronize()
                try await domain.shell(
                    """
                    cd "$C/the cloud"; [ "$(cat "a/ä b/#1%" new first)" = $'deep\\nnew\\nlonger' ]
                    # What others do shows here.
                    printf 'changed by them' > new; rm first; printf x > theirs; mv a moved
                    within 60 '[ "$(cat "$M/new")" = "changed by them" ] && [ -f "$M/theirs" ] && [ ! -e "$M/first" ]'
                    within 60 '[ "$(cat "$M/moved/ä b/#1%")" = deep ] && [ ! -e "$M/a" ]'
                    # Of two edits of one version both are kept, and nothing is written over what others have stored.
                    "$P" pause "$M"; echo ours > "$M/both"; printf 'theirs, longer' > both; "$P" resume "$M"
                    """)
                try await domain.synchronize()
                try await domain.shell(
                    """
                    within 60 '[ "$(cat "$M/both")" = "theirs, longer" ] && [ "$(cat "$M/both (conflict"*)" = ours ]'
                    [ "$(cat "$C/the cloud/both")" = 'theirs, longer' ]
                    """)
                try await domain.synchronize()
                // rclone dies, and is started again; its password is on no command line.
                try await domain.shell(
                    """
                    [ "$(cat "$C/the cloud/both (conflict"*)" = ours ]
                    before=$(\(Self.pid)); [ -n "$before" ]; echo "$before" > "$T/before"
                    not grep -qzi 'pass=\\|user' "/proc/$before/cmdline"
                    kill -9 "$before"; echo after > "$M/after"; within 100 'cmp "$M/large" "$C/the cloud/large"'
                    """, seconds: 120)
                try await domain.synchronize()
                try await domain.shell(
                    """
                    [ "$(cat "$C/the cloud/after")" = after ]; now=$(\(Self.pid)); [ -n "$now" ]
                    [ "$now" != "$(cat "$T/before")" ]
                    # A folder that is not there is no empty one.
                    mv "$C/the cloud" "$C/away"; "$P" sync "$M" || true; [ "$(cat "$M/after")" = after ]
                    [ "$(ls "$M" | wc -l)" -gt 4 ]; mv "$C/away" "$C/the cloud"
                    within 60 '"$P" status "$M" | grep -q online'
                    """, seconds: 120)
            }
        }

        @Test(.timeLimit(.minutes(5))) func anEncryptedRemoteShowsWhatIsInIt() async throws {
            let remote = "type = crypt\\nremote = $C\\npassword = $(rclone obscure geheim)"
            let prepare = "printf one | rclone rcat 'work:the cloud/first'"
            try await mounted(remote, prepare: prepare) { domain in
                try await domain.shell(
                    """
                    [ "$(cat "$M/first")" = one ]; echo secret > "$M/mine"
                    mkdir "$T/other"; for name in rclone:nothing: rclone: rclone:work:nowhere; do
                        if "$P" mount $name "$T/other" 2>> "$T/errors"; then exit 1; fi
                    done
                    cat "$T/errors" >&2; grep -q "no remote 'nothing': there are work:" "$T/errors"
                    grep -q 'names no remote.*there are work:' "$T/errors"; grep -q "no folder at 'work:nowhere'" "$T/errors"
                    """)
                try await domain.synchronize()
                try await domain.shell(
                    """
                    [ "$(rclone cat 'work:the cloud/mine')" = secret ]; not grep -rqs secret "$C"
                    [ -z "$(find "$C" -name mine)" ]
                    printf 'two, and longer' | rclone rcat 'work:the cloud/first'
                    within 60 '[ "$(cat "$M/first")" = "two, and longer" ]'
                    """)
            }
        }

        /// rclone moved it over what others had under a name that differs in case only, on a disk that
        /// takes both for one.
        @Test(
            .enabled(if: TwinNameMountTests.canMountSticks, "mounting exFAT needs root"),
            .timeLimit(.minutes(3)))
        func nothingGoesOverATwinThatRcloneDoesNotSee() async throws {
            try await mounted("type = alias\\nremote = $C", prepare: "true") { domain in
                try await domain.shell("\"$P\" unmount \"$M\"; rmdir \"$C/the cloud\"")
                try await TwinNameMountTests.withDisk(domain) {
                    try await domain.shell("mkdir \"$C/the cloud\"; echo theirs > \"$C/the cloud/readme\"")
                    try await domain.remount()
                    try await domain.shell(
                        """
                        cat "$M/readme"; echo mine > "$M/README"; status=0
                        "$P" sync "$M" --wait 2> "$T/err" || status=$?
                        [ $status = 5 ]; grep -q "'readme', which is there, for one name" "$T/err"
                        [ "$(cat "$C/the cloud/readme" "$M/readme" | paste -sd' ')" = "theirs theirs" ]
                        mv "$M/README" "$M/other"; "$P" sync "$M" --wait
                        mv "$M/readme" "$M/ReadMe"; "$P" sync "$M" --wait
                        [ "$(ls "$C/the cloud" | paste -sd' ')" = "ReadMe other" ]
                        [ "$(cat "$C/the cloud/readme" "$C/the cloud/other" | paste -sd' ')" = "theirs mine" ]
                        mv "$C/the cloud/ReadMe" "$C/the cloud/README"
                        within 30 '[ "$(ls "$M" | paste -sd" ")" = "README other" ]'
                        "$P" unmount "$M"
                        """)
                }
                try await domain.shell("mkdir -p \"$C/the cloud\"")
                try await domain.remount()
            }
        }
    }
}
