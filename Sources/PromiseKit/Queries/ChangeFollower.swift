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

    /// `journal`: whose number `since` is. Another one's is refused, as what it means here is nothing.
    public init(_ client: PromiseClient, since: Int64, journal: String? = nil) {
        self.client = client
        position = since
        self.journal = journal
    }

    /// Some changes, oldest first; nil when the daemon has ended and no other one comes. Throws
    /// when it has become silent, and none comes.
    public mutating func next() async throws(PromiseError) -> ChangesDocument? {
        while true {
            var silence: PromiseError?
            do throws(PromiseError) {
                if events == nil, !hasBegun { events = try await open() }
                hasBegun = true
                while let event = try await events?.next() {
                    guard let page = WireCoding.decode(ChangesDocument.self, from: Array(event.data.utf8)) else { continue }
                    position = page.changes.last?.sequence ?? position
                    journal = page.journal
                    return page
                }
            } catch {
                guard hasBegun, error.isEndOfDaemon else { throw error }
                if error.kind == .notAnswering { silence = error }
            }
            let this = self
            events = try await Successor.reply { () async throws(PromiseError) in try await this.open() }
            if events == nil {
                if let silence { throw silence }
                return nil
            }
        }
    }

    private func open() async throws(PromiseError) -> ServerEvents.Iterator {
        let whose = journal.map { "&journal=" + PercentCoding.encode(Array($0.utf8)) } ?? ""
        return try await client.stream("GET", "changes?since=\(position)&follow=true" + whose).makeAsyncIterator()
    }
}

/// Waits for the daemon that comes after one that has ended.
public enum Successor {
    private static let patience = Duration.seconds(10)
    private static let pause = Duration.milliseconds(200)

    /// What `open` gives as soon as there is a daemon that answers; nil when none comes.
    public static func reply<Value>(
        _ open: () async throws(PromiseError) -> Value
    ) async throws(PromiseError) -> Value? {
        let start = ContinuousClock.now
        while ContinuousClock.now - start < patience {
            try? await Task.sleep(for: pause)
            if Task.isCancelled { return nil }
            do throws(PromiseError) {
                return try await open()
            } catch {
                guard error.isEndOfDaemon else { throw error }
            }
        }
        return nil
    }
}

extension PromiseError {
    /// Nobody answers, or the answer broke off: another daemon may come.
    public var isEndOfDaemon: Bool {
        switch kind {
        case .notAnswering, .brokenReply: true
        case .refused(let problem): problem.code == "interrupted"
        case .notPromiseFS, .local, .cancelled: false
        }
    }
}
