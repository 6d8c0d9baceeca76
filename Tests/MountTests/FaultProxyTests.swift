import Foundation
import Testing

/// A proxy in front of a real server that breaks what passes through it as its rules say.
struct FaultProxy: Sendable {
    let port: Int
    /// The file that scripts write rules into.
    let rules: String
    /// The file that says what has passed.
    var counts: String { rules + ".counts" }

    static func with(_ server: WebDAVServer, tls: Bool = false, _ body: (FaultProxy) async throws -> Void) async throws {
        let folder = server.root + "/proxy"
        let certificate = """
            openssl req -newkey rsa:2048 -nodes -keyout key -subj /CN=127.0.0.1 -out request 2> /dev/null
            openssl x509 -req -in request -signkey key -days -1 -out certificate 2> /dev/null; cat key >> certificate
            """
        let port = URL(string: server.address)?.port ?? 0
        let started = try await runShell(
            """
            mkdir -p '\(folder)'; cd '\(folder)'; : > rules; \(tls ? certificate : ":")
            setsid '\(Machine.repository)/scripts/servers/fault-proxy' \(port) rules port --counts rules.counts \
                \(tls ? "--certificate certificate" : "") < /dev/null > log 2>&1 &
            process=$!; within 20 '[ -e port ]'; echo "$process $(cat port)"
            """)
        let numbers = started.text.split(separator: " ").compactMap { Int($0) }
        guard started.status == 0, numbers.count == 2 else { throw HarnessError("no proxy: \(started.errorText)") }
        let result: Result<Void, any Error>
        do {
            result = .success(try await body(FaultProxy(port: numbers[1], rules: folder + "/rules")))
        } catch {
            result = .failure(error)
        }
        kill(pid_t(numbers[0]), SIGKILL)
        try result.get()
    }
}

extension MountSuites {
    /// A real Apache behind a proxy that refuses, resets, hangs, drips and lies: errnos as documented, nothing lost, nothing
    /// twice, and all well again without a restart.
    @Suite(.enabled(if: WebDAVServer.canRun, "there is no apache2, so there is no server to mount"))
    struct FaultProxyTests {
        private func mounted(
            _ arguments: [String], prepare: String, _ body: (MountedDomain) async throws -> Void
        ) async throws {
            try await WebDAVServer.with { server in
                try await FaultProxy.with(server) { proxy in
                    var options = server.options(arguments)
                    options.provider = "webdav+http://127.0.0.1:\(proxy.port)/"
                    options.environment["RULES"] = proxy.rules
                    options.environment["COUNTS"] = proxy.counts
                    options.prepare = prepare + "; chown -R www-data: \"$C\"/*"
                    try await MountedDomain.with(options) { domain in try await body(domain) }
                }
            }
        }

        /// Whatever is put off is tried again by a look at the provider.
        private static let settled = """
            within 90 '"$P" sync "$M" > /dev/null && sleep 0.2 && "$P" pending "$M" | grep -q "nothing is pending"'
            """

        @Test(.timeLimit(.minutes(4))) func everyRefusalHasItsErrnoAndLosesNothing() async throws {
            let refusals = "403 404 409 412 423 429 500 503 507"
            let prepare = """
                for n in 401 \(refusals); do
                    mkdir "$C/read-$n"; echo "read $n" > "$C/read-$n/file"; echo old > "$C/edit-$n"
                done
                """
            try await mounted(["--request-deadline", "20s"], prepare: prepare) { domain in
                try await domain.shell(
                    """
                    ls -R "$M" > /dev/null
                    # Nobody fetches them as neighbours.
                    setfattr -n user.promisefs.pin -v online-only "$M"/read-*
                    for n in 401 \(refusals); do echo "status=$n retry-after=1 method=GET path=read-$n count=1"; done > "$RULES"
                    expect() { not cat "$M/read-$1/file" 2> "$T/err"; grep -q "$2" "$T/err" || { cat "$T/err" >&2; false; }; }
                    # What may pass is tried again before anybody hears of it.
                    for n in 404 409 412 423 429 500 503; do [ "$(cat "$M/read-$n/file")" = "read $n" ] & readers+=" $!"; done
                    expect 403 'Permission denied'; expect 507 'Disk quota exceeded'
                    for reader in $readers; do wait $reader; done
                    expect 401 'Permission denied'
                    for n in 401 \(refusals); do within 20 '[ "$(cat "$M/read-'$n'/file")" = "read '$n'" ]'; done
                    setfattr -n user.promisefs.pin -v automatic "$M"/read-*
                    """, seconds: 120)
                // Each status is met once by each kind of request, while twenty files are on their way. Not by DELETE and LOCK:
                // what a server falsely says to be gone is taken for removed, and comes back.
                let methods = Machine.isFullScale ? "PUT MOVE PROPPATCH MKCOL" : "PUT"
                let statuses = Machine.isFullScale ? refusals : "403 412 503 507"
                try await domain.shell(
                    """
                    cp -r "$M" "$T/model"
                    for method in \(methods); do
                        for n in 401 \(statuses); do echo "status=$n retry-after=1 method=$method count=1"; done
                    done > "$RULES"
                    for folder in "$M" "$T/model"; do
                        cd "$folder"; mkdir made
                        for n in 401 \(refusals); do
                            echo "new $n" > made/new-$n; echo "edited $n" > edit-$n; mv read-$n made/
                        done
                        rm -r made/read-403
                    done
                    cd /; \(Self.settled)
                    """, seconds: 150)
                try await domain.shell(": > \"$RULES\"; \(WebDAVServer.equality); diff -r \"$T/model\" \"$M\"")
            }
        }

        /// Four parts and a bit. The daemon is killed while the third one is on its way.
        @Test(.timeLimit(.minutes(3))) func aLargeUploadIsGoneOnWithByTheNextDaemon() async throws {
            let sent = """
                sent() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1])).get("PUT sent", 0) >> 20)' "$COUNTS"; }
                """
            try await mounted([], prepare: "echo old > \"$C/old\"") { domain in
                try await domain.shell(
                    """
                    \(sent)
                    echo 'method=PUT path=uploads/promisefs count=2 latency=0' > "$RULES"
                    echo 'method=PUT path=uploads bandwidth=2000000' >> "$RULES"
                    head -c 33M /dev/urandom > "$M/large"
                    within 60 '[ "$(sent)" -ge 17 ]'
                    """)
                try await domain.kill9()
                try await domain.shell(": > \"$RULES\"")
                try await domain.remount()
                try await domain.shell(Self.settled, seconds: 100)
                try await domain.shell(
                    """
                    \(sent)
                    again=$(( $(sent) - 33 )); [ "$again" -le 9 ]
                    cmp "$C/large" "$M/large"; [ -z "$(ls "$C/.promisefs/uploads")" ]
                    """)
            }
        }

        @Test(.timeLimit(.minutes(4))) func brokenConnectionsLoseNothingAndDoubleNothing() async throws {
            let prepare = """
                for n in reset close longer shorter; do head -c 3M /dev/urandom > "$C/$n"; done; mkdir "$C/old"
                for n in hang drip good gone; do head -c 400 /dev/urandom > "$C/$n"; done
                """
            try await mounted(["--request-deadline", "4s"], prepare: prepare) { domain in
                try await domain.shell(
                    """
                    ls "$M" "$M/old" > /dev/null
                    cat > "$RULES" <<END
                    method=GET path=/reset reset-reply=100000 count=2
                    method=GET path=/close close-reply=100000 count=1
                    method=GET path=/longer length=1000 count=1
                    method=GET path=/shorter length=-1000 count=1
                    method=GET path=/hang hang
                    method=GET path=/drip drip
                    END
                    for n in hang drip; do
                        (not timeout 15 cat "$M/$n" 2> "$T/$n.err"; grep -q 'timed out' "$T/$n.err") & late+=" $!"
                    done
                    cmp "$M/good" "$C/good"
                    for n in reset close longer shorter; do within 30 'cmp "$M/'$n'" "$C/'$n'"'; done
                    for reader in $late; do wait $reader; done
                    : > "$RULES"; for n in hang drip; do within 40 'cmp "$M/'$n'" "$C/'$n'"'; done
                    """, seconds: 120)
                // Half a body goes up, and answers are lost although the server did what it was asked for.
                try await domain.shell(
                    """
                    {
                        echo "method=PUT reset-request=50000 count=2"
                        for m in PUT MOVE PROPPATCH MKCOL DELETE UNLOCK; do echo "method=$m reset-reply=0 count=1"; done
                        echo "latency=30 bandwidth=8000000"
                    } > "$RULES"
                    head -c 2M /dev/urandom > "$M/new"; mkdir "$M/folder"; mv "$M/reset" "$M/folder/moved"; rm "$M/gone"
                    for n in 1 2 3; do echo "$n" > "$M/folder/$n"; done; echo more >> "$M/good"; rmdir "$M/old"
                    mv "$M/close" "$M/c"; cp -r "$M" "$T/model"; \(Self.settled)
                    """, seconds: 150)
                try await domain.shell(": > \"$RULES\"; \(WebDAVServer.equality); diff -r \"$T/model\" \"$M\"")
            }
        }

        @Test(.timeLimit(.minutes(3)), .enabled(if: Machine.isFullScale))
        func aDownloadGoesOnWhereAKilledDaemonLeftIt() async throws {
            let size: UInt64 = 64 << 20
            try await mounted([], prepare: "head -c \(size) /dev/urandom > \"$C/large\"") { domain in
                try domain.setFaults(["bandwidth=12000000"])
                try await domain.shell("cat \"$M/large\" > /dev/null 2>&1 & sleep 3")
                let before = try await domain.status().bytesFetched
                try await domain.kill9()
                try domain.setFaults([])
                try await domain.remount()
                try await domain.shell("cmp \"$M/large\" \"$C/large\"", seconds: 60)
                let after = try await domain.status().bytesFetched
                #expect(before > 16 << 20 && after <= size - before + 8 << 20)
            }
        }

        @Test(.timeLimit(.minutes(2))) func unknownHostsAndBadCertificatesAreSaid() async throws {
            try await WebDAVServer.with { server in
                try await FaultProxy.with(server, tls: true) { proxy in
                    try await MountedDomain.with(server.options(), mounts: false) { domain in
                        let untrusted = try await domain.shell(
                            "\"$P\" provider check webdav+https://127.0.0.1:\(proxy.port)/", seconds: 40, status: 5)
                        #expect(untrusted.errorText.contains("cannot be trusted"))
                        let unknown = try await domain.shell(
                            "\"$P\" provider check webdav+http://nowhere.invalid/", seconds: 40, status: 4)
                        #expect(unknown.errorText.contains("cannot be reached"))
                    }
                }
            }
        }
    }
}
