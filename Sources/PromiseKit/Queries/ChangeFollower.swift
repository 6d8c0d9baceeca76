public import PromiseWire

/// The journal of changes from a number on, without end: when the daemon is replaced, it goes on with the next one, from the
/// number that was told last.
public struct ChangeFollower {
    public let client: PromiseClient
    /// The newest change that was told, and whose number that is: what to go on with in another process.
    public private(set) var position: Int64
    public private(set) var journal: String?
    private var events: ServerEvents.Iterator?
    private var hasBegun = false
    private var succession: DaemonSuccession

    /// `journal`: whose number `since` is. Another one's is refused, as what it means here is nothing.
    public init(_ client: PromiseClient, since: Int64, journal: String? = nil) {
        self.client = client
        position = since
        self.journal = journal
        succession = DaemonSuccession(of: client.domain)
    }

    /// Some changes, oldest first; nil when the domain was unmounted and not mounted again in ten
    /// seconds. Throws, of status 4, when the daemon has died or become silent, and no other one comes.
    public mutating func next() async throws(PromiseError) -> ChangesDocument? {
        while true {
            var end: PromiseError?
            do throws(PromiseError) {
                if events == nil, !hasBegun { events = try await open() }
                hasBegun = true
                while let event = try await events?.next() {
                    succession.heard()
                    guard let page = WireCoding.decode(ChangesDocument.self, from: Array(event.data.utf8)) else { continue }
                    position = page.changes.last?.sequence ?? position
                    journal = page.journal
                    return page
                }
            } catch {
                guard hasBegun else { throw error }
                end = error
            }
            let this = self
            events = try await succession.next(after: end) { () async throws(PromiseError) in
                try await this.open()
            }
            if events == nil { return nil }
        }
    }

    private func open() async throws(PromiseError) -> ServerEvents.Iterator {
        let whose = journal.map { "&journal=" + PercentCoding.encode(Array($0.utf8)) } ?? ""
        return try await client.stream("GET", "changes?since=\(position)&follow=true" + whose).makeAsyncIterator()
    }
}
