package import FoundationEssentials
package import PromiseCore
import PromiseHTTP
import PromiseProvider

/// What a service that gives access keys says: in JSON (containers and machines) or in XML (STS).
package struct KeyReply: Sendable {
    /// An access key, and when it ends.
    package var key: AccessKey?
    package var end: Timestamp?
    /// Of an error; `Success` of some that are none.
    package var code: String?

    private struct Fields: Decodable {
        var AccessKeyId: String?
        var SecretAccessKey: String?
        var Token: String?
        var Expiration: String?
        var Code: String?
        var code: String?
    }

    /// Nil when it cannot be understood.
    package init?(json data: Data) {
        guard let fields = try? JSONDecoder().decode(Fields.self, from: data) else { return nil }
        self.init(
            identifier: fields.AccessKeyId, secret: fields.SecretAccessKey, token: fields.Token, expiration: fields.Expiration,
            code: fields.Code ?? fields.code)
    }

    package init?(xml data: Data) {
        let leaves = Leaves()
        guard XMLReader.read(data, for: leaves) else { return nil }
        let values = leaves.values
        self.init(
            identifier: values["AccessKeyId"], secret: values["SecretAccessKey"], token: values["SessionToken"],
            expiration: values["Expiration"], code: values["Code"])
    }

    private init?(identifier: String?, secret: String?, token: String?, expiration: String?, code: String?) {
        self.code = code
        guard let identifier, let secret, !identifier.isEmpty, !secret.isEmpty else {
            if code == nil { return nil }
            return
        }
        key = AccessKey(identifier: identifier, secret: Secret(secret), sessionToken: token.map { Secret($0) })
        guard let expiration else { return }
        // A key whose end is not understood would be used until it is refused.
        guard let end = S3Listing.timestamp(expiration) else { return nil }
        self.end = end
    }

    /// The text of elements, however deep: no two that matter have one name.
    private final class Leaves: XMLVisitor {
        var values: [String: String] = [:]

        func began(_ name: XMLBytes) {}

        func ended(_ name: XMLBytes, text: XMLBytes) {
            let start = name.lastIndex(of: UInt8(ascii: " ")).map { $0 + 1 } ?? 0
            values[String(decoding: name[start...], as: UTF8.self)] = text.trimmedText
        }
    }
}
