import Glibc
import Logging
import PromiseCore
import PromiseExtension
import PromiseProvider
import PromiseSystem
import PromiseTestSupport
import Testing

/// The program of an extension: started with its socket, started again when it ends or hangs, ended with its provider.
struct ExtensionProcessTests {
    /// Says its own process number as the size of item 2; hangs when asked for item 3, ends when asked for item 4.
    private static let program = """
        #!/usr/bin/env python3
        import http.server, json, os, socketserver, sys, time
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            def do_GET(self):
                number = self.path.rsplit("/")[-1]
                if number == "3": time.sleep(60)
                if number == "4": print("giving up", flush=True); os._exit(3)
                body = {"identifier": "1", "name": "x", "kind": "folder", "capabilities": []}
                if number == "2": body.update(identifier="2", parent="1", kind="file", version="1", size=os.getpid())
                body = json.dumps(body).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            def log_message(self, *_): pass
        class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer): daemon_threads = True
        Server(os.environ["PROMISEFS_EXTENSION_SOCKET"], Handler).serve_forever()
        """

    private func reference(_ number: Int) -> ItemReference {
        ItemReference(identifier: ItemIdentifier("\(number)"), path: [FileName("x")!])
    }

    private func withProgram(
        isWrapped: Bool = false, prepare: (TemporaryFolder) throws -> Void = { _ in },
        _ body: (ExtensionProvider, TemporaryFolder) async throws -> Void
    ) async throws {
        let folder = try TemporaryFolder("program")
        try prepare(folder)
        try folder.write(Array(Self.program.utf8), to: isWrapped ? "inner" : "program", mode: 0o755)
        if isWrapped { try folder.write(Array("#!/bin/sh\n\"${0%/*}/inner\"\ntrue\n".utf8), to: "program", mode: 0o755) }
        var timeouts = ExtensionTimeouts()
        timeouts.idle = .seconds(1)
        var limits = ExtensionLife.Limits()
        limits.start = .seconds(60)
        limits.silences = 1
        let provider = try ExtensionProvider(
            location: try ExtensionLocation(parsing: "extension+exec:" + folder.string + "/program"),
            credentials: CredentialSource(), stateFolder: folder.path("state"),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, timeouts: timeouts, limits: limits)
        try await provider.connect()
        try await body(provider, folder)
    }

    private func process(_ provider: ExtensionProvider) async throws -> pid_t {
        for _ in 0..<1_200 {
            if let item = try? await provider.item(for: reference(2)) { return pid_t(item.size) }
            try await Task.sleep(for: .milliseconds(50))
        }
        throw ProviderError(.offline, "the program is not back")
    }

    private func expectEnd(of process: pid_t) async throws {
        for _ in 0..<1_200 {
            // One that nobody has asked for its status is there still, by its number.
            var program = [CChar](repeating: 0, count: 4096)
            if kill(process, 0) < 0 || readlink("/proc/\(process)/exe", &program, program.count) < 0 { return }
            try await Task.sleep(for: .milliseconds(50))
        }
        Issue.record("the program is still there")
    }

    @Test(.timeLimit(.minutes(2))) func aProgramThatEndsIsStartedAgain() async throws {
        try await withProgram { provider, folder in
            let first = try await process(provider)
            let found = await error { _ = try await provider.item(for: reference(4)) }
            #expect(found?.code == .retry && found?.message.contains("the extension 'program'") == true)
            let second = try await process(provider)
            #expect(second != first && kill(first, 0) < 0)
            #expect(try FileStatus.of(folder.path("state/extension"), label: "test.mode").permissions == 0o700)
        }
    }

    @Test(.timeLimit(.minutes(2))) func aProgramThatHangsIsKilledAndStartedAgain() async throws {
        try await withProgram { provider, _ in
            let first = try await process(provider)
            let found = await error { _ = try await provider.item(for: reference(3)) }
            #expect(found?.code == .retry && found?.message.contains("does not answer") == true)
            try await expectEnd(of: first)
            let second = try await process(provider)
            #expect(second != first)
        }
    }

    @Test(.timeLimit(.minutes(2))) func aProgramEndsWithItsProvider() async throws {
        var number: pid_t = 0
        try await withProgram { provider, _ in number = try await process(provider) }
        try await expectEnd(of: number)
    }

    /// A shell that does not `exec` is the program then, and what it started is what serves.
    @Test(.timeLimit(.minutes(2))) func whatAProgramStartedEndsWithItsProvider() async throws {
        var number: pid_t = 0
        try await withProgram(isWrapped: true) { provider, folder in
            number = try await process(provider)
            let noted = readSmallFile(folder.path("state/extension/socket.session"))
            #expect(noted == Array("\(getsid(number))\n".utf8))
        }
        try await expectEnd(of: number)
    }

    /// The kernel killed the program with its daemon, and not what it had started.
    @Test(.timeLimit(.minutes(5))) func whatAKilledDaemonLeftIsEndedBeforeTheNextStart() async throws {
        var left: pid_t = 0
        let leave = { (folder: TemporaryFolder) in
            let null = try Descriptor.open(Array("/dev/null".utf8), flags: O_RDWR, label: "test.null")
            let words = ["sleep", "600"].map { Array($0.utf8) }
            left = try BoundProcess.start(
                Array("/bin/sleep".utf8), arguments: words,
                environment: [Array("PROMISEFS_EXTENSION_SOCKET=\(folder.string)/state/extension/socket".utf8)],
                input: null.number, output: null.number, label: "test.start")
            try makeFolders(folder.path("state/extension"), label: "test.folder")
            try folder.write(Array("\(left)\n".utf8), to: "state/extension/socket.session", mode: 0o600)
        }
        try await withProgram(prepare: leave) { _, _ in
            var status: CInt = 0
            for _ in 0..<600 where waitpid(left, &status, WNOHANG) == 0 { try await Task.sleep(for: .milliseconds(50)) }
            #expect(status & 0x7F == SIGKILL)
        }
    }
}
