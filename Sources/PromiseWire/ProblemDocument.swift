/// Why a request was not carried out: an RFC 9457 problem document (`application/problem+json`).
public struct ProblemDocument: Codable, Sendable, Equatable, Error {
    public static let mediaType = "application/problem+json"

    /// `urn:promisefs:problem:CODE`.
    public var type: String
    public var title: String
    /// The HTTP status.
    public var status: Int
    /// What failed and, where there is one, the remedy. A sentence without a final full stop.
    public var detail: String
    /// Stable, for programs: `notFound`, `offline`, `timedOut`, …
    public var code: String
    /// What a command line should exit with: 1 failed, 2 usage, 3 not a PromiseFS path, 4 offline or timed out, 5 refused,
    /// 6 conflict, 7 work is pending.
    public var exitStatus: Int32

    public init(code: String, title: String, status: Int, detail: String, exitStatus: Int32) {
        type = "urn:promisefs:problem:\(code)"
        self.title = title
        self.status = status
        self.detail = detail
        self.code = code
        self.exitStatus = exitStatus
    }
}
