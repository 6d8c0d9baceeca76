import PromiseCore
import PromiseMigration
import PromiseProvider
import PromiseSync
import Synchronization

/// Looks whether another machine has moved the domain to another storage, as the one that is mounted
/// here says then: a moment after the mount, now and then, and when somebody synchronizes.
///
/// **Threads.** Any; `state` is a leaf.
package final class MoveWatch: Sendable {
    private struct State {
        var provider: String?
        var isLooking = false
        var isOver = false
    }

    /// Nobody waits for it at the mount.
    private static let delay = Duration.seconds(10)
    private static let pause = Duration.seconds(300)

    private let tree: DomainTree
    private let configuration: DomainConfiguration
    private let state = Mutex(State())

    init(tree: DomainTree, configuration: DomainConfiguration) {
        self.tree = tree
        self.configuration = configuration
    }

    /// Where the domain is now; nil while it is here.
    var provider: String? { state.withLock { $0.provider } }

    func start() {
        Task { [weak self, interval = max(configuration.pollInterval, MoveWatch.pause)] in
            try? await Task.sleep(for: MoveWatch.delay)
            while let self, !self.state.withLock({ $0.isOver }) {
                await self.look()
                try? await Task.sleep(for: interval)
            }
        }
    }

    func stop() { state.withLock { $0.isOver = true } }

    package func look() async {
        guard tree.engine.connectionFailure == nil, let objects = tree.provider.privateObjects
        else { return }
        let begins = state.withLock { state in
            defer { state.isLooking = true }
            return !state.isLooking && !state.isOver
        }
        guard begins else { return }
        defer { state.withLock { $0.isLooking = false } }
        do throws(ProviderError) {
            let found = try await withDeadline(
                configuration.requestDeadline, "the provider did not answer"
            ) { () async throws(ProviderError) in try await MovedRecord.read(objects) }
            state.withLock { $0.provider = found?.provider }
        } catch {
            // It is asked again; `status` says why it does not answer.
        }
    }
}
