import Testing

extension MountSuites {
    /// What one folder, one file or a silent server refuses is said, and holds up nothing else.
    @Suite(.enabled(if: WebDAVServer.canRun, "there is no apache2, so there is no server to mount"))
    struct BesideTroubleTests {
        private func mounted(
            _ arguments: [String], _ body: (MountedDomain) async throws -> Void
        ) async throws {
            try await WebDAVServer.with { server in
                try await FaultProxy.with(server) { proxy in
                    var options = server.options(arguments)
                    options.provider = "webdav+http://127.0.0.1:\(proxy.port)/"
                    options.environment["RULES"] = proxy.rules
                    options.prepare = """
                        mkdir "$C/locked" "$C/open"; echo x > "$C/locked/in"; echo y > "$C/open/in"
                        echo z > "$C/last"; chown -R www-data: "$C"/*
                        """
                    try await MountedDomain.with(options) { domain in try await body(domain) }
                }
            }
        }

        /// `fetch` ended at the first one with nothing fetched, `pin` with nothing pinned, and
        /// `unmount --wait` did not unmount.
        @Test(.timeLimit(.minutes(3)))
        func aFolderThatCannotBeListedHoldsUpNothingElse() async throws {
            try await mounted([]) { domain in
                try await domain.shell(
                    """
                    state() { getfattr --only-values -n user.promisefs.$1 "$M/$2"; }
                    echo 'method=PROPFIND path=/locked/ status=403' > "$RULES"
                    rc=0; "$P" fetch "$M" > "$T/out" 2> "$T/said" || rc=$?; cat "$T/out" "$T/said"; [ $rc = 5 ]
                    grep -q '2 files here' "$T/out"; [ "$(grep -c "/locked: " "$T/said")" = 1 ]
                    [ "$(state state open/in)" = current ]; [ "$(state state last)" = current ]
                    not "$P" fetch --json "$M" > "$T/out" 2> /dev/null; grep '"done"' "$T/out" | grep -q '"path":"/locked"'
                    rc=0; "$P" pin "$M" 2> "$T/said" || rc=$?; [ $rc = 5 ]; grep -q locked "$T/said"
                    [ "$(state pin open/in)" = pinned ]; [ "$(state pin locked)" = pinned ]
                    : > "$RULES"; within 20 '[ "$(cat "$M/locked/in")" = x ]'
                    "$P" fetch "$M" | grep -q 'everything was here already'
                    """, seconds: 60)
            }
        }

        @Test(.timeLimit(.minutes(3)))
        func anUnmountThatWaitsUnmountsAlsoWhenThereIsTrouble() async throws {
            try await mounted([]) { domain in
                try await domain.shell(
                    """
                    echo 'method=PROPFIND path=/locked/ status=403' > "$RULES"; not ls "$M/locked"
                    echo sent > "$M/open/new"; "$P" unmount --wait --timeout 20s "$M"; not mountpoint -q "$M"
                    [ "$(cat "$C/open/new")" = sent ]
                    """, seconds: 60)
            }
        }

        /// It ended with 1, as for a failure of its own; what is full only waits.
        @Test(.timeLimit(.minutes(3)))
        func aWaitForWhatIsRefusedEndsWithRefused() async throws {
            try await mounted([]) { domain in
                try await domain.shell(
                    """
                    cat "$M/last" > /dev/null
                    printf 'method=%s status=403\n' PUT LOCK MKCOL > "$RULES"; mkdir "$M/made"; echo more >> "$M/last"
                    rc=0; "$P" sync --wait "$M" 2> "$T/said" || rc=$?; cat "$T/said"; [ $rc = 5 ]; grep -q 403 "$T/said"
                    : > "$RULES"; "$P" sync --wait "$M"; [ -d "$C/made" ]
                    echo 'method=PUT status=507' > "$RULES"; echo full >> "$M/last"
                    rc=0; "$P" sync --wait "$M" 2> "$T/said" || rc=$?; cat "$T/said"; [ $rc = 7 ]
                    : > "$RULES"; "$P" sync --wait "$M"; [ "$(tail -n 1 "$C/last")" = full ]
                    """, seconds: 90)
            }
        }

        /// Apache keeps the name for itself. The folder was looked at again and again, which counted as progress, so neither
        /// command ever ended.
        @Test(.timeLimit(.minutes(3)))
        func aWaitForWhatIsInARefusedFolderEnds() async throws {
            try await mounted([]) { domain in
                try await domain.shell(
                    """
                    mkdir "$M/open/.DAV"; echo y > "$M/open/.DAV/f"
                    rc=0; timeout 45 "$P" sync --wait "$M" 2> "$T/said" || rc=$?; cat "$T/said"; [ $rc = 5 ]
                    grep -q 403 "$T/said"
                    rc=0; timeout 30 "$P" unmount --wait "$M" 2> "$T/said" || rc=$?; cat "$T/said"; [ $rc != 124 ]
                    """, seconds: 100)
            }
        }

        /// They took six seconds, whatever was given, and what waited was "queued" without a reason.
        @Test(.timeLimit(.minutes(3)))
        func aTimeGivenHoldsAndWhatWaitsSaysWhyWhileTheServerIsSilent() async throws {
            try await mounted(["--poll-interval", "1s"]) { domain in
                try await domain.shell(
                    """
                    cat "$M/last" > /dev/null; echo hang > "$RULES"; not timeout 25 cat "$M/open/in" 2> "$T/said"
                    grep -Eq 'Network is down' "$T/said"
                    echo more >> "$M/last"
                    within 10 '"$P" status "$M" | grep -q "connection *offline"'; "$P" pending "$M" > "$T/out"; cat "$T/out"
                    grep -Eq 'waits .*does not answer' "$T/out"
                    # Each one of those took six seconds; this machine may be held up for some of them.
                    ends() {
                        local rc=0 began=$(date +%s%N); "$P" sync --wait --timeout 1s "$M" 2> /dev/null || rc=$?
                        [ $rc = 4 ] && [ $(( ($(date +%s%N) - began) / 1000000 )) -lt 4000 ]
                    }
                    within 30 ends
                    : > "$RULES"; "$P" sync --wait "$M"; [ "$(tail -n 1 "$C/last")" = more ]
                    """, seconds: 90)
            }
        }
    }
}
