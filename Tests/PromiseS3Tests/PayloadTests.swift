import Foundation
import Logging
import PromiseCore
import PromiseProvider
import PromiseS3
import PromiseTestSupport
import Testing

/// What uploads say of the bytes that they carry: a hash in the signature where somebody on the way could change them.
struct PayloadTests {
    private static let unsigned = "UNSIGNED-PAYLOAD"

    @Test(arguments: [
        ("http://127.0.0.1:1", false), ("http://" + "127.3.2.1", false), ("http://[::1]:1", false), ("http://localhost:1", false),
        ("http://localhost:1&style=virtual", false), ("https://localhost", false), ("https://example.com", false),
        ("http://example.com", true), ("http://" + "0.0.0.0:1", true), ("http://" + "127.0.0.1.example.com", true),
    ])
    func thePayloadIsSignedOverAnOpenNetworkOnly(endpoint: String, isSigned: Bool) throws {
        #expect(try S3Location(parsing: "s3://bucket/?endpoint=\(endpoint)").signsPayload == isSigned)
        #expect(try !S3Location(parsing: "s3://bucket/").signsPayload)
    }

    private func header(_ head: String, _ name: String) -> String? {
        head.split(separator: "\r\n").first { $0.lowercased().hasPrefix(name + ":") }
            .map { String($0.drop { $0 != ":" }.dropFirst().drop { $0 == " " }) }
    }

    /// The heads of the requests that carry content, of an upload of so many bytes to the server under this name.
    private func upload(_ size: UInt64, host: String) async throws -> [String] {
        let server = ScriptedServer { request in
            if request.method == "POST", request.path.contains("uploads") {
                return reply("200 OK", [], "<InitiateUploadResult><UploadId>u</UploadId></InitiateUploadResult>")
            }
            if request.method == "POST" {
                return reply(
                    "200 OK", [], "<CompleteMultipartUploadResult><ETag>&quot;t&quot;</ETag></CompleteMultipartUploadResult>")
            }
            if request.method == "PUT" { return reply("200 OK", ["ETag: \"t\""]) }
            if request.path.contains("list-type") {
                return reply("200 OK", [], "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>")
            }
            // What is looked at is there once it has been sent.
            return request.path.hasSuffix("/known") ? reply("200 OK", ["ETag: \"t\""], length: Int(size)) : reply("404 Not Found")
        }
        defer { server.stop() }
        let key = AccessKey(identifier: "key", secret: Secret("secret"))
        let provider = try S3Provider(
            location: try S3Location(parsing: "s3://bucket/?endpoint=http://\(host):\(server.port)"),
            credentials: AccessKeySource(given: key, own: CredentialSource()), stateFolder: nil, mayProbe: false,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        try await provider.connect()
        let name = try #require(FileName("known"))
        let reference = ItemReference(identifier: ItemIdentifier("/known"), path: [name])
        _ = try await provider.modify(
            reference, changes: ItemChanges(), contents: try MemorySource(size: size, pieces: []), baseVersion: nil)
        return server.requests.filter { $0.hasPrefix("PUT ") }
    }

    /// The second name is this machine, too, but does not say so.
    @Test(arguments: [("127.0.0.1", true), ("0.0.0.0", false)])
    func partsCarryAHashUnlessTheyStayOnThisMachine(host: String, staysHere: Bool) async throws {
        let heads = try await upload(17 << 20, host: host)
        #expect(heads.count == 3)
        for head in heads {
            let hash = try #require(header(head, "x-amz-content-sha256"))
            #expect(staysHere ? hash == Self.unsigned : hash.count == 64)
            #expect(header(head, "content-md5") == nil)
        }
    }

    /// The server compares it with what it stores, wherever it is.
    @Test(arguments: [("127.0.0.1", true), ("0.0.0.0", false)])
    func aWholeContentHasAChecksumEverywhere(host: String, staysHere: Bool) async throws {
        let head = try #require(try await upload(1000, host: host).first)
        let hash = try #require(header(head, "x-amz-content-sha256"))
        #expect(staysHere ? hash == Self.unsigned : hash == "541b3e9daa09b20bf85fa273e5cbd3e80185aa4ec298e765db87742b70138a53")
        #expect(header(head, "content-md5") == Data(hexadecimal(of: "ede3d3b685b4e137ba4cb2521329a75e")).base64EncodedString())
    }

    private func hexadecimal(of text: String) -> [UInt8] {
        stride(from: 0, to: text.count, by: 2).compactMap { UInt8(text.dropFirst($0).prefix(2), radix: 16) }
    }
}
