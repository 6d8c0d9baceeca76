import PromiseAccess
import PromiseCore
import PromiseProvider
import PromiseSync
import Synchronization

/// Finds items under the names that they had before the domain was moved to its storage, on machines
/// that were not there: as the storage itself has noted.
///
/// **Threads.** Any; `state` is a leaf.
final class FormerItems: Sendable {
    private struct State {
        var names: FormerNames?
        var rest: ContinuousClock.Instant?
    }

    private let tree: DomainTree
    private let configuration: DomainConfiguration
    private let state = Mutex(State())

    init(tree: DomainTree, configuration: DomainConfiguration) {
        self.tree = tree
        self.configuration = configuration
    }

    /// Where an item was then, and what it is called since; nil of what was never called so. The
    /// provider is asked once, and where it did not answer at most once each poll interval.
    func now(of identifier: ItemIdentifier) async -> FormerNames.Now? {
        let now = ContinuousClock.now
        let (known, isDue): (FormerNames?, Bool) = state.withLock { state in
            if let names = state.names { return (names, false) }
            if let rest = state.rest, rest > now { return (nil, false) }
            state.rest = now + configuration.pollInterval
            return (nil, true)
        }
        if let known { return known.items[identifier] }
        guard isDue, let names = try? await read() else { return nil }
        state.withLock { $0.names = names }
        return names.items[identifier]
    }

    private func read() async throws(ProviderError) -> FormerNames {
        guard tree.engine.connectionFailure == nil, let objects = tree.provider.privateObjects else {
            throw ProviderError(.offline, "the provider cannot be asked")
        }
        return try await withDeadline(configuration.requestDeadline, "the provider did not answer") {
            () async throws(ProviderError) in
            var names = FormerNames()
            for name in try await objects.list(.storage) {
                guard name.name.hasPrefix(FormerNames.prefix), let object = try await objects.read(name)
                else { continue }
                names.add(piece: object.bytes)
            }
            return names
        }
    }
}
