import PromiseCore
import PromiseIndex
import PromiseProvider

/// Learning what a folder holds, first when a program opens it and again when something may have
/// changed.
enum Listings {
    // MARK: For programs

    static func wanted(
        _ folder: NodeID, isWhole: Bool, _ waiter: Waiter, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        if let listing = turn.memory.listings.running[folder] {
            turn.remember { memory in
                if isWhole {
                    memory.listings.running[folder]?.waiters.append(waiter)
                } else {
                    memory.listings.running[folder]?.readers.append(waiter)
                }
            }
            if listing.isFirst { try listAhead(of: folder, &turn, transaction) }
            return
        }
        guard let node = try transaction.node(folder) else {
            return turn.act(.reply(waiter, .failure(Failure(.stale, "the folder is gone"))))
        }
        guard node.kind == .folder else {
            return turn.act(.reply(waiter, .failure(Failure(.notFolder, "it is not a folder"))))
        }
        guard let identifier = try turn.identifier(of: folder, transaction), !node.isPopulated
        else {
            return turn.act(.reply(waiter, .success(())))
        }
        try start(
            folder, identifier, isFirst: true, waiters: isWhole ? [waiter] : [],
            readers: isWhole ? [] : [waiter],
            &turn, transaction)
        try listAhead(of: folder, &turn, transaction)
    }

    // MARK: Ahead of a walk

    /// Who walks through the tree finds the next folders listed.
    private static func listAhead(
        of folder: NodeID, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard let parent = try transaction.entries(of: folder).first?.parent else { return }
        var walk = turn.memory.listings.walk
        let next = try walk.asked(for: folder, in: parent, at: turn.now.uptime) {
            () throws(Failure) in
            try transaction.folders(in: parent, limit: FolderWalk.folderCountMax)
        }
        try listAhead(next, walk, &turn, transaction)
    }

    /// A program begins to read a folder.
    static func read(
        _ folder: NodeID, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        var walk = turn.memory.listings.walk
        let next = walk.reached(folder, at: turn.now.uptime)
        try listAhead(next, walk, &turn, transaction)
    }

    static func goOnAhead(
        after folder: NodeID, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        var walk = turn.memory.listings.walk
        let next = try walk.ended(folder) { () throws(Failure) in
            try transaction.folders(in: folder, limit: FolderWalk.folderCountMax)
        }
        try listAhead(next, walk, &turn, transaction)
    }

    private static func listAhead(
        _ folders: [NodeID], _ walk: FolderWalk, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        var walk = walk
        var folders = folders[...]
        var started: Set<NodeID> = []
        while let folder = folders.popFirst() {
            let isKnown = try transaction.node(folder)?.isPopulated ?? true
            let isRunning = turn.memory.listings.running[folder] != nil || started.contains(folder)
            if !isKnown, !isRunning, let identifier = try turn.identifier(of: folder, transaction) {
                started.insert(folder)
                try start(folder, identifier, isFirst: true, &turn, transaction)
            } else {
                folders += walk.skipped(folder)
            }
        }
        turn.remember { [walk] in $0.listings.walk = walk }
    }

    // MARK: Again

    /// Lists every known folder again.
    static func everything(
        beforeTelling: Bool = false, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        var identifiers: [ItemIdentifier] = []
        for folder in try transaction.populatedFolders() {
            if let identifier = try turn.identifier(of: folder, transaction) {
                identifiers.append(identifier)
            }
        }
        let now = turn.now.uptime
        turn.remember { [identifiers] memory in
            for identifier in identifiers { memory.listings.add(identifier, at: now) }
            if beforeTelling { memory.listings.unscanned.formUnion(identifiers) }
        }
    }

    /// A folder's time has come.
    static func due(
        _ identifier: ItemIdentifier, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard let folder = try turn.knownFolder(identifier, transaction) else {
            // What is listed for the first time may have been read before this.
            let isListed = turn.memory.listings.running.values.contains {
                $0.identifier == identifier
            }
            if isListed { turn.listAgain(identifier) }
            return noLonger(identifier, &turn)
        }
        if try turn.isInMotion(identifier, transaction) {
            // A move may take the provider minutes, and what its folders hold meanwhile says
            // nothing.
            turn.remember { $0.listings.inMotion.insert(identifier) }
        } else if let listing = turn.memory.listings.running[folder] {
            let isSilent = turn.memory.listings.isSilent(listing, at: turn.now.uptime)
            turn.listAgain(identifier, after: isSilent ? .seconds(5) : .milliseconds(50))
        } else {
            try start(folder, identifier, isFirst: false, &turn, transaction)
        }
    }

    /// What is in a folder is not as was believed. One whose first listing never ended, and for which nobody
    /// asks any more, is listed as such.
    static func look(
        at identifier: ItemIdentifier, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard let folder = try turn.node(for: identifier, transaction),
            let node = try transaction.node(folder), node.kind == .folder, !node.isPopulated,
            turn.memory.listings.running[folder] == nil
        else { return turn.listAgain(identifier, after: .zero) }
        try start(folder, identifier, isFirst: true, &turn, transaction)
    }

    /// A folder that was made here is looked at once.
    static func dueAsMade(
        _ identifier: ItemIdentifier, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard let folder = try turn.knownFolder(identifier, transaction) else { return }
        try start(folder, identifier, isFirst: false, &turn, transaction)
        turn.remember { $0.listings.made.listing = identifier }
    }

    /// Nobody waits for this folder any more.
    private static func noLonger(_ identifier: ItemIdentifier, _ turn: inout Turn) {
        let now = turn.now.uptime
        turn.remember { memory in
            memory.listings.unscanned.remove(identifier)
            memory.feed.ended(identifier, at: now)
        }
    }

    /// Some operation has moved something, or has failed to: this ends the wait for that.
    static func startWhatWasInMotion(_ turn: inout Turn) {
        turn.act(.go(.motionEnded))
    }

    static func motionEnded(_ turn: inout Turn, _ transaction: borrowing Transaction)
        throws(Failure)
    {
        for listing in turn.memory.listings.running.values where listing.number == 0 {
            try startAnew(listing, &turn, transaction)
        }
        let now = turn.now.uptime
        turn.remember { memory in
            for identifier in memory.listings.inMotion { memory.listings.add(identifier, at: now) }
            memory.listings.inMotion = []
        }
    }

    // MARK: One listing

    /// A folder that nobody has seen anything of yet.
    static func tryAgain(
        _ folder: NodeID, _ identifier: ItemIdentifier, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        try start(folder, identifier, isFirst: true, &turn, transaction)
    }

    private static func startAnew(
        _ listing: Listing, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        try start(
            listing.folder, listing.identifier, isFirst: true, waiters: listing.waiters,
            readers: listing.readers,
            &turn, transaction)
    }

    private static func start(
        _ folder: NodeID, _ identifier: ItemIdentifier, isFirst: Bool, waiters: [Waiter] = [],
        readers: [Waiter] = [], _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        let number = turn.takeListingNumber()
        var listing = Listing(
            number: number, folder: folder, identifier: identifier, isFirst: isFirst,
            operationCount: turn.memory.operations.count, lastChange: try transaction.lastChange(),
            started: turn.now.uptime, heard: turn.now.uptime, waiters: waiters, readers: readers)
        if isFirst { listing.followsAnother = try transaction.hasSyncedChildren(of: identifier) }
        turn.remember { [listing] memory in
            memory.listings.made.listed(identifier)
            memory.listings.running[folder] = listing
        }
        if let reference = try turn.reference(to: identifier, transaction) {
            turn.act(.call(.list(number: number, reference, isFirst: isFirst)))
        } else {
            let problem = ProviderError(.notFound, "the folder is not known at the provider")
            turn.act(.go(.listingFailed(number: number, problem)))
        }
    }

    /// Part of a page of what the provider shows, of at most `itemsPerEvent` items.
    static func listed(
        _ part: ListedPart, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard let listing = turn.memory.listings.listing(part.number) else { return }
        if try startAgain(listing, &turn, transaction) { return }
        let found = try store(part.items, listing, &turn, transaction)
        let folder = listing.folder
        let hasNews = listing.hasNews || found.hasNews
        let readers = hasNews && part.isPageEnd && !part.isLast ? listing.readers : []
        let now = turn.now.uptime
        turn.remember { memory in
            memory.listings.running[folder]?.heard = now
            memory.listings.running[folder]?.take(found)
            memory.listings.running[folder]?.hasNews = hasNews && !part.isPageEnd
            if part.isPageEnd { memory.listings.running[folder]?.pageCount += 1 }
            if !readers.isEmpty { memory.listings.running[folder]?.readers = [] }
        }
        for reader in readers { turn.act(.reply(reader, .success(()))) }
        if part.isLast { turn.act(.go(.listingComplete(number: part.number, after: nil))) }
    }

    static func failed(
        _ number: Int, _ problem: ProviderError, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard let listing = turn.memory.listings.listing(number) else { return }
        if problem.code == .notFound, try startAgain(listing, &turn, transaction) { return }
        turn.judge(problem)
        let isRoot = listing.identifier == turn.facts.rootIdentifier
        switch problem.code {
        case .notFound where !isRoot: turn.ask(for: listing.identifier)
        case .offline, .authenticate, .cancelled: break
        default:
            if problem.code == .notFound { Connecting.vouch(&turn) }
            noteTrouble(listing.folder, problem.failure, &turn)
            if !listing.isFirst { turn.listAgain(listing.identifier, after: FolderTroubles.pause, isLeisurely: true) }
        }
        try end(listing, .failure(problem.failure), &turn, transaction)
    }

    /// What it showed could not be stored.
    static func lost(
        _ number: Int, _ failure: Failure, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard let listing = turn.memory.listings.listing(number) else { return }
        turn.act(.cancelListing(number: number))
        try end(listing, .failure(failure), &turn, transaction)
    }

    /// True when a folder above was moved while this one was listed: its path led nowhere, or to
    /// another folder. Or nothing was heard of it for so long that nobody knows any more what of it
    /// is older than our own operations.
    private static func startAgain(
        _ listing: Listing, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        let (identifier, folder) = (listing.identifier, listing.folder)
        let isTooOld = listing.operationCount < turn.memory.operations.forgotten
        if !isTooOld,
            try !turn.mayHaveMoved(identifier, since: listing.operationCount, transaction)
        {
            return false
        }
        turn.act(.cancelListing(number: listing.number))
        if listing.isFirst, try turn.isInMotion(identifier, transaction) {
            // What comes of it still is not meant any more.
            turn.remember { $0.listings.running[folder]?.number = 0 }
        } else if listing.isFirst {
            try startAnew(listing, &turn, transaction)
        } else {
            turn.listAgain(identifier, after: .milliseconds(100))
            // Whatever was looked for in it may be there: the next one shows it.
            var brokenOff = listing
            brokenOff.hasLeftOut = true
            try end(brokenOff, .success(()), &turn, transaction)
        }
        return true
    }

    static func end(
        _ listing: Listing, _ outcome: Result<Void, Failure>, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        let (folder, identifier) = (listing.folder, listing.identifier)
        noLonger(identifier, &turn)
        if case .success = outcome {
            try FirstNames.forgetLeft(listing, turn, transaction)
            FirstNames.noteLook(listing, &turn)
            clearTrouble(folder, &turn)
        }
        let now = turn.now.uptime
        turn.remember { memory in
            memory.listings.running[folder] = nil
            if memory.listings.made.listing == identifier { memory.listings.made.listing = nil }
            if memory.operations.running.isEmpty { memory.forgetTouched(at: now) }
        }
        for waiter in listing.waiters + listing.readers { turn.act(.reply(waiter, outcome)) }
        turn.act(.go(.listingEnded(listing.folder)))
    }

    /// Nobody is left waiting for a provider that cannot answer.
    static func failAll(_ failure: Failure, _ turn: inout Turn) {
        for listing in turn.memory.listings.running.values {
            turn.act(.cancelListing(number: listing.number))
            for waiter in listing.waiters + listing.readers {
                turn.act(.reply(waiter, .failure(failure)))
            }
        }
        let now = turn.now.uptime
        turn.remember { memory in
            memory.feed.polled = []
            memory.listings.made.listing = nil
            for listing in memory.listings.running.values {
                _ = memory.listings.walk.ended(listing.folder)
                if !listing.isFirst { memory.listings.add(listing.identifier, at: now) }
            }
            memory.listings.walk.stop()
            memory.listings.running = [:]
        }
    }
}
