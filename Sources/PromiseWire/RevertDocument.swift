/// The answer to `POST /v1/items/revert`.
public struct RevertDocument: Codable, Sendable, Equatable {
    /// How many changes were given up.
    public var reverted: Int
    public var failures: [ItemFailureDocument]

    public init(reverted: Int, failures: [ItemFailureDocument]) {
        self.reverted = reverted
        self.failures = failures
    }
}
