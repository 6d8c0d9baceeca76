import Logging
import PromiseProvider
import PromiseRclone
import PromiseSystem
import PromiseTestSupport
import Testing

/// What a remote is asked to see whether the folder that is mounted is there.
struct RootQuestionTests {
    /// Speaks as rclone does of the folder `remote` beside it, and writes down what the storage is asked.
    private static let program = """
        #!/usr/bin/env python3
        import http.server, json, os, sys

        folder = os.path.dirname(os.path.abspath(__file__))
        root = folder + "/remote"
        if "listremotes" in sys.argv:
            print("work:")
            sys.exit()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self, status, body, **headers):
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body.encode())

            def read(self):
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))

            def do_POST(self):
                question = json.loads(self.read() or b"{}")
                command, place = self.path.strip("/"), question.get("remote", "")
                if command in ("operations/list", "operations/stat"):
                    with open(folder + "/asked", "a") as asked:
                        asked.write(f"{command[11:]} {place}".strip() + "\\n")
                path = os.path.join(root, place)
                if command == "operations/list" and not os.path.isdir(path):
                    return self.answer(404, json.dumps({"error": "error in ListJSON: directory not found"}))
                if command == "operations/list":
                    return self.answer(200, json.dumps({"list": [{"Name": name} for name in sorted(os.listdir(path))]}))
                if command == "operations/stat" and os.path.exists(folder + "/refused-" + place):
                    return self.answer(500, json.dumps({"error": "AccessDenied: 403 Forbidden"}))
                if command == "operations/stat":
                    item = {"Name": os.path.basename(place)} if os.path.exists(path) else None
                    return self.answer(200, json.dumps({"item": item}))
                if command == "operations/about":
                    return self.answer(500, json.dumps({"error": "it does not tell"}))
                self.answer(200, "{}")

            def do_OPTIONS(self):
                self.read()
                self.answer(200, "", DAV="1")

            def do_PROPFIND(self):
                self.read()
                properties = "<prop><resourcetype><collection/></resourcetype></prop><status>HTTP/1.1 200 OK</status>"
                row = f"<response><href>{self.path}</href><propstat>{properties}</propstat></response>"
                self.answer(207, f'<multistatus xmlns="DAV:">{row}</multistatus>')

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        for what in ("Serving remote control", "remote: WebDav Server started"):
            print(f"2026/11/28 05:31:15 NOTICE: {what} on http://127.0.0.1:{server.server_port}/", file=sys.stderr, flush=True)
        server.serve_forever()
        """

    private static func folder() throws -> TemporaryFolder {
        let folder = try TemporaryFolder("rclone")
        try folder.write(Array(program.utf8), to: "rclone", mode: 0o755)
        try folder.makeFolder("remote")
        try folder.write("1", to: "remote/a")
        try folder.write("2", to: "remote/b")
        return folder
    }

    private static func provider(_ folder: TemporaryFolder) throws -> RcloneProvider {
        try RcloneProvider(
            location: try RcloneLocation(parsing: "rclone:work:x") { () throws(ProviderError) in ["work"] },
            program: RcloneProgram(path: folder.path("rclone")), stateFolder: nil, mayProbe: false,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }

    /// What the storage was asked since the last call.
    private static func asked(_ folder: TemporaryFolder) throws -> [Substring] {
        defer { try? unlink(folder.path("asked"), label: "test.forget") }
        return String(decoding: try folder.read("asked"), as: UTF8.self).split(separator: "\n")
    }

    /// A root file that could be listed and not looked at made every second check of the root fail.
    @Test(.timeLimit(.minutes(2))) func aFileThatCannotBeLookedAtDoesNotHideTheRoot() async throws {
        let folder = try Self.folder()
        let provider = try Self.provider(folder)
        try folder.write("", to: "refused-b")
        _ = try await provider.root()
        #expect(try Self.asked(folder) == ["list"])
        for questions in [["stat b", "list"], ["stat a"], ["stat a"]] {
            _ = try await provider.root()
            #expect(try Self.asked(folder).map(String.init) == questions)
        }
        // Where none can be looked at, it is listed.
        try folder.write("", to: "refused-a")
        for questions in [["stat a", "list"], ["stat b", "list"], ["list"], ["list"]] {
            _ = try await provider.root()
            #expect(try Self.asked(folder).map(String.init) == questions)
        }
    }

    /// A root with very many items was listed whole, each time that somebody changed something.
    @Test(.timeLimit(.minutes(2))) func aRootIsListedOnceAndThenKnownByAFileInIt() async throws {
        let folder = try Self.folder()
        let provider = try Self.provider(folder)
        func asked() throws -> [Substring] { try Self.asked(folder) }
        _ = try await provider.root()
        #expect(try asked() == ["list"])
        _ = try await provider.root()
        #expect(try asked() == ["stat b"])
        // The folder is there when the file is gone.
        try unlink(folder.path("remote/b"), label: "test.remove")
        _ = try await provider.root()
        #expect(try asked() == ["stat b", "list"])
        try unlink(folder.path("remote/a"), label: "test.remove")
        for questions in [["stat a", "list"], ["list"]] {
            _ = try await provider.root()
            #expect(try asked().map(String.init) == questions)
        }
        try unlink(folder.path("remote"), isFolder: true, label: "test.remove")
        let refusal = await #expect(throws: ProviderError.self) { try await provider.root() }
        #expect(refusal?.code == .offline && refusal?.message.contains("finds no folder at 'work:x'") == true)
        #expect(try asked() == ["list"])
    }
}
