import Foundation
import PromiseKit
import PromiseWire
import Synchronization
import Testing

extension MountSuites {
    /// Whoever follows the journal or a live query goes on when the daemon is killed under it.
    @Suite(.enabled(if: Machine.canOutliveDaemon, "before Linux 6.9 the kernel sends no request again"))
    struct FollowTests {
        private final class Names: Sendable {
            let list = Mutex<[String]>([])
        }

        /// Begins to follow in the background; `$T/journal.rc` and `$T/live.rc` say how it ended.
        private static let follow = """
            # What names the mount's path is taken for its daemon, and killed with it.
            cd "$M/.."; m="$(basename "$M")"; rm -f "$T"/*.rc; : > "$T/journal"; : > "$T/live"
            (rc=0; "$P" changes "$m" --since 0 --follow > "$T/journal" 2> "$T/journal.err" || rc=$?
                echo $rc > "$T/journal.rc") &
            (rc=0; "$P" find "$m" TRUEPREDICATE --live > "$T/live" 2> "$T/live.err" || rc=$?
                echo $rc > "$T/live.rc") &
            disown -a
            heard() { within 30 'grep -q '"$1"' "$T/journal"'; within 30 'grep -q '"$1"' "$T/live"'; }
            ended() {
                for one in journal live; do
                    within 40 '[ -s "$T/'$one'.rc" ]'
                    [ "$(cat "$T/$one.rc")" = $1 ]; grep -q "$2" "$T/$one.err"; [ "$(wc -l < "$T/$one.err")" = 1 ]
                done
            }

            """

        /// Of an unmount and of a death nothing was said, and the status was 0 for both.
        @Test(.timeLimit(.minutes(3)))
        func whoFollowsIsToldOfAnUnmountAndOfADeathAndGoesOnWhenItIsMountedAgain() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell(
                    Self.follow + """
                        touch "$M/one"; heard one
                        "$P" unmount --wait "$M"; \(domain.mountCommand); touch "$M/two"; heard two
                        grep -qx '! again' "$T/live"; "$P" unmount --wait "$M"; ended 0 'was unmounted'
                        """, seconds: 120)
                try await domain.remount()
                try await domain.shell(Self.follow + "touch \"$M/three\"; heard three")
                try await domain.kill9()
                try await domain.shell(
                    Self.follow.components(separatedBy: "disown -a")[1] + "ended 4 'has died and no other one came'")
                try await domain.remount()
            }
        }

        /// It was given up after ten seconds, and its holder replaces it after more than that.
        @Test(.timeLimit(.minutes(3)))
        func whoFollowsADaemonThatIsStoppedGoesOnWithTheOneThatReplacesIt() async throws {
            var options = MountedDomain.Options()
            options.arguments = ["--no-io-uring"]
            options.environment["PROMISEFS_PATIENCE"] = "24"
            try await MountedDomain.with(options) { domain in
                try await domain.shell(Self.follow + "touch \"$M/one\"; heard one")
                let daemon = try #require(domain.daemonProcesses().first)
                kill(daemon, SIGSTOP)
                try await domain.shell(
                    """
                    touch "$M/two"; within 60 'grep -q two "$T/journal"'; within 60 'grep -q two "$T/live"'
                    [ ! -s "$T/journal.err" ]; [ ! -s "$T/live.err" ]; "$P" unmount --wait "$M"
                    within 40 '[ -s "$T/live.rc" ]'; within 40 '[ -s "$T/journal.rc" ]'
                    """, seconds: 150)
                try await domain.remount()
            }
        }

        @Test(.timeLimit(.minutes(3))) func whoFollowsGoesOnFromItsNumberWhenTheDaemonIsKilled() async throws {
            var options = MountedDomain.Options()
            options.arguments = ["--no-io-uring"]
            try await MountedDomain.with(options) { domain in
                let socket = domain.root + "/run/promisefs/\(domain.domainName).sock"
                let names = Names()
                let swift = Task {
                    var follower = ChangeFollower(PromiseClient(socketPath: socket, domain: domain.domainName), since: 0)
                    while let page = try await follower.next() {
                        let made = page.changes.filter { $0.kind == "created" }.compactMap(\.name)
                        names.list.withLock { $0 += made }
                    }
                }
                defer { swift.cancel() }
                try await domain.shell(
                    """
                    # What names the mount's path is taken for its daemon, and killed with it.
                    cd "$M/.."; m="$(basename "$M")"
                    "$P" changes "$m" --since 0 --follow --json > "$T/journal" 2> "$T/journal.err" & echo $! > "$T/pids"
                    "$P" find "$m" 'kMDItemFSName BEGINSWITH "file-"' --live --json > "$T/live" 2> "$T/live.err" &
                    echo $! >> "$T/pids"
                    cat > "$T/follow.py" <<'END'
                    import sys, promisefs
                    domain, _ = promisefs.locate(sys.argv[1])
                    for page in domain.follow_changes(patience=3):
                        for change in page["changes"]:
                            if change["kind"] == "created":
                                print(change["name"], flush=True)
                    END
                    PYTHONPATH="$R/clients/python" python3 "$T/follow.py" "$M" > "$T/python" 2> "$T/python.err" &
                    echo $! >> "$T/pids"; disown -a
                    touch "$M/file-0"; within 10 'grep -q file-0 "$T/python"'; within 10 'grep -q file-0 "$T/live"'
                    """)
                // A while in which nothing happens was counted as one in which nobody answers.
                try await Task.sleep(for: .seconds(4))
                for kill in 1...3 {
                    try domain.killDaemon()
                    // Some while there is no daemon, and some when there is one again.
                    try await domain.shell(
                        """
                        touch "$M/file-\(kill)"; within 20 'grep -q "\\"name\\":\\"file-\(kill)\\"" "$T/journal"'
                        within 20 'grep -q "file-\(kill)" "$T/python"'; within 20 'grep -q "file-\(kill)" "$T/live"'
                        """, seconds: 90)
                }
                let expected = (0...3).map { "file-\($0)" }
                for _ in 0..<500 where names.list.withLock({ $0.count }) < 4 { try await Task.sleep(for: .milliseconds(20)) }
                #expect(names.list.withLock { $0 } == expected)
                try await domain.shell(
                    """
                    [ "$(paste -sd' ' "$T/python")" = "\(expected.joined(separator: " "))" ]
                    grep '"kind":"created"' "$T/journal" | grep -o '"name":"[^"]*"' | cut -d'"' -f4 > "$T/names"
                    [ "$(paste -sd' ' "$T/names")" = "\(expected.joined(separator: " "))" ]
                    [ "$(grep -c '"event":"reset"' "$T/live")" = 3 ]
                    kill $(cat "$T/pids")
                    tac "$T/live" | sed '/"event":"reset"/q' | grep -o '/file-[0-9]' | sort -u | wc -l | grep -qx 4
                    """)
            }
        }
    }
}
