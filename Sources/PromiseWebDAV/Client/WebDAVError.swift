package import PromiseHTTP
package import PromiseProvider

extension ProviderError {
    /// What a status that is no success means to the engine (RFC 9110, section 15; RFC 4918, section 11).
    ///
    /// `what` is what was tried, as the beginning of a sentence: `'a/b' cannot be uploaded`. `puts`: something was to be put into
    /// a folder, so 409 tells that there is none (RFC 4918, sections 9.3.1, 9.7.1, 9.9.4 and 9.10.6).
    package init(_ reply: HTTPReply, _ what: String, puts: Bool = false) {
        let status = reply.status == 424 ? ProviderError.obstacle(in: reply) ?? 424 : reply.status
        self.init(status: status, retryAfter: reply.header("Retry-After"), what, puts: puts)
    }

    /// Something in a folder keeps it from being moved or removed, and Apache says what in a multi-status: a lock ends.
    private static func obstacle(in reply: HTTPReply) -> Int? {
        guard reply.body.count <= obstacleByteCount else { return nil }
        let statuses = MultiStatusParser.parse(reply.body)?.compactMap(\.status).filter { $0 >= 400 && $0 != 424 }
        return statuses?.contains(423) == true ? 423 : statuses?.min()
    }

    private static let obstacleByteCount = 64 << 10

    package init(status: Int, retryAfter: String? = nil, _ what: String, puts: Bool = false) {
        let code: Code =
            switch status {
            case 401, 407: .authenticate
            case 403, 405, 400, 413, 414, 415, 422, 431, 451, 501, 505: .refused
            case 404, 410: .notFound
            case 409: puts ? .notFound : .refused
            case 412: .conflict
            case 416: .stale
            // Locked by another client; locks end.
            case 423: .retryAfter(.seconds(2))
            case 429, 503: .retryAfter(RetryAfter.delay(retryAfter) ?? .seconds(5))
            case 507: .outOfSpace
            default: .retry
            }
        self.init(code, "\(what): the server answers \(status)\(ProviderError.remedy(status, puts))")
    }

    private static func remedy(_ status: Int, _ puts: Bool) -> String {
        switch status {
        case 401: " (credentials are missing or wrong: see the file $XDG_CONFIG_HOME/promisefs/credentials)"
        case 403: " (forbidden)"
        case 404, 410: " (not there)"
        case 405: " (not allowed here)"
        case 409: puts ? " (its folder is not there)" : " (something is in the way of it)"
        case 412: " (it was changed meanwhile)"
        case 413: " (too large)"
        case 414: " (name too long)"
        case 423: " (locked by another program)"
        case 429, 503: " (busy)"
        case 507: " (no room)"
        default: ""
        }
    }
}
