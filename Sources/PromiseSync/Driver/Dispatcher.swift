import Logging
import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSystem
import Synchronization

/// Carries out the machine's actions: calls of the provider are tasks, whose outcomes come back as
/// events. Belongs to the engine's thread.
final class Dispatcher: ActionPerformer {
    private let engine: SyncEngine
    private let observer: any LocalTreeObserver
    private var provider: any Provider { engine.provider }
    private var mailbox: Mailbox { engine.mailbox }
    private var listings: [Int: Task<Void, Never>] = [:]
    private var operations: [Pending.Subject: Task<Void, Never>] = [:]
    private var feeds: [Int: Task<Void, Never>] = [:]
    private var roots: [Int: Task<Void, Never>] = [:]
    /// Those that nobody waits for, as waiters of the hydrator.
    private var fetches: [NodeID: UInt64] = [:]
    private(set) var isShortOfRoom = false

    init(_ engine: SyncEngine, _ observer: any LocalTreeObserver) {
        self.engine = engine
        self.observer = observer
    }

    /// Before the event is handled: the call that it comes from has ended.
    func noteEnd(of event: Event) {
        switch event {
        case .listed(let part) where part.isLast: listings[part.number] = nil
        case .listingFailed(let number, _): listings[number] = nil
        case .rootAnswered(let number, _): roots[number] = nil
        case .told(let operation, _): operations[operation.subject] = nil
        case .fetchEnded(let node, _): fetches[node] = nil
        case .anchorKnown(let feed, _), .changesKnown(let feed, _), .feedFailed(let feed, _):
            feeds[feed] = nil
        default: break
        }
    }

    func perform(_ action: Action) {
        switch action {
        case .call(let call): make(call)
        case .cancelListing(let number): listings.removeValue(forKey: number)?.cancel()
        case .cancelTelling(let subject): operations[subject]?.cancel()
        case .cancelFeed(let feed): feeds.removeValue(forKey: feed)?.cancel()
        case .cancelRoot(let number): roots.removeValue(forKey: number)?.cancel()
        case .show(let notices): engine.show(notices)
        case .reply(let waiter, let result): engine.reply(waiter, result)
        case .stepped(let waiter, let operation): engine.reply(waiter, operation)
        case .failFetches(let failure): engine.hydrator.failAll(failure)
        case .fetch(let node):
            fetches[node] = engine.hydrator.hydrate(node, inBackground: true) { [mailbox] in
                mailbox.post(.fetchEnded(node, $0))
            }
        case .endFetch(let node):
            guard let waiter = fetches.removeValue(forKey: node) else { return }
            engine.hydrator.detach(waiter, from: node)
            mailbox.post(.fetchEnded(node, .failure(Failure(.interrupted, "nobody wants it now"))))
        case .releaseFetch(let node): engine.hydrator.release(node)
        case .evict(let node): engine.evictOrLog(node)
        case .makeRoom: isShortOfRoom = engine.evictIfNeeded()
        case .storeUses(let uses): engine.storeOrLog(uses)
        case .noteOpenWrites: observer.noteOpenWrites()
        case .takeUsed(let withWatched):
            guard let used = engine.used else { return }
            var nodes = withWatched ? observer.watchedNodes() : WatchedNodes()
            nodes.nodes.formUnion(used.take())
            mailbox.post(.usedKnown(nodes))
        case .takeFreshlyUsed:
            if let used = engine.used { mailbox.post(.cameBackTo(used.takeFresh())) }
        case .paused(let since): engine.published.withLock { $0.pausedSince = since }
        case .limited(let limits):
            engine.published.withLock { $0.limits = limits }
            engine.provider.lineLimit?.set(limits.line)
        case .log(let level, let message, let reason): log(level, message, reason)
        case .uploaded(let count):
            engine.published.withLock { $0.bytesUploaded += count }
            engine.hydrator.transfers.count { $0.sent(count) }
        case .remember, .go, .wait: preconditionFailure("\(action) is the runner's to carry out")
        }
    }

    private func log(_ level: Logger.Level, _ message: Logger.Message, _ reason: String?) {
        engine.logger.log(level: level, message, metadata: reason.map { ["reason": "\($0)"] })
    }

    // MARK: The provider

    private func make(_ call: Call) {
        switch call {
        case .list(let number, let folder, let isFirst): list(number, folder, isFirst: isFirst)
        case .find(let identifier, let places, let count): find(identifier, at: places, count)
        case .lookInto(let folder, let count):
            answer { provider async throws(ProviderError) in
                try await provider.enumerateItems(in: folder, page: nil).items
            } event: {
                .lookedInto(folder.identifier, $0, operationCount: count)
            }
        case .survey(let survey, let count):
            answer { provider async throws(ProviderError) in
                try await survey.run(provider)
            } event: {
                .surveyed(survey, $0, operationCount: count)
            }
        case .tell(let operation):
            tell(operation)
        case .root(let number):
            roots[number] = answer { provider async throws(ProviderError) in
                try await provider.root()
            } event: { .rootAnswered(number: number, $0) }
        case .currentAnchor(let feed):
            feeds[feed] = answer { provider async throws(ProviderError) in
                try await provider.currentAnchor()
            } event: { result in
                switch result {
                case .success(let anchor): .anchorKnown(feed: feed, anchor)
                case .failure(let problem): .feedFailed(feed: feed, problem)
                }
            }
        case .changes(let feed, let anchor, let isWaiting): changes(feed, since: anchor, isWaiting)
        case .news(let anchor):
            answer(isOwnAnswer: Self.isGuess) { provider async throws(ProviderError) in
                try await provider.changes(since: anchor)
            } event: {
                .newsKnown(try? $0.get())
            }
        }
    }

    /// Asks, and posts what comes of it as an event. `isOwnAnswer`: no server has said it.
    @discardableResult
    private func answer<Value: Sendable>(
        isWaiting: Bool = false,
        isOwnAnswer: @escaping @Sendable (Result<Value, ProviderError>) -> Bool = { _ in false },
        _ question: @escaping @Sendable (any Provider) async throws(ProviderError) -> Value,
        event: @escaping @Sendable (Result<Value, ProviderError>) -> Event
    ) -> Task<Void, Never> {
        let call = isWaiting ? nil : engine.answers.began()
        return Task(executorPreference: engine.executor) { [provider, mailbox, answers = engine.answers] in
            let result: Result<Value, ProviderError>
            do throws(ProviderError) {
                result = .success(try await question(provider))
            } catch {
                result = .failure(error)
            }
            if let call {
                if isOwnAnswer(result) {
                    answers.withdrew(call)
                } else {
                    answers.ended(call, isHeard: result.isHeard, isGood: result.isGood)
                }
            }
            mailbox.post(event(result))
        }
    }

    /// What to look at without knowing of any change, which the provider says without its server.
    private static func isGuess(_ page: Result<ChangePage, ProviderError>) -> Bool {
        (try? page.get())?.isGuess ?? false
    }

    private func tell(_ operation: Operation) {
        let disk = engine.diskPool
        let call = engine.answers.began()
        engine.uploadProgress.began(operation.subject, of: operation.node, sending: operation.source)
        operations[operation.subject] = Task(executorPreference: engine.executor) {
            [provider, mailbox, answers = engine.answers, progress = engine.uploadProgress] in
            if let source = operation.source, source.isWrittenTo { await disk.run { source.separateWrites() } }
            // In the index before it is sent: it makes up for an answer that is lost, also by a
            // daemon that is killed.
            if let sent = operation.sent, let source = operation.source, operation.wantsDigest,
                let digest = await disk.run({ source.digest() })
            {
                await mailbox.deliver(.digested(sent, digest))
            }
            let outcome = await operation.run(provider, disk)
            progress.ended(operation.subject, of: operation.node)
            answers.ended(call, isHeard: outcome.isHeard, isGood: outcome.isGood)
            mailbox.post(.told(operation, outcome))
        }
    }

    private func changes(_ feed: Int, since anchor: Anchor, _ isWaiting: Bool) {
        feeds[feed] = answer(isWaiting: isWaiting, isOwnAnswer: Self.isGuess) {
            provider async throws(ProviderError) in
            if isWaiting { try await provider.waitForChanges(since: anchor) }
            return try await provider.changes(since: anchor)
        } event: { result in
            switch result {
            case .success(let page): .changesKnown(feed: feed, page)
            case .failure(let problem): .feedFailed(feed: feed, problem)
            }
        }
    }

    private func find(_ identifier: ItemIdentifier, at places: [Whereabouts], _ count: Int) {
        answer { provider async throws(ProviderError) in
            var problem = ProviderError(.notFound, "it is nowhere")
            for place in places {
                do throws(ProviderError) {
                    let item = try await provider.item(for: place.reference)
                    return FoundItem(item: item, parent: place.parent)
                } catch {
                    problem = error
                    if error.code != .notFound { break }
                }
            }
            throw problem
        } event: {
            .found(identifier, $0, operationCount: count)
        }
    }

    private func list(_ number: Int, _ folder: ItemReference, isFirst: Bool) {
        let answers = engine.answers
        let call = answers.began()
        listings[number] = Task(executorPreference: engine.executor) { [provider, mailbox] in
            let room = PageRoom()
            do throws(ProviderError) {
                let rest = try await withTaskExecutorPreference(provider.executor) {
                    () async throws(ProviderError) in
                    try await provider.enumerateAllItems(in: folder) { items in
                        // One page is stored while the provider makes the next one; it may be
                        // faster, but not by much.
                        answers.isHeard(isGood: true)
                        await room.add()
                        mailbox.post(page: items, of: number, isFirst, isLast: false) {
                            room.remove()
                        }
                    }
                }
                answers.ended(call, isHeard: true, isGood: true)
                mailbox.post(page: rest, of: number, isFirst, isLast: true) {}
            } catch {
                answers.ended(call, isHeard: error.code != .cancelled)
                mailbox.post(.listingFailed(number: number, error))
            }
        }
    }
}

extension Result where Failure == ProviderError {
    /// The provider said so, and not whoever asked.
    fileprivate var isHeard: Bool {
        if case .failure(let problem) = self { return problem.code != .cancelled }
        return true
    }

    fileprivate var isGood: Bool { if case .success = self { true } else { false } }
}

extension Mailbox {
    /// In parts, so that requests of the mount wait for no more than one of them. What is compared
    /// with what is known is in the order of names.
    fileprivate func post(
        page: [Item], of number: Int, _ isFirst: Bool, isLast: Bool,
        then: @escaping @Sendable () -> Void
    ) {
        let items = isFirst ? page : page.sorted { $0.name < $1.name }
        var position = 0
        repeat {
            let end = min(position + Listings.itemsPerEvent, items.count)
            let isEnd = end == items.count
            let part = ListedPart(
                number: number, items: Array(items[position..<end]), isPageEnd: isEnd,
                isLast: isLast && isEnd)
            post(.listed(part), then: isEnd ? then : nil)
            position = end
        } while position < items.count
    }
}
