import Foundation
import Testing

/// A server that is far away: a round trip in milliseconds, and a file with each request that passed.
struct Distance: Sendable {
    let port: Int
    let log: String

    static func with(
        port near: Int, _ milliseconds: Int, in folder: String, _ body: (Distance) async throws -> Void
    ) async throws {
        let started = try await runShell(
            """
            mkdir -p '\(folder)'; cd '\(folder)'; : > requests
            setsid '\(Machine.repository)/scripts/servers/distance' \(near) \(milliseconds) port --log requests \
                < /dev/null > log 2>&1 &
            process=$!; within 20 '[ -e port ]'; echo "$process $(cat port)"
            """)
        let numbers = started.text.split(separator: " ").compactMap { Int($0) }
        guard started.status == 0, numbers.count == 2 else { throw HarnessError("no proxy: \(started.errorText)") }
        let result: Result<Void, any Error>
        do {
            result = .success(try await body(Distance(port: numbers[1], log: folder + "/requests")))
        } catch {
            result = .failure(error)
        }
        kill(pid_t(numbers[0]), SIGKILL)
        try result.get()
    }
}

extension MountSuites {
    /// How many requests a server is asked for ordinary things.
    @Suite(.enabled(if: WebDAVServer.canRun, "there is no apache2, so there is no server to mount"))
    struct ErrandTests {
        /// `$LOG` has a line for each request.
        private func withDistance(
            _ milliseconds: Int, prepare: String = "echo text > \"$C/there\"", mounts: Bool = true,
            _ body: (MountedDomain) async throws -> Void
        ) async throws {
            try await WebDAVServer.with { server in
                let near = URL(string: server.address)?.port ?? 0
                try await Distance.with(port: near, milliseconds, in: server.root + "/distance") { distance in
                    var options = server.options(["--poll-interval", "1h", "--upload-delay", "50ms"])
                    options.provider = "webdav+http://127.0.0.1:\(distance.port)/"
                    options.environment["LOG"] = distance.log
                    options.prepare = prepare + "; chown -R www-data: \"$C\"/*"
                    try await MountedDomain.with(options, mounts: mounts) { domain in try await body(domain) }
                }
            }
        }

        private func count(_ pattern: String, _ domain: MountedDomain) async throws -> Int {
            Int(try await domain.shell("grep -c -- '\(pattern)' \"$LOG\" || true").text) ?? -1
        }

        /// 115 came before the mount was there, which took 10 s and more where each takes 100 ms.
        @Test(.timeLimit(.minutes(2))) func aFirstMountAsksForWhatItsFirstListingNeeds() async throws {
            let prepare = "for n in $(seq 20); do echo $n > \"$C/file $n\"; done"
            try await withDistance(50, prepare: prepare, mounts: false) { domain in
                try await domain.shell("\(domain.mountCommand); [ \"$(ls \"$M\" | wc -l)\" = 20 ]")
                let asked = try await domain.shell("cat \"$LOG\"").text
                #expect((1...6).contains(asked.split(separator: "\n").count), "\(asked)")
                #expect(!asked.contains("PUT") && !asked.contains("MKCOL"), "\(asked)")
                // What is written then comes there, as it is known by then what the server does.
                try await domain.shell("echo text > \"$M/new\"; ln -s new \"$M/link\"")
                try await domain.synchronize()
                try await domain.shell("[ \"$(cat \"$C/new\")\" = text ]; [ -e \"$C/link\" ]")
            }
        }

        @Test(.timeLimit(.minutes(3))) func smallErrandsCostFewRequests() async throws {
            try await withDistance(0) { domain in
                // The first one says in the folder that something is kept there.
                try await domain.shell("echo text > \"$M/first\"")
                try await domain.synchronize()
                try await domain.shell("echo text > \"$M/one\"")
                try await domain.synchronize()
                // Apache's answer to PUT tells no tag, so that the content is read again; and its mode is kept.
                #expect(try await count(" /one ", domain) == 3)
                try await domain.shell("mv \"$M/one\" \"$M/two\"")
                try await domain.synchronize()
                #expect(try await count(" /one ", domain) == 4)
                #expect(try await count(" /two ", domain) == 1)
                try await domain.shell("rm \"$M/two\"")
                try await domain.synchronize()
                #expect(try await count(" /two ", domain) == 2)
                #expect(try await count("DELETE /two ", domain) == 1)
            }
        }

        /// 80 requests.
        @Test(.timeLimit(.minutes(3))) func aLargeFileThatIsReadInOrderIsFetchedByFewRequests() async throws {
            let prepare = "head -c 256M /dev/urandom > \"$C/large\"; echo text > \"$C/small\""
            try await withDistance(180, prepare: prepare) { domain in
                try await domain.shell("cat \"$M/small\" > /dev/null; cmp \"$M/large\" \"$C/large\"", seconds: 120)
                let count = try await count("GET /large ", domain)
                #expect(count <= 16, "\(count) requests")
            }
        }
    }
}
