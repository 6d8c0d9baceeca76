import Foundation
import Logging
import NIOCore
import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseS3
import PromiseSystem
import PromiseTestSupport
import Testing

/// What is sent over an open network is hashed by threads that may take their time.
struct BodyHashTests {
    /// The end of an upload of ten thousand parts has a megabyte of tags.
    @Test func aLargeBodyIsHashedByThePool() async throws {
        let server = ScriptedServer { _ in reply("200 OK", ["ETag: \"t\""]) }
        defer { server.stop() }
        let pool = BlockingPool(manual: "bodies")
        let key = AccessKey(identifier: "key", secret: Secret("secret"))
        let client = try S3Client(
            location: try S3Location(parsing: "s3://bucket/?endpoint=http://" + "0.0.0.0:\(server.port)"),
            credentials: AccessKeySource(given: key, own: CredentialSource()), pool: pool,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, clock: SystemClock())
        var request = S3Request(.PUT, Array("key".utf8))
        request.body = ByteBuffer(repeating: 1, count: 1 << 20)
        let task = Task { [request] in try await client.exchange(request).status }
        for _ in 0..<30_000 where !pool.hasJobs { try await Task.sleep(for: .milliseconds(1)) }
        try #require(pool.runNext())
        #expect(try await task.value == 200)
        // SHA-256 of those bytes.
        let hash = "ee78cd29d3a534713b36e6ff6fa3668c8a8f851a542d5eb2401c25ca4e057d02"
        #expect(server.requests.last?.lowercased().contains("x-amz-content-sha256: \(hash)") == true)
    }

    /// A page of megabytes was read for its reason at each try.
    @Test func aLongAnswerSaysNoReason() {
        let error = "<Error><Code>QuotaExceeded</Code></Error>"
        let long = error.replacing("</Error>", with: String(repeating: " ", count: 1 << 20) + "</Error>")
        func code(_ text: String) -> ProviderError.Code {
            S3Refusal(HTTPReply(status: 403, headers: [:], body: Data(text.utf8))).error("x").code
        }
        #expect(code(error) == .outOfSpace)
        #expect(code(long) == .refused)
    }
}
