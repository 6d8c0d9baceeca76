import Crypto
import Foundation
import Glibc
package import NIOHTTP1
package import PromiseCore
import PromiseHTTP
package import PromiseProvider
import Synchronization

/// Who signs.
package struct AccessKey: Sendable, Hashable {
    package var identifier: String
    package var secret: Secret
    /// Of temporary credentials.
    package var sessionToken: Secret?

    package init(identifier: String, secret: Secret, sessionToken: Secret? = nil) {
        self.identifier = identifier
        self.secret = secret
        self.sessionToken = sessionToken
    }
}

/// Signs requests with AWS Signature Version 4, in the header `Authorization`: method, path, query, the headers that the request
/// has so far, and the payload's hash (or the word that it is not signed).
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html>
package struct Signature: Hashable, Sendable {
    /// In place of a payload's hash: nobody on the way can change it (`S3Location.signsPayload`).
    package static let unsignedPayload = "UNSIGNED-PAYLOAD"

    var key: AccessKey
    var region: String
    var service: String

    package init(key: AccessKey, region: String, service: String = "s3") {
        self.key = key
        self.region = region
        self.service = service
    }

    /// The value of `Authorization`. `headers` holds `Host` and `X-Amz-Date`; `path` and `query` are encoded as they are sent.
    /// `keys`: where the day's key may be known from a request before.
    package func authorization(
        _ method: HTTPMethod, path: String, query: [QueryItem], headers: HTTPHeaders, payloadHash: String, time: Timestamp,
        keys: SigningKeys? = nil
    ) -> String {
        let scope = scope(Signature.timeText(time))
        let names = Signature.canonicalHeaders(headers).map(\.name).joined(separator: ";")
        let signature = signature(
            method, path: path, query: query, headers: headers, payloadHash: payloadHash, time: time, keys: keys)
        return "AWS4-HMAC-SHA256 Credential=\(key.identifier)/\(scope), SignedHeaders=\(names), Signature=\(signature)"
    }

    /// `date`: as `timeText` has it.
    func scope(_ date: String) -> String { "\(date.prefix(8))/\(region)/\(service)/aws4_request" }

    /// In hexadecimal digits.
    func signature(
        _ method: HTTPMethod, path: String, query: [QueryItem], headers: HTTPHeaders, payloadHash: String, time: Timestamp,
        keys: SigningKeys? = nil
    ) -> String {
        let date = Signature.timeText(time)
        let lines = Signature.canonicalHeaders(headers)
        let names = lines.map(\.name).joined(separator: ";")
        let request = [
            method.rawValue, path, QueryItem.text(query.sorted()),
            lines.map { "\($0.name):\($0.value)\n" }.joined(), names, payloadHash,
        ].joined(separator: "\n")
        let text = ["AWS4-HMAC-SHA256", date, scope(date), hexadecimalText(SHA256.hash(data: Data(request.utf8)))]
            .joined(separator: "\n")
        let day = String(date.prefix(8))
        return hexadecimalText(code(text, keys?.key(of: self, day: day) ?? signingKey(day: day)))
    }

    /// `20130524T000000Z`
    package static func timeText(_ time: Timestamp) -> String {
        var seconds = time_t(time.rawValue / 1_000_000_000)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        func digits(_ value: Int32, _ count: Int) -> String {
            let text = String(value)
            return String(repeating: "0", count: max(0, count - text.count)) + text
        }
        return digits(parts.tm_year + 1900, 4) + digits(parts.tm_mon + 1, 2) + digits(parts.tm_mday, 2) + "T"
            + digits(parts.tm_hour, 2) + digits(parts.tm_min, 2) + digits(parts.tm_sec, 2) + "Z"
    }

    /// Lower-case names in order; of a value, runs of spaces count as one.
    private static func canonicalHeaders(_ headers: HTTPHeaders) -> [(name: String, value: String)] {
        var values: [String: [String]] = [:]
        for (name, value) in headers {
            values[name.lowercased(), default: []].append(value.split(separator: " ").joined(separator: " "))
        }
        return values.sorted { $0.key < $1.key }.map { ($0.key, $0.value.joined(separator: ",")) }
    }

    fileprivate func signingKey(day: String) -> SymmetricKey {
        var current = SymmetricKey(data: Data("AWS4\(key.secret.value)".utf8))
        for step in [day, region, service, "aws4_request"] { current = SymmetricKey(data: Data(code(step, current))) }
        return current
    }

    private func code(_ text: String, _ key: SymmetricKey) -> HMAC<SHA256>.MAC {
        HMAC<SHA256>.authenticationCode(for: Data(text.utf8), using: key)
    }
}

/// The key that requests of one day are signed with, which takes longer to make than all else of a signature.
package final class SigningKeys: Sendable {
    private let known = Mutex<(signature: Signature, day: String, key: SymmetricKey)?>(nil)

    package init() {}

    fileprivate func key(of signature: Signature, day: String) -> SymmetricKey {
        known.withLock { known in
            if let known, known.day == day, known.signature == signature { return known.key }
            let key = signature.signingKey(day: day)
            known = (signature, day, key)
            return key
        }
    }
}

/// One `name=value` of a query, encoded.
package struct QueryItem: Sendable, Comparable {
    package var name: String
    package var value: String

    package init(_ name: String, _ value: String = "") {
        self.name = PercentEncoding.encoded(Array(name.utf8))
        self.value = PercentEncoding.encoded(Array(value.utf8))
    }

    package init(_ name: String, key: [UInt8]) {
        self.name = PercentEncoding.encoded(Array(name.utf8))
        value = PercentEncoding.encoded(key)
    }

    package static func < (left: QueryItem, right: QueryItem) -> Bool {
        (left.name, left.value) < (right.name, right.value)
    }

    package static func text(_ items: [QueryItem]) -> String {
        items.map { "\($0.name)=\($0.value)" }.joined(separator: "&")
    }
}
