import Logging
import PromiseControl
import PromiseWire
import Testing

@Suite struct LimitRequestTests {
    /// A rate under which nothing could be sent ended with 1, as if it had been tried.
    @Test(arguments: [LimitsRequest(upload: "1"), LimitsRequest(download: "much")])
    func aLimitThatIsNoneIsBadInput(limits: LimitsRequest) async throws {
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        let service = FakeService()
        let server = ControlServer(service: service, socketPath: "/none", logger: logger)
        let reply = try await ControlServer.Answerer(server).answer(
            "POST", "/v1/limits", body: WireCoding.bytes(limits))
        #expect(reply.status == 400 && service.calls.isEmpty)
        let problem = WireCoding.decode(ProblemDocument.self, from: reply.body)
        #expect(problem?.exitStatus == 2)
    }
}
