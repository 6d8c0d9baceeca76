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
    private struct Known {
        var names: FormerNames
        var places: [[FileName]: FormerNames.Now]
    }

    private struct State {
        var known: Known?
        var rest: ContinuousClock.Instant?
    }

    private let tree: DomainTree
    private let configuration: DomainConfiguration
    private let state = Mutex(State())

    init(tree: DomainTree, configuration: DomainConfiguration) {
        self.tree = tree
        self.configuration = configuration
    }

    /// Where an item was then, and what it is called since; nil of what was never called so.
    func now(of identifier: ItemIdentifier) async -> FormerNames.Now? {
        await known()?.names.items[identifier]
    }

    /// The same of what was noted by its place, at a store that knows places only.
    func now(onceAt path: [FileName]) async -> FormerNames.Now? {
        guard let known = await known() else { return nil }
        return known.places[known.names.moved.now(of: path) { known.places[$0] != nil }]
    }

    /// The provider is asked once, and where it did not answer at most once each poll interval.
    private func known() async -> Known? {
        let now = ContinuousClock.now
        let (known, isDue): (Known?, Bool) = state.withLock { state in
            if let known = state.known { return (known, false) }
            if let rest = state.rest, rest > now { return (nil, false) }
            state.rest = now + configuration.pollInterval
            return (nil, true)
        }
        guard isDue, let names = try? await read() else { return known }
        let fresh = Known(names: names, places: names.places)
        state.withLock { $0.known = fresh }
        return fresh
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
