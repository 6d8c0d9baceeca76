import Logging
import PromiseAccess
import PromiseControl
import PromiseWire
import Testing

/// Who asks is known by the socket, whatever a request says.
@Suite struct PrincipalTests {
    private func withAnswerer(
        of application: String?, _ body: (ControlServer.Answerer) async throws -> Void
    ) async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        let server = ControlServer(
            service: FakeService(isQuick: true, values: folder.path + "/values"), socketPath: "/none",
            application: application.map { .application($0, launch: LaunchID("1")) }, logger: logger)
        try await body(ControlServer.Answerer(server))
    }

    private func expect(
        _ status: Int, _ answerer: ControlServer.Answerer, _ method: String, _ target: String,
        _ body: String = ""
    ) async throws {
        let answer = try await answerer.answer(method, target, body: Array(body.utf8))
        #expect(answer.status == status, "\(method) \(target) \(body)")
    }

    private func value(of application: String) -> String {
        "{\"application\":\"\(application)\",\"key\":\"a\",\"value\":{\"bool\":true}}"
    }

    @Test func anApplicationsSocketGivesWhatIsItsOwnAndNothingElse() async throws {
        try await withAnswerer(of: "com.example.editor") { answerer in
            try await expect(200, answerer, "POST", "/v1/values", value(of: "com.example.editor"))
            try await expect(403, answerer, "POST", "/v1/values", value(of: "com.example.other"))
            try await expect(403, answerer, "GET", "/v1/values?application=com.example.other")
            for target in ["/v1/status", "/v1/items?path=/", "/v1/valuesOfAll", "/v1/pending", "/v1/nothing"] {
                try await expect(403, answerer, "GET", target)
            }
            try await expect(403, answerer, "POST", "/v1/unmount", "{}")
        }
    }

    @Test func theOwnerMayActForEveryApplication() async throws {
        try await withAnswerer(of: nil) { answerer in
            try await expect(200, answerer, "POST", "/v1/values", value(of: "com.example.editor"))
            try await expect(200, answerer, "POST", "/v1/values", value(of: "com.example.other"))
            try await expect(200, answerer, "GET", "/v1/status")
        }
    }
}
