import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSystem

/// The engine's decisions: what happened comes in as an event, what is to be done goes out as
/// actions.
///
/// It has no task, clock, lock, logger or provider. A decision reads the memory and reads and
/// changes the index in one transaction; it changes no memory itself, which the compiler sees to.
/// What the machine is to remember is an action as well, so a transaction that fails leaves
/// everything as it was. The same events, moments and index give the same actions.
struct Machine {
    var facts: Facts
    let world: World
    var memory = Memory()

    init(_ facts: Facts, _ world: World) {
        self.facts = facts
        self.world = world
    }

    /// After the commit.
    mutating func remember(_ change: (inout Memory) -> Void) { change(&memory) }

    func handle(
        _ event: Event, at now: Moment, reading transaction: borrowing Transaction
    ) throws(Failure) -> [Action] {
        var turn = Turn(facts, memory, world, at: now)
        switch event {
        case .listingWanted, .folderRead, .listed, .listingFailed, .listingDue, .madeDue,
            .listingComplete,
            .listingEnded, .listingLost, .motionEnded:
            try handleListing(event, &turn, transaction)
        case .rootAnswered, .rootSilent, .silenceNoticed, .probeDue, .probeLater, .doubtDue,
            .anchorKnown, .changesKnown, .feedFailed, .feedDue,
            .newsKnown,
            .usedDue, .usedKnown, .cameBack, .cameBackTo:
            try handleProvider(event, &turn, transaction)
        case .itemDoubted, .found, .lookedInto, .surveyed, .askingDue, .digested, .told, .followDue, .follow, .followed,
            .claimsReleased, .asideDue, .tellingDue, .tell, .tellingFailed:
            try handleItem(event, &turn, transaction)
        case .fetchesWanted, .pinnedWanted, .unpinned, .fetchTroubled, .fetchEnded, .hydrationPaused,
            .fetchingDue,
            .used, .roomDue:
            try handleContent(event, &turn, transaction)
        case .started, .stopping, .folderAdopted, .lookWanted, .draining, .hurried, .everythingDue,
            .dueNow, .stepWanted, .step, .stepFailed, .pauseWanted, .limitsWanted, .revertWanted:
            try handleWish(event, &turn, transaction)
        }
        return turn.allActions()
    }

    // MARK: Each event

    private func handleListing(
        _ event: Event, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        switch event {
        case .listingWanted(let folder, let isWhole, let waiter):
            try Listings.wanted(folder, isWhole: isWhole, waiter, &turn, transaction)
        case .folderRead(let folder): try Listings.read(folder, &turn, transaction)
        case .listed(let part): try Listings.listed(part, &turn, transaction)
        case .listingFailed(let number, let problem):
            try Listings.failed(number, problem, &turn, transaction)
        case .listingLost(let number, let failure):
            try Listings.lost(number, failure, &turn, transaction)
        case .listingDue(let folder): try Listings.due(folder, &turn, transaction)
        case .madeDue(let folder): try Listings.dueAsMade(folder, &turn, transaction)
        case .listingComplete(let number, let span):
            try Listings.complete(number, after: span, &turn, transaction)
        case .listingEnded(let folder): try Listings.goOnAhead(after: folder, &turn, transaction)
        case .motionEnded: try Listings.motionEnded(&turn, transaction)
        default: preconditionFailure("\(event) is no event of listings")
        }
    }

    private func handleProvider(
        _ event: Event, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        switch event {
        case .rootAnswered(let number, let result):
            try Connecting.answered(number, result, &turn, transaction)
        case .rootSilent(let number): Connecting.isSilent(number, &turn)
        case .silenceNoticed: Connecting.silenceNoticed(&turn)
        case .probeDue: Connecting.probe(&turn)
        case .probeLater: Connecting.probeLaterAgain(&turn)
        case .doubtDue: Connecting.doubtAgain(&turn)
        case .anchorKnown(let feed, let anchor):
            try Feeding.anchorKnown(feed, anchor, &turn, transaction)
        case .changesKnown(let feed, let page): try Feeding.changed(feed, page, &turn, transaction)
        case .feedFailed(let feed, let problem): Feeding.failed(feed, problem, &turn)
        case .feedDue(let feed): Feeding.due(feed, &turn)
        case .newsKnown(let page): try Feeding.newsKnown(page, &turn, transaction)
        case .usedDue(let round): Feeding.usedDue(round, &turn)
        case .usedKnown(let nodes): try Feeding.usedKnown(nodes, &turn, transaction)
        case .cameBack: turn.act(.takeFreshlyUsed)
        case .cameBackTo(let nodes): try Feeding.cameBack(to: nodes, &turn, transaction)
        default: preconditionFailure("\(event) is no event of the provider")
        }
    }

    private func handleItem(
        _ event: Event, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        switch event {
        case .itemDoubted(let node): try Asking.doubted(node, &turn, transaction)
        case .askingDue: try Asking.due(&turn, transaction)
        case .found(let item, let result, let count):
            try Asking.found(item, result, since: count, &turn, transaction)
        case .lookedInto(let folder, let result, let count):
            try Reviving.lookedInto(folder, result, since: count, &turn, transaction)
        case .surveyed(let survey, let result, let count):
            try MovedFolders.surveyed(survey, result, since: count, &turn, transaction)
        case .digested(let sent, let digest): try transaction.setDigest(digest, of: sent)
        case .told(let operation, let result):
            try Answering.told(operation, result, &turn, transaction)
        case .followDue(let position): try Following.due(after: position, &turn, transaction)
        case .follow(let identifier): try Following.follow(identifier, &turn, transaction)
        case .followed(let position): try Following.followed(upTo: position, &turn, transaction)
        case .claimsReleased: try Following.claimsReleased(&turn, transaction)
        case .asideDue: MovesOfOthers.due(&turn)
        case .tellingDue: try Telling.due(&turn, transaction)
        case .tell(let pending): try Telling.tell(pending, &turn, transaction)
        case .tellingFailed(let pending, let failure):
            try Telling.failed(pending, failure, &turn, transaction)
        default: preconditionFailure("\(event) is no event of items")
        }
    }

    private func handleContent(
        _ event: Event, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        switch event {
        case .fetchesWanted(let nodes): turn.remember { $0.fetches.ask(for: nodes) }
        case .pinnedWanted: turn.lookForPinned()
        case .unpinned(let node, let dropsContent):
            Fetching.unpinned(node, dropsContent: dropsContent, &turn)
        case .fetchTroubled(let node, let problem):
            turn.judge(problem)
            switch problem.code {
            case .stale: try Asking.doubted(node, &turn, transaction)
            case .notFound: try Asking.missed(node, &turn, transaction)
            default: break
            }
        case .fetchEnded(let node, let result): Fetching.ended(node, result, &turn)
        case .hydrationPaused(let node):
            // When nobody has the file open there will be no next reader.
            if !world.observer.isOpen(node) { turn.act(.releaseFetch(node)) }
        case .fetchingDue: try Fetching.due(&turn, transaction)
        case .used(let uses): turn.act(.storeUses(uses))
        case .roomDue:
            let now = turn.now.uptime
            turn.remember { $0.roomChecked = now }
            turn.act(.makeRoom)
        default: preconditionFailure("\(event) is no event of content")
        }
    }

    private func handleWish(
        _ event: Event, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        switch event {
        case .started(let isConnected, let patience):
            if let patience {
                Connecting.connecting(patience, &turn)
            } else if !isConnected {
                Connecting.lost("the provider could not be reached at the start", &turn)
            }
            turn.lookForPinned()
            try Pausing.started(&turn, transaction)
            try Limiting.started(&turn, transaction)
            try Listings.everything(beforeTelling: true, &turn, transaction)
            // What another storage tells is not to be followed, and only a root that came says which
            // one it is.
            if isConnected { Feeding.start(&turn) }
        case .stopping: stop(&turn)
        case .folderAdopted(let folder): turn.noteMade(folder)
        case .stepWanted(let waiter): try Stepping.wanted(waiter, &turn, transaction)
        case .step(let waiter, let waiting):
            try Stepping.next(of: waiting, for: waiter, &turn, transaction)
        case .stepFailed(let waiter, let waiting, let failure):
            try Stepping.passOver(waiting, failure, for: waiter, &turn, transaction)
        case .pauseWanted(let isPaused, let waiter):
            try Pausing.wanted(isPaused, waiter, &turn, transaction)
        case .limitsWanted(let change, let waiter):
            try Limiting.wanted(change, waiter, &turn, transaction)
        case .revertWanted(let subject, let kept, let waiter):
            try Reverting.wanted(subject, kept, waiter, &turn, transaction)
        case .lookWanted(let everything):
            Stepping.end(&turn)
            Connecting.probeNow(&turn)
            let now = turn.now.uptime
            turn.remember { $0.listings.due.hasten(to: now) }
            try Listings.tryTroubled(&turn, transaction)
            if everything {
                try Listings.everything(&turn, transaction)
            } else {
                try Feeding.lookForNews(&turn, transaction)
            }
            turn.act(.go(.everythingDue))
        case .draining(let isDraining):
            if isDraining { Stepping.end(&turn) }
            turn.remember { $0.operations.drainingCount += isDraining ? 1 : -1 }
            turn.act(.go(.everythingDue))
        case .hurried(let subjects, let nodes):
            try Hurrying.wanted(subjects, nodes, &turn, transaction)
        case .everythingDue:
            turn.act(.noteOpenWrites)
            turn.act(.go(.dueNow))
        case .dueNow: try transaction.makePendingDue(at: turn.now.time)
        default: preconditionFailure("\(event) is no wish")
        }
    }

    private func stop(_ turn: inout Turn) {
        turn.act(.cancelFeed(memory.feed.number))
        for subject in memory.operations.running.keys { turn.act(.cancelTelling(subject)) }
        for listing in memory.listings.running.values {
            turn.act(.cancelListing(number: listing.number))
        }
    }
}
