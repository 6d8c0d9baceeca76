import PromiseCore
import PromiseProvider
import Synchronization

/// Tells the provider which content this machine keeps no longer, one call after the other, behind
/// all else. It is a courtesy: what cannot be told is forgotten, and so is what too much waits for.
///
/// **Threads.** Any; `state` is a leaf.
final class ReleaseNotices: Sendable {
    private struct Notice {
        var item: ItemReference
        var version: ContentVersion
    }

    private struct State {
        var waiting: [Notice] = []
        var isTelling = false
    }

    private static let waitingMax = 10_000

    private let provider: any Provider
    private let executor: (any TaskExecutor)?
    private let state = Mutex(State())

    init(_ provider: any Provider, executor: (any TaskExecutor)?) {
        self.provider = provider
        self.executor = executor
    }

    func note(_ item: ItemReference, _ version: ContentVersion) {
        let begins = state.withLock { state in
            guard state.waiting.count < Self.waitingMax else { return false }
            state.waiting.append(Notice(item: item, version: version))
            defer { state.isTelling = true }
            return !state.isTelling
        }
        if begins { Task(executorPreference: executor) { await self.empty() } }
    }

    private func empty() async {
        while true {
            let notices = state.withLock { state in
                defer { state.waiting = [] }
                state.isTelling = !state.waiting.isEmpty
                return state.waiting
            }
            if notices.isEmpty { return }
            for notice in notices {
                try? await provider.contentsReleased(of: notice.item, version: notice.version)
            }
        }
    }
}
