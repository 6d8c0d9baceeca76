import NIOCore
public import PromiseWire

/// Small values that an application finds again on every machine of its user. They are on this
/// machine, so that reading them asks nobody; what other machines change comes by itself.
public struct KeyValueStore: Sendable {
    private let client: PromiseClient
    public let application: String

    /// `application` is an identifier as `com.example.editor`.
    public init(_ client: PromiseClient, application: String) {
        self.client = client
        self.application = application
    }

    public func document() async throws(PromiseError) -> KeptValuesDocument {
        try await client.reply(
            "GET", "values?application=\(encoded(application))", deadline: .minutes(1))
    }

    /// By key.
    public func values() async throws(PromiseError) -> [String: KeptValue] {
        try await document().values.reduce(into: [:]) { $0[$1.key] = $1.value }
    }

    public func value(for key: String) async throws(PromiseError) -> KeptValue? {
        let query = "values?application=\(encoded(application))&key=\(encoded(key))"
        let document: KeptValuesDocument = try await client.reply(
            "GET", query, deadline: .minutes(1))
        return document.values.first?.value
    }

    /// Returns when the value is on the disk. One that is over a limit is refused, and the old one
    /// stays.
    public func set(_ value: KeptValue, for key: String) async throws(PromiseError) {
        let document = KeptValueDocument(application: application, key: key, value: value)
        let _: DoneDocument = try await client.reply(
            "POST", "values", document, deadline: .minutes(1))
    }

    /// False when there was none.
    @discardableResult
    public func removeValue(for key: String) async throws(PromiseError) -> Bool {
        let document = KeptValueDocument(application: application, key: key, value: nil)
        let reply: DoneDocument = try await client.reply(
            "POST", "values", document, deadline: .minutes(1))
        return reply.done
    }

    /// Looks at the provider now. False when that cannot be done; what was set is on the disk all
    /// the same.
    @discardableResult
    public func synchronize() async throws(PromiseError) -> Bool {
        let request = ValuesRequest(application: application)
        let reply: DoneDocument = try await client.reply(
            "POST", "values/synchronize", request, deadline: .minutes(5))
        return reply.done
    }

    /// An event `watching`, then `changed` for what other machines change, with a
    /// `ValueNoticeDocument`.
    public func events() async throws(PromiseError) -> ServerEvents {
        try await client.stream("GET", "values/events?application=\(encoded(application))")
    }

    private func encoded(_ text: String) -> String {
        PercentCoding.encode(Array(text.utf8)).replacingSlashes()
    }
}
