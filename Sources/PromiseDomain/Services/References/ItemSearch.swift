import PromiseAccess
import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseProvider
import PromiseSync
import Synchronization

/// Looks for items that others have moved to where nobody on this machine has looked: asks the
/// provider where it is, or lists what was never listed, until it turns up.
///
/// **Threads.** Any; `state` is a leaf.
final class ItemSearch: Sendable {
    enum Outcome: Sendable { case found, nowhere, unfinished }

    private struct State {
        /// When a search for an item may begin again.
        var rests: [ItemIdentifier: ContinuousClock.Instant] = [:]
        /// What the last search for has not found, though it came to its end.
        var nowhere: Set<ItemIdentifier> = []
        var running: Set<ItemIdentifier> = []
    }

    private static let folderCountMax = 5_000
    private static let limit = Duration.seconds(20)
    private static let settleTime = Duration.seconds(2)
    private static let restCountMax = 10_000
    private static let runningMax = 64
    private static let pauses = [100, 200, 400, 800, 1600].map { Duration.milliseconds($0) }

    private let tree: DomainTree
    private let pollInterval: Duration
    private let state = Mutex(State())

    init(tree: DomainTree, pollInterval: Duration) {
        self.tree = tree
        self.pollInterval = pollInterval
    }

    /// For who does not wait; not again before the next poll could have told more. False: it was
    /// looked for, and is nowhere.
    @discardableResult
    func begin(_ identifier: ItemIdentifier) -> Bool {
        let now = ContinuousClock.now
        let (isDue, isNowhere) = state.withLock { state in
            let isNowhere = state.nowhere.contains(identifier)
            if let rest = state.rests[identifier], rest > now { return (false, isNowhere) }
            // The others at the next question: each search asks the provider.
            if state.running.count >= ItemSearch.runningMax { return (false, isNowhere) }
            if state.rests.count >= ItemSearch.restCountMax {
                (state.rests, state.nowhere) = ([:], [])
            }
            state.rests[identifier] = now + pollInterval
            state.running.insert(identifier)
            return (true, isNowhere)
        }
        if isDue { Task { [weak self] in _ = await self?.find(identifier) } }
        return !isNowhere
    }

    /// For who tells what became of many: waits a moment for what is not known to be nowhere.
    func settle(_ noted: [(key: ItemKey, bound: EntryID?)]) async {
        let findings = noted.compactMap { try? tree.look(for: $0.key, bound: $0.bound) }
        let missing = findings.filter { $0.fate != .found && begin($0.missing) }
            .compactMap(\.missing)
        let end = ContinuousClock.now + ItemSearch.settleTime
        while missing.contains(where: { isOpen($0) }), ContinuousClock.now < end {
            try? await Task.sleep(for: .milliseconds(20))
            if Task.isCancelled { return }
        }
    }

    private func begin(_ identifier: ItemIdentifier?) -> Bool {
        identifier.map { begin($0) } ?? false
    }

    /// It is being looked for.
    private func isOpen(_ identifier: ItemIdentifier) -> Bool {
        !isKnown(identifier) && state.withLock { $0.running.contains(identifier) }
    }

    /// What others have moved to where nobody here has looked turns up when it is looked for.
    func fate(of finding: ItemFinder.Finding) -> ItemFate {
        guard finding.fate != .found, let missing = finding.missing else { return finding.fate }
        return begin(missing) ? .unknown : finding.fate
    }

    func find(_ identifier: ItemIdentifier) async -> Outcome {
        let outcome = await look(for: identifier)
        state.withLock { state in
            state.running.remove(identifier)
            if outcome == .nowhere, state.rests[identifier] != nil {
                state.nowhere.insert(identifier)
            } else {
                state.nowhere.remove(identifier)
            }
        }
        return outcome
    }

    private func look(for identifier: ItemIdentifier) async -> Outcome {
        if tree.engine.connectionFailure != nil { return .unfinished }
        if isKnown(identifier) { return .found }
        if await isAtProvider(identifier) { return .found }
        return await lookEverywhere(identifier)
    }

    /// By asking the provider for it, and listing the folders that it is below: nothing else is
    /// looked through, whatever a stranger's identifier is. False when it is not there. Throws what
    /// the provider says of it.
    func findByIdentifier(_ identifier: ItemIdentifier) async throws(ProviderError) -> Bool {
        let reference = ItemReference(identifier: identifier, path: [])
        guard try await tree.provider.item(for: reference).identifier == identifier else {
            return false
        }
        if await isAtProvider(identifier) { return true }
        // It is new in a folder that was listed here before: the next look at what is new tells.
        tree.engine.lookNow()
        for pause in ItemSearch.pauses {
            try? await Task.sleep(for: pause)
            if Task.isCancelled { return false }
            if await isAtProvider(identifier) { return true }
        }
        return false
    }

    private func isKnown(_ identifier: ItemIdentifier) -> Bool {
        let entry = try? tree.index.read { transaction throws(Failure) in
            try transaction.entry(for: identifier)
        }
        return (entry ?? nil) != nil
    }

    /// Providers that find an item by its identifier say in which folders it is.
    private func isAtProvider(_ identifier: ItemIdentifier) async -> Bool {
        var above: [ItemIdentifier] = []
        var next = identifier
        while above.count < 1000 {
            let reference = ItemReference(identifier: next, path: [])
            let provider = tree.provider
            guard
                let item = try? await withDeadline(
                    ItemSearch.limit, "the provider did not answer",
                    { () async throws(ProviderError) in try await provider.item(for: reference) }),
                item.identifier == next, let parent = item.parent
            else { return false }
            above.append(parent)
            if parent == tree.account || isKnown(parent) { break }
            next = parent
        }
        for folder in above.reversed() {
            let node = try? tree.index.read { transaction throws(Failure) in
                folder == self.tree.account ? NodeID.root : try transaction.entry(for: folder)?.node
            }
            guard let node = node ?? nil, (try? await tree.list(node)) != nil else { return false }
        }
        return isKnown(identifier)
    }

    private func lookEverywhere(_ identifier: ItemIdentifier) async -> Outcome {
        let end = ContinuousClock.now + ItemSearch.limit
        var (waiting, next) = ([NodeID.root], 0)
        var isComplete = true
        while next < waiting.count {
            if ContinuousClock.now > end || next >= ItemSearch.folderCountMax { return .unfinished }
            let folder = waiting[next]
            next += 1
            let wasKnown = (try? isPopulated(folder)) ?? false
            if !wasKnown {
                guard (try? await tree.list(folder)) != nil else {
                    isComplete = false
                    continue
                }
                if isKnown(identifier) { return .found }
            }
            waiting += (try? subfolders(of: folder)) ?? []
        }
        return isComplete ? .nowhere : .unfinished
    }

    private func isPopulated(_ folder: NodeID) throws(Failure) -> Bool {
        try tree.index.read { transaction throws(Failure) in
            try transaction.node(folder)?.isPopulated ?? true
        }
    }

    private func subfolders(of folder: NodeID) throws(Failure) -> [NodeID] {
        try tree.index.read { transaction throws(Failure) in
            try transaction.folders(in: folder, limit: ItemSearch.folderCountMax).map(\.node)
        }
    }
}
