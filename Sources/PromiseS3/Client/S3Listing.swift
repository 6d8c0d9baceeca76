package import Foundation
package import PromiseCore
import PromiseHTTP
import PromiseProvider

/// One page of what ListObjectsV2 says.
package struct S3Listing: Sendable {
    package struct Object: Sendable, Hashable {
        package var key: [UInt8]
        /// Without quotes.
        package var tag: String
        package var size: UInt64
        /// In whole seconds.
        /// Nil: it is not told.
        package var lastModified: Timestamp?

        package init(key: [UInt8], tag: String, size: UInt64, lastModified: Timestamp?) {
            (self.key, self.tag, self.size, self.lastModified) = (key, tag, size, lastModified)
        }
    }

    /// Each key once.
    package var objects: [Object] = []
    /// Each ends with a slash, and is there once.
    package var prefixes: [[UInt8]] = []
    /// Where the next page begins; nil after the last.
    package var next: Next?

    package enum Next: Sendable, Hashable {
        /// As the server calls it.
        case token(String)
        /// Behind a key or common prefix, where the server's word cannot be read.
        case after([UInt8])
    }

    /// The first object of which the server says no size or no tag that can be.
    package var impossible: [UInt8]?

    package init() {}

    /// A server that names the same page again would be asked for ever.
    func check(after page: Next?, _ what: String) throws(ProviderError) {
        guard let next, next == page else { return }
        throw ProviderError(.retry, "\(what): the listing does not end, as the server names the same page again")
    }

    /// Where the next page begins. Throws `.retry` where pages come and come without anything new.
    func turn(_ turns: inout PageTurns) throws(ProviderError) -> Next? {
        guard let next else { return nil }
        try turns.take(PageToken(rawValue: next.text), first: objects.first?.key)
        return next
    }

    /// Nil when the answer is cut off or something else. Blocking.
    package static func parse(_ data: Data) -> S3Listing? {
        // Keys come encoded, but what was asked for may be said back as it is, and no XML has control characters (Ceph RGW).
        let legal = legal(data)
        guard let document = S3Document.parse(legal ?? data), document.name == "ListBucketResult" else { return nil }
        let isEncoded = document.values["EncodingType"] == "url"
        var result = S3Listing()
        // Of what a server lists twice the first row is believed, as of what it repeats on a later page.
        var taken: Set<[UInt8]> = []
        for row in document.rows {
            switch row.name {
            case "Contents":
                guard let key = row.values["Key"].flatMap({ key($0, isEncoded) }) else { return nil }
                guard let tag = row.values["ETag"], !EntityTag.opaque(tag).isEmpty,
                    let size = row.values["Size"].flatMap({ ItemSize.read($0) })
                else {
                    result.impossible = result.impossible ?? key
                    continue
                }
                guard taken.insert(key).inserted else { continue }
                let time = row.values["LastModified"].flatMap { timestamp($0) }
                result.objects.append(Object(key: key, tag: EntityTag.opaque(tag), size: size, lastModified: time))
            case "CommonPrefixes":
                guard let prefix = row.values["Prefix"].flatMap({ key($0, isEncoded) }) else { return nil }
                if taken.insert(prefix).inserted { result.prefixes.append(prefix) }
            default: break
            }
        }
        if document.values["IsTruncated"] == "true" {
            guard let token = document.values["NextContinuationToken"], !token.isEmpty else { return nil }
            let last = [result.objects.last?.key, result.prefixes.last].compactMap { $0 }.max { $0.lexicographicallyPrecedes($1) }
            result.next = legal == nil ? .token(token) : last.map { .after($0) }
        }
        return result
    }

    /// What some keys stand for depends on what the server cannot keep.
    var mayBeWrittenOtherwise: Bool {
        let keys = objects.map(\.key) + prefixes
        return keys.contains { StoredName.hasMark($0) || KeyNames.unkept($0) != $0 }
    }

    /// Of a server that keeps no keys that end with a slash.
    mutating func readKeepers() {
        for index in objects.indices { objects[index].key = KeyNames.unkept(objects[index].key) }
    }

    /// Without references to characters that XML does not have; nil when there are none.
    private static func legal(_ data: Data) -> Data? {
        guard data.range(of: Data("&#".utf8)) != nil else { return nil }
        var text = String(decoding: data, as: UTF8.self)
        let before = text.utf8.count
        for byte in UInt8(1)..<0x20 where ![0x09, 0x0A, 0x0D].contains(byte) {
            for form in ["&#\(byte);", "&#x\(hexadecimal(byte));", "&#x\(String(byte, radix: 16));"] {
                text = text.replacingOccurrences(of: form, with: "?", options: .caseInsensitive)
            }
        }
        return text.utf8.count == before ? nil : Data(text.utf8)
    }

    /// Some servers write a space as `+`; a plus itself is always encoded.
    static func key(_ text: String, _ isEncoded: Bool) -> [UInt8]? {
        guard isEncoded else { return Array(text.utf8) }
        return PercentEncoding.decoded(text.replacingOccurrences(of: "+", with: "%20"))
    }

    /// `2026-11-22T02:13:18.185Z`, in whole seconds.
    package static func timestamp(_ text: String) -> Timestamp? {
        let digits = text.split { !$0.isNumber }.compactMap { Int($0) }
        guard digits.count >= 6 else { return nil }
        return HTTPDate.timestamp(year: digits[0], month: digits[1], day: digits[2], clock: Array(digits[3..<6]))
    }
}

extension S3Listing.Next {
    /// For a page's token.
    package var text: String {
        switch self {
        case .token(let token): "t" + token
        case .after(let key): "k" + PercentEncoding.encoded(key)
        }
    }

    /// Nil for what `text` did not write.
    package init?(_ text: String) {
        if text.hasPrefix("t") {
            self = .token(String(text.dropFirst()))
        } else if text.hasPrefix("k"), let key = PercentEncoding.decoded(text.dropFirst()) {
            self = .after(key)
        } else {
            return nil
        }
    }
}
