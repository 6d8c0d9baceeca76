import Crypto
import Foundation
import NIOCore
package import NIOHTTP1
package import PromiseProvider
import Synchronization

/// What a content hashes to, as a server says.
package struct ContentDigest: Sendable, Hashable {
    /// The strongest first.
    package enum Algorithm: String, Sendable, CaseIterable { case sha256, sha1, md5, crc64nvme, crc32c, crc32 }

    package let algorithm: Algorithm
    let value: [UInt8]

    package init(_ algorithm: Algorithm, _ value: [UInt8]) { (self.algorithm, self.value) = (algorithm, value) }

    /// Of `OC-Checksum` as Nextcloud and ownCloud send it, `SHA1:<hexadecimal> MD5:…`; nil when nothing in it is known here.
    package init?(ownCloud text: String?) {
        let known = (text ?? "").split(separator: " ").compactMap { word -> ContentDigest? in
            let parts = word.split(separator: ":")
            guard parts.count == 2, let algorithm = Algorithm(rawValue: parts[0].lowercased()),
                let value = PercentEncoding.decoded(hexadecimal: parts[1]), value.count == algorithm.byteCount
            else { return nil }
            return ContentDigest(algorithm, value)
        }
        self.init(strongest: known)
    }

    /// For `OC-Checksum`, of what a request carries. Blocking.
    package static func ownCloud(of body: RequestBody) throws(ProviderError) -> String {
        var hash = Insecure.SHA1()
        switch body {
        case .bytes(let buffer, _): buffer.withUnsafeReadableBytes { hash.update(bufferPointer: $0) }
        case .file(let file):
            var position: UInt64 = 0
            while position < file.source.size {
                let piece = try file.read(at: position, min(FileBody.pieceByteCount, file.source.size - position))
                piece.withUnsafeReadableBytes { hash.update(bufferPointer: $0) }
                position += UInt64(piece.readableBytes)
            }
        }
        return "SHA1:" + hexadecimalText(hash.finalize())
    }

    /// Of `x-amz-checksum-…`; nil when there is none that is known here. One of parts, which ends with their number, is no hash
    /// of the content. <https://docs.aws.amazon.com/AmazonS3/latest/userguide/checking-object-integrity.html>
    package init?(amazon headers: HTTPHeaders) {
        guard headers.first(name: "x-amz-checksum-type")?.uppercased() != "COMPOSITE" else { return nil }
        let known = Algorithm.allCases.compactMap { algorithm -> ContentDigest? in
            guard let text = headers.first(name: ContentDigest.amazonHeader(algorithm)), let value = Data(base64Encoded: text),
                value.count == algorithm.byteCount
            else { return nil }
            return ContentDigest(algorithm, Array(value))
        }
        self.init(strongest: known)
    }

    private init?(strongest known: [ContentDigest]) {
        let found = Algorithm.allCases.lazy.compactMap { algorithm in known.first { $0.algorithm == algorithm } }.first
        guard let found else { return nil }
        self = found
    }

    package static func amazonHeader(_ algorithm: Algorithm) -> String { "x-amz-checksum-\(algorithm.rawValue)" }
}

extension ContentDigest.Algorithm {
    var byteCount: Int {
        switch self {
        case .sha256: SHA256.byteCount
        case .sha1: Insecure.SHA1.byteCount
        case .md5: Insecure.MD5.byteCount
        case .crc64nvme, .crc32c, .crc32: check?.byteCount ?? 0
        }
    }

    private var check: CyclicRedundancyCheck.Kind? {
        switch self {
        case .crc64nvme: .crc64nvme
        case .crc32c: .crc32c
        case .crc32: .crc32
        default: nil
        }
    }

    fileprivate var sum: RunningSum {
        if let check { return .check(CyclicRedundancyCheck(check)) }
        return switch self {
        case .sha256: .hash(SHA256())
        case .sha1: .hash(Insecure.SHA1())
        default: .hash(Insecure.MD5())
        }
    }
}

/// Of the bytes that have come.
private enum RunningSum {
    case hash(any HashFunction)
    case check(CyclicRedundancyCheck)

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        switch self {
        case .hash(var hash):
            hash.update(bufferPointer: bytes)
            self = .hash(hash)
        case .check(var check):
            check.update(bytes)
            self = .check(check)
        }
    }

    var bytes: [UInt8] {
        switch self {
        case .hash(let hash): hash.finalizedBytes()
        case .check(let check): check.bytes
        }
    }
}

/// Passes a whole content on and hashes it on its way. Bytes must come in order, one piece after the other.
package final class VerifyingSink: ContentSink {
    private struct State {
        var sum: RunningSum
        /// Nil: not in order, so nothing can be said.
        var position: UInt64? = 0
    }

    private let sink: any ContentSink
    private let expected: ContentDigest
    private let state: Mutex<State>

    package init(_ sink: any ContentSink, _ expected: ContentDigest) {
        self.sink = sink
        self.expected = expected
        state = Mutex(State(sum: expected.algorithm.sum))
    }

    package func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(ProviderError) {
        try sink.write(bytes, at: offset)
        state.withLock { state in
            guard state.position == offset else { return state.position = nil }
            state.sum.update(bytes)
            state.position = offset + UInt64(bytes.count)
        }
    }

    package func copy(
        from descriptor: Int32, at sourceOffset: UInt64, to offset: UInt64, count: UInt64
    ) throws(ProviderError) -> UInt64 {
        state.withLock { $0.position = nil }
        return try sink.copy(from: descriptor, at: sourceOffset, to: offset, count: count)
    }

    /// To be called when all has come. Throws `.corrupted` when it is not what the server said.
    package func verify(_ what: String) throws(ProviderError) {
        let found: [UInt8]? = state.withLock { state in state.position == nil ? nil : state.sum.bytes }
        guard found == nil || found == expected.value else {
            throw ProviderError(.corrupted, "\(what): its \(expected.algorithm) is not the one that the server names")
        }
    }
}

extension HashFunction {
    fileprivate func finalizedBytes() -> [UInt8] { Array(finalize()) }
}
