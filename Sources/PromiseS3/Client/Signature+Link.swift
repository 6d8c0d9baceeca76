import Crypto
import Foundation
import NIOHTTP1
package import PromiseCore
import PromiseHTTP
import PromiseProvider

extension Signature {
    /// The query of a GET that whoever has it may send for so many seconds: the signature is in it.
    /// <https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html>
    package func linkQuery(path: String, host: String, time: Timestamp, seconds: Int) -> String {
        let date = Signature.timeText(time)
        var query = [
            QueryItem("X-Amz-Algorithm", "AWS4-HMAC-SHA256"), QueryItem("X-Amz-Credential", "\(key.identifier)/\(scope(date))"),
            QueryItem("X-Amz-Date", date), QueryItem("X-Amz-Expires", "\(seconds)"), QueryItem("X-Amz-SignedHeaders", "host"),
        ]
        if let token = key.sessionToken { query.append(QueryItem("X-Amz-Security-Token", token.value)) }
        let value = signature(
            .GET, path: path, query: query, headers: ["Host": host], payloadHash: Signature.unsignedPayload, time: time)
        return QueryItem.text(query) + "&X-Amz-Signature=\(value)"
    }
}
