import Foundation
import Testing

extension MountSuites {
    /// What is wrong is said by `status` within seconds.
    @Suite(.enabled(if: WebDAVServer.canRun, "there is no apache2, so there is no server to mount"))
    struct TimeToTruthTests {
        private func mounted(
            _ arguments: [String], prepare: String, _ body: (MountedDomain) async throws -> Void
        ) async throws {
            try await WebDAVServer.with { server in
                try await FaultProxy.with(server) { proxy in
                    var options = server.options(arguments)
                    options.provider = "webdav+http://127.0.0.1:\(proxy.port)/"
                    options.environment["RULES"] = proxy.rules
                    options.prepare = prepare + "; chown -R www-data: \"$C\"/*"
                    try await MountedDomain.with(options) { domain in try await body(domain) }
                }
            }
        }

        /// The condition is told as the rules of the proxy; then `status` is asked until it says so.
        private static let truth = """
            truth() {
                local what=$1 says=$2 began=$(date +%s%N); eval "$3"
                until "$P" status "$M" 2> /dev/null | grep -Eq "$says"; do
                    # Ten, and as many again for what else this machine does. It was half a minute.
                    [ $(( $(date +%s%N) - began )) -lt 20000000000 ] ||
                        { echo "$what: not in 20 s" >&2; "$P" status "$M" >&2; return 1; }
                    sleep 0.1
                done
                echo "$what: $(( ($(date +%s%N) - began) / 100000000 )) tenths of a second"
            }

            """

        @Test(.timeLimit(.minutes(2)), .enabled(if: Machine.isRoot, "a small disk can be made by root only"))
        func aDiskThatFillsIsSaidWithinTenSeconds() async throws {
            var options = MountedDomain.Options()
            options.prepare = "mount -t tmpfs -o size=48M,mode=700 none \"$S\""
            try await MountedDomain.with(options) { domain in
                let result = try await domain.shell(
                    Self.truth + """
                        truth "a disk that fills" 'local disk *full' \
                            'for size in 1M 4k; do dd if=/dev/zero bs=$size status=none >> "$S/fill" 2>/dev/null || true; done'
                        rm "$S/fill"; "$P" status "$M" --json | grep -q diskAvailable
                        """, seconds: 60)
                print(result.output)
            }
        }

        /// Nothing was due for a look, so it was "online" for half a minute.
        @Test(.timeLimit(.minutes(2))) func aServerThatFreezesUnusedIsSaidWithinTenSeconds() async throws {
            try await mounted(["--poll-interval", "10m"], prepare: "echo x > \"$C/file\"") { domain in
                let result = try await domain.shell(
                    Self.truth + """
                        [ "$(cat "$M/file")" = x ]; "$P" status "$M" | grep -q online; sleep 4
                        truth "a server that freezes unused" 'offline' 'echo hang > "$RULES"'
                        : > "$RULES"; within 45 '"$P" status "$M" | grep -q online'
                        """, seconds: 90)
                print(result.output)
            }
        }

        /// It was online, and each read waited half a minute. One file that is answered so for ever is no server's trouble.
        @Test(.timeLimit(.minutes(3))) func aServerThatAnswersEverythingWronglyIsSaidWithinTenSeconds() async throws {
            let prepare = "for n in a b c bad; do echo $n > \"$C/$n\"; done"
            try await mounted(["--poll-interval", "2s"], prepare: prepare) { domain in
                let result = try await domain.shell(
                    """
                    ls "$M"; echo 'status=503 path=/bad' > "$RULES"; cat "$M/bad" 2> /dev/null & reader=$!
                    for n in 1 2 3 4 5 6 7 8 9 10; do "$P" status "$M" | grep -q online; sleep 1; done
                    kill $reader; [ "$(cat "$M/a")" = a ]
                    \(Self.truth)
                    # What is not there by one look at everything is not removed here.
                    for status in 404 503 200 403; do
                        truth "a server that says $status to everything" "connection *(offline|failing)" \
                            "echo status=$status > $RULES"
                        "$P" status "$M" | grep "connection.*answers $status\\|login page"
                        began=$(date +%s); not cat "$M/b" 2> /dev/null; [ $(( $(date +%s) - began )) -lt 20 ]
                        rc=0; "$P" sync "$M" 2> "$T/said" || rc=$?; [ $rc = 4 ] || [ $rc = 5 ]
                        [ "$(ls "$M" | wc -l)" = 4 ]; : > "$RULES"; within 20 '"$P" status "$M" | grep -q online'
                        [ "$(ls "$M" | wc -l)" = 4 ]
                    done
                    [ "$(cat "$M/b")" = b ]
                    """, seconds: 120)
                print(result.output)
            }
        }

        /// It was as if it were empty, and `sync` ended with 0.
        @Test(.timeLimit(.minutes(3))) func aFolderThatCannotBeListedIsToldEverywhere() async throws {
            let prepare = "mkdir \"$C/locked\" \"$C/open\"; echo x > \"$C/locked/in\"; echo y > \"$C/open/in\""
            try await mounted([], prepare: prepare) { domain in
                try await domain.shell(
                    """
                    echo 'method=PROPFIND path=/locked/ status=403' > "$RULES"
                    not ls "$M/locked"; [ "$(ls "$M/open")" = in ]
                    "$P" status "$M" | grep 'not listed *1 folder'; "$P" status --json "$M" | grep '"unlisted":1'
                    "$P" pending "$M" | grep 'list .*failing.*/locked'
                    "$P" pending --watch "$M" > "$T/watched" & p=$!
                    within 20 '[ $(grep -c /locked "$T/watched") -ge 2 ]'; kill $p; wait $p || true
                    rc=0; "$P" sync "$M" 2> "$T/said" || rc=$?; cat "$T/said"; [ $rc = 5 ]
                    grep "'/locked' cannot be listed" "$T/said"
                    rc=0; "$P" sync --wait --timeout 20s "$M" 2> "$T/said" || rc=$?; [ $rc = 5 ]
                    "$P" sync --wait --timeout 20s "$M/open"; grep 'a folder cannot be listed' "$S/log/daemon.log"
                    : > "$RULES"; within 20 '"$P" sync "$M"'; "$P" pending "$M" | grep 'nothing is pending'
                    not grep -q 'not listed' <<< "$("$P" status "$M")"; [ "$(cat "$M/locked/in")" = x ]
                    """, seconds: 100)
            }
        }
    }
}
