import Crypto
import Foundation
package import NIOCore
import PromiseHTTP
import PromiseProvider

/// What servers call a content, as far as they use MD5 for it: most do, unless they encrypt.
package enum PartDigest {
    /// For `Content-MD5`, and as a tag. Blocking.
    package static func of(_ bytes: ByteBuffer) -> (header: String, tag: String) {
        var hash = Insecure.MD5()
        bytes.withUnsafeReadableBytes { hash.update(bufferPointer: $0) }
        let digest = hash.finalize()
        return (Data(digest).base64EncodedString(), hexadecimalText(digest))
    }

    /// The same of a file, with its SHA-256 if it `isSigned`, a piece at a time: it may not fit into memory. Blocking.
    static func of(_ file: FileBody, isSigned: Bool) throws(ProviderError) -> (header: String, tag: String, hash: String?) {
        var (digest, hash) = (Insecure.MD5(), SHA256())
        var position: UInt64 = 0
        while position < file.source.size {
            let count = min(FileBody.pieceByteCount, file.source.size - position)
            let piece = try file.read(at: position, count)
            piece.withUnsafeReadableBytes { bytes in
                digest.update(bufferPointer: bytes)
                if isSigned { hash.update(bufferPointer: bytes) }
            }
            position += count
        }
        let whole = digest.finalize()
        return (Data(whole).base64EncodedString(), hexadecimalText(whole), isSigned ? hexadecimalText(hash.finalize()) : nil)
    }

    /// The tag of an object made of parts that have these tags; nil where a part's tag is no MD5.
    package static func ofParts(_ tags: [String]) -> String? {
        var all = Data()
        for tag in tags {
            guard let bytes = bytes(ofTag: tag) else { return nil }
            all.append(contentsOf: bytes)
        }
        return hexadecimalText(Insecure.MD5.hash(data: all)) + "-\(tags.count)"
    }

    package static func isDigest(_ tag: String) -> Bool { bytes(ofTag: tag) != nil }

    private static func bytes(ofTag tag: String) -> [UInt8]? {
        guard tag.utf8.count == 32 else { return nil }
        var result: [UInt8] = []
        var rest = tag[...]
        while !rest.isEmpty {
            guard let byte = UInt8(rest.prefix(2), radix: 16) else { return nil }
            result.append(byte)
            rest = rest.dropFirst(2)
        }
        return result
    }
}
