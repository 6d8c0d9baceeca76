package import PromiseHTTP
package import PromiseProvider

/// Why a server refused: the status and, where there was a body, its code.
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html>
package struct S3Refusal: Sendable, Equatable {
    package var status: Int
    package var code: String?
    /// A region that the server says is the right one.
    package var region: String?
    var retryAfter: String?
    /// What to say when it is the access key that was refused.
    var keyRemedy = "the access key is wrong: see AWS_ACCESS_KEY_ID or the credentials file"

    package init(status: Int, code: String? = nil, region: String? = nil, retryAfter: String? = nil) {
        self.status = status
        self.code = code
        self.region = region
        self.retryAfter = retryAfter
    }

    /// What is longer says no reason.
    static let byteCountMax = 64 << 10

    package init(_ reply: HTTPReply) {
        let mayTell = !reply.body.isEmpty && reply.body.count <= S3Refusal.byteCountMax
        let document = mayTell ? S3Document.parse(reply.body) : nil
        self.init(
            status: reply.status, code: document?.name == "Error" ? document?.values["Code"] : nil,
            region: reply.header("x-amz-bucket-region") ?? document?.values["Region"], retryAfter: reply.header("Retry-After"))
    }

    /// The server was too busy, or stumbled; the same request may succeed in a moment.
    package var isPassing: Bool {
        switch code {
        case "SlowDown", "InternalError", "ServiceUnavailable", "RequestTimeout", "OperationAborted",
            "ConditionalRequestConflict", "Throttling", "RequestLimitExceeded":
            true
        default: [429, 500, 502, 503, 504].contains(status)
        }
    }

    /// The key was valid once, or will be when all of the server's machines know it.
    package var isOfEndedKey: Bool {
        ["ExpiredToken", "TokenRefreshRequired", "InvalidToken", "InvalidAccessKeyId"].contains(code)
    }

    /// How long the server wants to be left alone.
    package var pause: Duration? { RetryAfter.delay(retryAfter) }

    /// `what` is what was tried, as the beginning of a sentence.
    package func error(_ what: String) -> ProviderError {
        let told = code.map { "\(status) \($0)" } ?? "\(status)"
        return ProviderError(errorCode, "\(what): the server answers \(told)\(remedy)")
    }

    private var errorCode: ProviderError.Code {
        switch code {
        // A bucket that is away for a moment is no deletion of everything in it.
        case "NoSuchBucket": return .refused
        case "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "TokenRefreshRequired":
            return .authenticate
        case "RequestTimeTooSkewed": return .authenticate
        case "QuotaExceeded", "XMinioStorageFull", "ServiceQuotaExceeded": return .outOfSpace
        // The parts are gone, as a rule of the bucket's removed them; the object is where it was.
        case "NoSuchUpload": return .retry
        case "BadDigest", "XAmzContentSHA256Mismatch", "IncompleteBody", "InvalidPart": return .retry
        case "NotImplemented": return .refused
        default: break
        }
        if isPassing { return status == 503 || status == 429 ? .retryAfter(pause ?? .seconds(5)) : .retry }
        switch status {
        case 401, 407: return .authenticate
        case 301, 307, 400, 403, 405, 411, 413, 414, 501: return .refused
        case 404: return .notFound
        case 409, 412: return .conflict
        case 416: return .stale
        case 507: return .outOfSpace
        default: return .retry
        }
    }

    private var remedy: String {
        switch code {
        case "NoSuchBucket": return " (there is no such bucket)"
        case "RequestTimeTooSkewed": return " (set this machine's clock)"
        case "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken":
            return " (\(keyRemedy))"
        case "PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException":
            return region.map { " (the bucket is in region \($0): write ?region=\($0))" } ?? " (another region: write ?region=…)"
        default: break
        }
        switch status {
        case 401, 403: return " (credentials are missing or wrong, or may not do this)"
        case 404: return " (not there)"
        case 412: return " (it was changed meanwhile)"
        case 429, 503: return " (busy)"
        case 507: return " (no room)"
        default: return ""
        }
    }
}
