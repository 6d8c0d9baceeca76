import Logging
import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSystem

/// The provider's feed of changes, and the polls of a provider that has none.
enum Feeding {
    /// From the beginning; what comes of an earlier feed is not meant any more.
    static func start(_ turn: inout Turn) {
        let number = turn.memory.feed.number + 1
        turn.act(.cancelFeed(turn.memory.feed.number))
        turn.remember { memory in
            memory.feed.number = number
            memory.feed.anchor = nil
            memory.feed.attempts = 0
            memory.feed.usedRound = number
        }
        turn.act(.call(.currentAnchor(feed: number)))
        if !turn.facts.hasFeed {
            turn.act(.wait(turn.facts.configuration.pollInterval, .usedDue(round: number)))
        }
    }

    static func anchorKnown(
        _ feed: Int, _ anchor: Anchor, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard feed == turn.memory.feed.number else { return }
        turn.remember { memory in
            memory.feed.anchor = anchor
            memory.feed.attempts = 0
        }
        try Listings.everything(&turn, transaction)
        goOn(feed, since: anchor, &turn)
    }

    /// A provider that tells by itself is waited for, another one is asked when it is time.
    private static func goOn(
        _ feed: Int, since anchor: Anchor, after pause: Duration? = nil, _ turn: inout Turn
    ) {
        guard turn.facts.capabilities.contains(.changePush) else {
            return turn.act(.wait(turn.facts.configuration.pollInterval, .feedDue(feed: feed)))
        }
        if let pause {
            turn.act(.wait(pause, .feedDue(feed: feed)))
        } else {
            ask(feed, since: anchor, isWaiting: true, &turn)
        }
    }

    static func due(_ feed: Int, _ turn: inout Turn) {
        guard feed == turn.memory.feed.number else { return }
        guard let anchor = turn.memory.feed.anchor else {
            return turn.act(.call(.currentAnchor(feed: feed)))
        }
        let isWaiting = turn.facts.capabilities.contains(.changePush)
        ask(feed, since: anchor, isWaiting: isWaiting, &turn)
    }

    private static func ask(
        _ feed: Int, since anchor: Anchor, isWaiting: Bool, _ turn: inout Turn
    ) {
        let now = turn.now.uptime
        turn.remember { memory in
            memory.feed.askedAfter = memory.operations.count
            memory.feed.rest.asks(at: now)
        }
        turn.act(.call(.changes(feed: feed, since: anchor, isWaiting: isWaiting)))
    }

    static func changed(
        _ feed: Int, _ page: ChangePage, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard feed == turn.memory.feed.number else { return }
        let now = turn.now.uptime
        var rest = turn.memory.feed.rest
        rest.answered(isVain: page.isEmpty || page.anchor == turn.memory.feed.anchor, at: now)
        turn.remember { [rest] memory in
            memory.feed.anchor = page.anchor
            memory.feed.attempts = 0
            memory.feed.expiries = 0
            memory.feed.rest = rest
        }
        goOn(feed, since: page.anchor, after: rest.pause(at: now), &turn)
        try store(page, since: turn.memory.feed.askedAfter, &turn, transaction)
        var folders = page.foldersToList
        if !turn.facts.hasFeed {
            let interval = turn.facts.configuration.pollInterval
            guard turn.memory.feed.mayPoll(at: now, interval: interval) else { return }
            if page.isGuess { folders = turn.memory.feed.quiet.due(of: folders, at: now) }
            turn.remember { [folders] memory in
                memory.feed.polled = folders
                memory.feed.pollBegan = now
                if page.isGuess { memory.feed.quiet.looked(at: folders, of: page.foldersToList, at: now) }
            }
        }
        for folder in folders { turn.listAgain(folder) }
    }

    static func failed(_ feed: Int, _ problem: ProviderError, _ turn: inout Turn) {
        guard feed == turn.memory.feed.number, problem.code != .cancelled else { return }
        if problem.code == .anchorExpired { return expired(feed, &turn) }
        turn.judge(problem)
        // When it is back the feed begins again.
        if problem.code == .offline || problem.code == .authenticate { return }
        let attempts = turn.memory.feed.attempts + 1
        turn.remember { $0.feed.attempts = attempts }
        if attempts.isMultiple(of: problem.isPassing ? attemptsMax * 4 : attemptsMax) {
            turn.log(
                .warning, "what changes at the provider is not told: all that is known is looked at instead",
                reason: problem.message)
            return expired(feed, &turn)
        }
        turn.act(.wait(Connecting.delay(after: attempts, turn), .feedDue(feed: feed)))
    }

    /// After so many of them in a row it begins anew, as what was not told of would never be seen.
    private static let attemptsMax = 4

    /// It begins anew, with a look at all that is known. A provider may refuse what it has just given,
    /// and without a pause that would go on as fast as it answers.
    private static func expired(_ feed: Int, _ turn: inout Turn) {
        let expiries = turn.memory.feed.expiries + 1
        turn.remember { memory in
            memory.feed.anchor = nil
            memory.feed.expiries = expiries
        }
        if expiries == 1 { return turn.act(.call(.currentAnchor(feed: feed))) }
        turn.act(.wait(Connecting.delay(after: expiries - 1, turn), .feedDue(feed: feed)))
    }

    /// What a page tells of items. It was asked for when `count` operations had ended, and knows nothing
    /// of what was told since.
    private static func store(
        _ page: ChangePage, since count: Int, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        let operations = turn.memory.operations
        // One that was silent about our own changes for long is believed.
        let count = max(count, operations.forgotten)
        for told in page.updated {
            let item = try turn.withAgreedMetadata(told, transaction)
            let synced = try transaction.synced(item.identifier)
            guard let parent = item.parent, operations.isNewer(item, in: parent, than: count) else {
                try turn.observe(item, synced: synced, transaction)
                continue
            }
            let isSame = synced.map { item.isSame(as: $0.item) } ?? false
            if !isSame { turn.listAgain(parent, after: .milliseconds(500)) }
        }
        for identifier in page.deleted where try transaction.synced(identifier) != nil {
            let isNewer = operations.isTouched(identifier, since: count)
            if isNewer || operations.isBusy(identifier) {
                turn.ask(for: identifier)
            } else {
                try transaction.setRemote(identifier, .deleted)
                turn.noteDivergence()
            }
        }
    }

    // MARK: For somebody who waits

    /// A provider without a feed names what may have changed, which can be found with fewer
    /// requests than it takes to list all that is known; a feed may have missed something.
    static func lookForNews(_ turn: inout Turn, _ transaction: borrowing Transaction)
        throws(Failure)
    {
        guard let anchor = turn.memory.feed.anchor, turn.memory.connection.isOnline,
            !turn.facts.hasFeed
        else {
            return try Listings.everything(&turn, transaction)
        }
        turn.remember { memory in
            if memory.feed.newsAskedCount == 0 { memory.feed.newsAskedAfter = memory.operations.count }
            memory.feed.newsAskedCount += 1
        }
        turn.act(.call(.news(since: anchor)))
    }

    static func newsKnown(
        _ page: ChangePage?, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        turn.remember { $0.feed.newsAskedCount -= 1 }
        guard let page else { return try Listings.everything(&turn, transaction) }
        try store(page, since: turn.memory.feed.newsAskedAfter, &turn, transaction)
        for folder in page.foldersToList { turn.listAgain(folder, after: .zero) }
    }

    // MARK: What programs use

    /// Whatever looking at everything takes, and before all others: the folders of what programs
    /// use.
    static func usedDue(_ round: Int, _ turn: inout Turn) {
        guard round == turn.memory.feed.usedRound else { return }
        turn.act(.wait(turn.facts.configuration.pollInterval, .usedDue(round: round)))
        // One that was away at the start may have a feed after all.
        if turn.facts.hasFeed { return }
        // What is watched matters for what nobody uses, and to look for it takes a look at all processes.
        let now = turn.now.uptime
        let asksWatchers = now - turn.memory.feed.watchersAsked >= watchersPause
        if asksWatchers { turn.remember { $0.feed.watchersAsked = now } }
        turn.act(.takeUsed(withWatched: asksWatchers))
    }

    /// Between two looks at what programs watch.
    private static let watchersPause = Duration.seconds(30)

    static func usedKnown(
        _ used: WatchedNodes, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        let now = turn.now.uptime
        if used.isEverything { turn.remember { $0.feed.quiet.usedAll(at: now) } }
        for folder in try folders(of: used.nodes, turn, transaction) {
            turn.remember { $0.feed.quiet.used(folder, at: now) }
            turn.listAgain(folder, isUsed: true)
        }
    }

    /// A program uses what was left alone: what was looked at rarely meanwhile is looked at at once.
    static func cameBack(
        to nodes: Set<NodeID>, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        let now = turn.now.uptime
        for folder in try folders(of: nodes, turn, transaction) {
            guard turn.memory.feed.quiet.isQuiet(folder, at: now) else { continue }
            turn.remember { $0.feed.quiet.used(folder, at: now) }
            turn.listAgain(folder, after: .zero, isUsed: true)
        }
    }

    /// Those that the nodes are, or are in.
    private static func folders(
        of nodes: Set<NodeID>, _ turn: borrowing Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> [ItemIdentifier] {
        var folders: Set<NodeID> = []
        for node in nodes {
            guard let kind = try transaction.node(node)?.kind else { continue }
            folders.formUnion(
                kind == .folder ? [node] : try transaction.entries(of: node).map(\.parent))
        }
        var identifiers: [ItemIdentifier] = []
        for folder in folders {
            if let identifier = try turn.identifier(of: folder, transaction) {
                identifiers.append(identifier)
            }
        }
        return identifiers
    }
}

extension ProviderError {
    /// It says nothing about what was asked for: the same question may be answered in a while.
    fileprivate var isPassing: Bool {
        switch code {
        case .retry, .retryAfter, .offline, .authenticate, .cancelled: true
        default: false
        }
    }
}
