import PromiseAccess
package import PromiseCore
import Synchronization

/// The other domains that this user has mounted on this machine.
package protocol OtherDomains: Sendable {
    /// Calls `answer` once, on any thread, within a second or two, and `soon` a moment before that.
    /// Returns at once.
    func find(
        _ question: ElsewhereQuestion, soon: @escaping @Sendable () -> Void,
        answer: @escaping @Sendable (ElsewhereAnswer) -> Void)
}

/// Where a document is that a reference to another storage stands for.
package struct ElsewhereQuestion: Sendable {
    /// As the storage calls itself.
    package var storage: String
    /// What its domain was called where the reference was made.
    package var domain: String
    /// What the reference says.
    package var record: String
    /// What an earlier answer said.
    package var bound: String?
}

/// What a domain of that storage says.
package enum ElsewhereAnswer: Sendable {
    case notMounted
    /// It does not answer.
    case silent(domain: String)
    case here(Lead)

    package struct Lead: Sendable {
        package var domain: String
        /// Of `ItemFate`.
        package var state: String
        /// Bytes from the root of the domain, and of this machine where the mount shows it.
        package var path: [UInt8]
        package var place: [UInt8]?
        /// What a reference that is made now is to say.
        package var record: String?
        package var bound: String?

        package init(
            domain: String, state: String, path: [UInt8], place: [UInt8]?, record: String?,
            bound: String?
        ) {
            self.domain = domain
            self.state = state
            self.path = path
            self.place = place
            self.record = record
            self.bound = bound
        }
    }
}

extension ElsewhereFinding {
    init(_ answer: ElsewhereAnswer, of asked: ReferenceRecord) {
        switch answer {
        case .notMounted: self.init(.notMounted, path: asked.key.path)
        case .silent(let name):
            self.init(.silent, path: asked.key.path)
            domain = name
        case .here(let lead):
            self.init(
                ItemFate(rawValue: lead.state) ?? .unknown,
                path: lead.path.split(separator: 0x2F).compactMap { FileName($0) })
            (domain, place, bound) = (lead.domain, lead.place, lead.bound)
            record = lead.record.flatMap { ReferenceRecord(target: Array($0.utf8)) }
            identifier = record?.key.identifier
        }
    }
}

/// What daemon and mount know together of references.
///
/// **Threads.** Any; `state` is a leaf.
package final class ReferenceMemory: Sendable {
    private struct State {
        /// Told of items that are not known on this machine: others may have moved them to where
        /// nobody here has looked yet.
        var whenMissed: (@Sendable (ItemIdentifier) -> Void)?
        /// Told that something is not where it was, at a store that knows places only.
        var whenGone: (@Sendable () -> Void)?
        /// The names of what references have led to since the daemon began.
        var bound: [NodeID: EntryID] = [:]
        /// Where those that lead into other domains led last.
        var findings: [NodeID: ElsewhereFinding] = [:]
        var storage: String?
        var otherDomains: (any OtherDomains)?
        /// What was read of references since the tree was changed last, as they say where their documents are.
        var links: [NodeID: Link] = [:]
        var linkChange: Int64 = 0
    }

    private struct Link {
        var said: [UInt8]
        var text: [UInt8]
    }

    private static let countMax = 100_000
    private static let linkCountMax = 20_000

    private let state = Mutex(State())

    package init() {}

    /// Called on threads that serve the mount: it returns at once.
    package func whenMissed(_ body: @escaping @Sendable (ItemIdentifier) -> Void) {
        state.withLock { $0.whenMissed = body }
    }

    /// As `whenMissed`.
    package func whenGone(_ body: @escaping @Sendable () -> Void) { state.withLock { $0.whenGone = body } }

    func noteGone() { state.withLock { $0.whenGone }?() }

    func miss(_ identifier: ItemIdentifier) { state.withLock { $0.whenMissed }?(identifier) }

    func isKnown(_ entry: EntryID, of reference: NodeID) -> Bool {
        state.withLock { $0.bound[reference] == entry }
    }

    /// The index has it.
    func note(_ entry: EntryID, of reference: NodeID) {
        state.withLock { state in
            if state.bound.count >= ReferenceMemory.countMax { state.bound = [:] }
            state.bound[reference] = entry
        }
    }

    // MARK: What was read

    /// Where a reference that says this leads; nil where nobody has read it since the tree's last change, which was `change`.
    func link(of reference: NodeID, saying said: [UInt8], at change: Int64) -> [UInt8]? {
        state.withLock { state in
            guard state.linkChange == change, let link = state.links[reference], link.said == said else { return nil }
            return link.text
        }
    }

    /// `change`: the tree's last one before it was looked for, or an earlier one.
    func note(_ text: [UInt8], of reference: NodeID, saying said: [UInt8], at change: Int64) {
        state.withLock { state in
            guard change >= state.linkChange else { return }
            if change > state.linkChange || state.links.count >= ReferenceMemory.linkCountMax { state.links = [:] }
            state.linkChange = change
            state.links[reference] = Link(said: said, text: text)
        }
    }

    // MARK: Other domains

    /// The domain's own storage, as references in others name it; nil while it has no such name.
    package var storage: String? {
        get { state.withLock { $0.storage } }
        set { state.withLock { $0.storage = newValue } }
    }

    /// Nil: nobody can be asked.
    package var otherDomains: (any OtherDomains)? {
        get { state.withLock { $0.otherDomains } }
        set { state.withLock { $0.otherDomains = newValue } }
    }

    func finding(of reference: NodeID) -> ElsewhereFinding? {
        state.withLock { $0.findings[reference] }
    }

    func note(_ finding: ElsewhereFinding, of reference: NodeID) {
        state.withLock { state in
            if state.findings.count >= ReferenceMemory.countMax { state.findings = [:] }
            state.findings[reference] = finding
        }
    }
}
