import PromiseAccess
package import PromiseCore
import PromiseIndex
import Synchronization

/// What daemon and mount know together of references.
///
/// **Threads.** Any; `state` is a leaf.
package final class ReferenceMemory: Sendable {
    private struct State {
        /// Told of items that are not known on this machine: others may have moved them to where
        /// nobody here has looked yet.
        var whenMissed: (@Sendable (ItemIdentifier) -> Void)?
        /// The names of what references have led to since the daemon began.
        var bound: [NodeID: EntryID] = [:]
    }

    private static let countMax = 100_000

    private let state = Mutex(State())

    package init() {}

    /// Called on threads that serve the mount: it returns at once.
    package func whenMissed(_ body: @escaping @Sendable (ItemIdentifier) -> Void) {
        state.withLock { $0.whenMissed = body }
    }

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
}

/// Where links lead: an ordinary one to what it says, a reference to where its document is now.
package struct LinkTargets: Sendable {
    let index: Index
    let notifier: (any KernelNotifier)?
    package let memory: ReferenceMemory?

    /// Of a node as the mount knows it.
    func target(of node: Node?) throws(Failure) -> [UInt8] {
        guard let node else { throw Failure(.stale, "the link is gone") }
        guard let target = node.target else {
            throw Failure(.invalid, "node \(node.id) is not a symbolic link")
        }
        guard let record = ReferenceRecord(target: target) else { return target }
        let (finding, folder) = try find(record, node.id)
        // The kernel would go on showing it after the document was moved.
        notifier?.invalidateContent(of: node.id, range: nil)
        return record.link(in: folder, finding.fate, finding.path)
    }

    /// Why it leads nowhere, or that it does not; nil of what is no reference.
    func state(of node: Node) throws(Failure) -> String? {
        guard let record = node.target.flatMap({ ReferenceRecord(target: $0) }) else { return nil }
        let fate = try find(record, node.id).finding.fate
        return fate.reason ?? fate.rawValue
    }

    private func find(
        _ record: ReferenceRecord, _ reference: NodeID
    ) throws(Failure) -> (finding: ItemFinder.Finding, folder: [FileName]) {
        let (finding, folder): (ItemFinder.Finding, [FileName]) = try index.read {
            transaction throws(Failure) in
            let folder = try transaction.path(of: reference)?.dropLast() ?? []
            return (
                try ItemFinder(record.key, reference: reference).find(transaction), Array(folder)
            )
        }
        if let missing = finding.missing { memory?.miss(missing) }
        // A full disk keeps nobody from reading the link; the next one who reads it tries again.
        if let entry = finding.entry?.id { try? bind(reference, to: entry) }
        return (finding, folder)
    }

    /// Where others replace a document as a whole, its name here is all that stays.
    package func bind(_ reference: NodeID, to entry: EntryID) throws(Failure) {
        if memory?.isKnown(entry, of: reference) == true { return }
        let (name, text) = (ItemFinder.setting(of: reference), "\(entry)")
        let known = try index.read { transaction throws(Failure) in try transaction.setting(name) }
        if known != text { try index.write { transaction throws(Failure) in try transaction.setSetting(name, text) } }
        memory?.note(entry, of: reference)
    }
}
