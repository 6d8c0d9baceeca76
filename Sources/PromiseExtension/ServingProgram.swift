/// A program that serves a provider while `ExtensionProcess` keeps it running. The closures run on the thread of that.
package struct ServingProgram: Sendable {
    /// Of its executable, as bytes.
    package var path: [UInt8]
    package var arguments: [[UInt8]]
    /// What it is, in the log: `an extension`.
    package var kind: String
    package var shortName: String
    /// As messages call it.
    package var title: String
    /// Where it is noted which session is to be ended when the daemon was killed; no path: nowhere.
    package var record: [UInt8]
    /// A word of its environment by which it, and what it started, are known then.
    package var mark: [UInt8]
    /// Called before each start: makes its environment of this process's.
    package var environment: @Sendable ([[UInt8]]) -> [[UInt8]]
    package var listens: @Sendable () -> Bool
    /// Each line that it writes.
    package var hear: @Sendable ([UInt8]) -> Void
    /// Why it ended, where it has said so.
    package var trouble: @Sendable () -> String?

    package init(
        path: [UInt8], arguments: [[UInt8]], kind: String, shortName: String, title: String, record: [UInt8], mark: [UInt8],
        environment: @escaping @Sendable ([[UInt8]]) -> [[UInt8]], listens: @escaping @Sendable () -> Bool,
        hear: @escaping @Sendable ([UInt8]) -> Void = { _ in }, trouble: @escaping @Sendable () -> String? = { nil }
    ) {
        (self.path, self.arguments, self.kind, self.shortName, self.title) = (path, arguments, kind, shortName, title)
        (self.record, self.mark, self.environment) = (record, mark, environment)
        (self.listens, self.hear, self.trouble) = (listens, hear, trouble)
    }
}
