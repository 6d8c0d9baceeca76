import PromiseCore
import PromiseIndex
import PromiseProvider

/// Everything that the machine remembers between two events. It may be lost at any moment: what
/// must not be lost is in the index. It changes only after the index has committed a decision.
struct Memory {
    var connection = ConnectionMemory()
    var listings = ListingMemory()
    var questions = QuestionMemory()
    var operations = OperationMemory()
    var feed = FeedMemory()
    var fetches = BackgroundFetches()
    /// The provider may differ from what was last agreed on.
    var hasDivergences = true
    /// Numbers given to what needs one of its own.
    var freshCount = 0
    /// Items that have a name for a moment, given by another machine.
    var asides = AsideNames()
    /// By how much the wall clock was ahead of uptime, in nanoseconds, when work was looked for last.
    var clockLead: Int64?
    /// When room was looked for last, by uptime; nil: never.
    var roomChecked: Duration?
    var limits = Limits()

    /// A listing that takes longer than this to begin is begun again when something was told
    /// meanwhile: much longer than what a program waits for.
    private static let touchedPatience = Duration.seconds(600)

    /// Of what our own operations changed all goes that no answer to come is older than. What hangs
    /// is not waited for: should it be heard again it is doubted.
    mutating func forgetTouched(at now: Duration) {
        var counts = Array(questions.gone.values)
        for asked in questions.asked.values where now - asked.time < Memory.touchedPatience {
            counts.append(asked.operationCount)
        }
        for listing in listings.running.values where now - listing.heard < Memory.touchedPatience {
            counts.append(listing.operationCount)
        }
        operations.forgetTouched(before: counts.min() ?? operations.count, feed: feed.answersKnow)
    }
}

/// Whether the provider can be reached.
struct ConnectionMemory {
    var state = SyncEngine.Connection.online
    /// Since when nothing can be done there, and when the provider is tried again.
    var since: Timestamp?
    var nextTry: Timestamp?
    var probeAttempts = 0
    /// A question whether it is back is under way, or to be asked soon.
    var isProbing = false
    /// Questions that somebody waits for.
    var askedCount = 0
    /// Calls that ask for the root and have not returned, and why each was made; nil: nobody waits for
    /// it any more, as it was silent for long.
    var rootCalls: [Int: RootCall?] = [:]
    var rootCallCount = 0

    /// `watch`: as those who wait for something else hear nothing. `doubt`: as an answer was of no use.
    enum RootCall { case start, probe, asked, watch, doubt }
    var isWatching = false
    /// Whether what is wrong is wrong with the storage as a whole is being found out.
    var doubt: Doubt?

    struct Doubt {
        /// Uptime of its beginning.
        var since: Duration
        /// Answers for the root that were of no use either.
        var count = 0
    }

    var isOnline: Bool { state == .online }
    /// Programs may wait for it.
    var isHoped: Bool { state == .online || state == .connecting }
}

/// Folders whose children are being learned, and those that are to be looked at again.
struct ListingMemory {
    var running: [NodeID: Listing] = [:]
    /// Listings so far.
    var count = 0
    var walk = FolderWalk()
    /// Folders to list again, and when at the earliest (uptime).
    var due = FolderQueue()
    /// To be looked at again when what they are in has been moved.
    var inMotion: Set<ItemIdentifier> = []
    var made = MadeFolders()
    /// Folders whose times are taken when all in them has been told, and what each is in.
    var timesAwaited: [ItemIdentifier: ItemIdentifier] = [:]
    var troubles = FolderTroubles()
    /// Folders to be looked at once before the provider is told anything: what it was told last may
    /// have arrived.
    var unscanned: Set<ItemIdentifier> = []

    /// A provider's file system may hang below one folder, and a listing there never come.
    static let silencePatience = Duration.seconds(60)

    /// So many of those hold up no others: each may have a thread of the provider's for good.
    private static let silentMax = 2

    /// Nothing was heard of it for long, and nothing waits for it any more.
    func isSilent(_ listing: Listing, at now: Duration) -> Bool {
        now - listing.heard >= ListingMemory.silencePatience
    }

    /// Nothing runs that may still show something. `again`: of folders that were listed before.
    func isResting(at now: Duration, again: Bool = false) -> Bool {
        running.values.allSatisfy { again && $0.isFirst || isSilent($0, at: now) }
    }

    /// Of `max` places, one more folder can be listed again. What is listed for the first time, for
    /// programs or ahead of a walk, keeps none: a walk may go on for an hour.
    func hasPlace(of max: Int, at now: Duration) -> Bool {
        if running.count < max { return true }
        let again = running.values.filter { !$0.isFirst }
        let silentCount = again.count(where: { isSilent($0, at: now) })
        return again.count - min(silentCount, ListingMemory.silentMax) < max
    }

    /// What is told in other folders does not wait for those of which nothing is heard, nor for
    /// those that no place comes free for.
    mutating func passOverSilent(of max: Int, at now: Duration) {
        guard !unscanned.isEmpty else { return }
        for listing in running.values where isSilent(listing, at: now) {
            unscanned.remove(listing.identifier)
        }
        if isStuck(with: max, at: now) { unscanned = [] }
    }

    /// No place comes free any more.
    func isStuck(with max: Int, at now: Duration) -> Bool {
        !hasPlace(of: max, at: now) && isResting(at: now, again: true)
    }

    func listing(_ number: Int) -> Listing? { running.values.first { $0.number == number } }

    /// Something may have changed in a folder.
    mutating func add(
        _ folder: ItemIdentifier, at due: Duration, isUsed: Bool = false, isLeisurely: Bool = false
    ) {
        self.due.add(folder, at: due, isUsed: isUsed, isLeisurely: isLeisurely)
    }
}

/// Single items that the provider is asked for.
struct QuestionMemory {
    /// Items that a listing no longer showed, to be asked for one by one.
    var missing: Set<ItemIdentifier> = []
    /// Uptime of the first look for work at which there were some; nil: there are none.
    var missingSince: Duration?
    /// What is being asked for, or looked into.
    var asked: [ItemIdentifier: Asked] = [:]

    struct Asked {
        /// Uptime of its beginning, and how many operations had ended then.
        var time: Duration
        var operationCount: Int
    }
    /// Those that are said to be gone, until something of use is heard; how many operations had ended when each was asked for.
    var gone: [ItemIdentifier: Int] = [:]
    /// Those that are asked for as a fetch found another version, not as a listing missed them.
    var doubted: Set<ItemIdentifier> = []
    /// Of the missing ones, those that a listing showed at another place.
    var arrivals: [ItemIdentifier: Item] = [:]
    /// The store is asked by place and has shown numbers of items.
    var hasNumbers = false
    /// Folders that a move of ours may have moved without an answer: when they were asked for, and
    /// those that were seen where they had been.
    var placesAsked: [ItemIdentifier: Duration] = [:]
    var placesSeen: Set<ItemIdentifier> = []
    /// Places at which something was seen first that may be another item's, and when that was.
    var sentTwice: [ItemPlace: Duration] = [:]
    /// Folders in which something may be under a name that is not known of it.
    var looks: [ItemIdentifier: FolderLook] = [:]
    /// What was moved without an answer, and not found where it was moved to.
    var movesLookedFor: Set<ItemIdentifier> = []
    /// What was removed at a store of places without an answer.
    var removalsUnanswered: [ItemIdentifier: UnansweredRemoval] = [:]
    /// What is being removed there, and may be what others have moved there meanwhile.
    var removalsDoubted: Set<ItemIdentifier> = []
    /// Folders that others may have moved.
    var moved = MovedFoldersMemory()
}

/// What the provider is being told.
struct OperationMemory {
    var running: [Pending.Subject: Operation] = [:]
    /// Operations that have ended.
    var count = 0
    /// What our own operations changed, and when: listings older than that are not believed about
    /// it.
    var touchedItems: [ItemIdentifier: Int] = [:]
    var touchedPlaces: [ItemPlace: Int] = [:]
    /// How many operations had ended with the last one of which that was forgotten.
    var forgotten = -1
    var blocked = BlockedWork()
    /// How often what never rests was written to while it was sent.
    var torn: [Pending.Subject: Int] = [:]
    /// Work that waits for whoever has a claim on its item.
    var waitingForClaims: Set<Pending.Subject> = []
    /// Those who wait for the provider to have everything.
    var drainingCount = 0
    /// Quiet times are cut short.
    var isDraining: Bool { drainingCount > 0 }
    /// Files whose content a program waits to be sent.
    var hurried: Set<NodeID> = []
    var stepping = Stepping.State()
    var late = LateCreations()
    /// Since when nothing is told by itself; nil: it is.
    var pausedSince: Timestamp?
    var isHeld: Bool { pausedSince != nil || stepping.isHolding }

    /// An operation under way changes this place at the provider.
    func isBusy(_ place: ItemPlace) -> Bool {
        running.values.contains { $0.places.contains(place) }
    }

    func isBusy(_ item: ItemIdentifier) -> Bool {
        running.values.contains { $0.identifier == item }
    }

    var hasMoves: Bool { running.values.contains { $0.isMove } }

    /// Of the places for operations. What is small takes round trips; of what is large a few fill
    /// any line.
    var occupiedCount: Int {
        running.values.reduce(0) { $0 + ($1.isLarge ? 2 : 1) }
    }

    var hasLarge: Bool { running.values.contains { $0.isLarge } }

    /// An operation on the item, or in its place, is under way or ended after `count` others had.
    func isNewer(_ item: Item, in folder: ItemIdentifier, than count: Int) -> Bool {
        if running.isEmpty && touchedItems.isEmpty && touchedPlaces.isEmpty {
            return forgotten > count
        }
        let place = ItemPlace(parent: folder, name: item.name)
        if isBusy(item.identifier) || isBusy(place) { return true }
        return isTouched(item.identifier, since: count) || isTouched(place, since: count)
    }

    /// An operation that leads there, or led from there, ended after `count` others had.
    func isTouched(_ place: ItemPlace, since count: Int) -> Bool {
        touchedPlaces[place, default: -1] > count
    }

    /// An operation on it ended after `count` others had, or may have.
    func isTouched(_ item: ItemIdentifier, since count: Int) -> Bool {
        touchedItems[item, default: forgotten] > count
    }

    /// An operation has ended, whatever came of it.
    mutating func ended(_ operation: Operation) {
        running[operation.subject] = nil
        count += 1
        for place in operation.places { touchedPlaces[place] = count }
        if let identifier = operation.identifier { touchedItems[identifier] = count }
    }

    /// One of an earlier daemon, or without an answer, has led the item from one place to another, as is known now.
    /// What was asked before may have been read earlier than that.
    mutating func recognized(_ item: Item, knownAs agreed: Item?) {
        count += 1
        touchedItems[item.identifier] = count
        for known in [item, agreed ?? item] {
            if let parent = known.parent { touchedPlaces[ItemPlace(parent: parent, name: known.name)] = count }
        }
    }

    /// But for what an answer to a question that was asked after `asked` operations, or one of a
    /// feed that was asked after `feed`, may not know.
    fileprivate mutating func forgetTouched(before asked: Int, feed: Int) {
        forgetTouched(before: min(asked, feed))
        // A feed that is silent about our own changes is asked but once.
        guard touchedCount > OperationMemory.touchedMax else { return }
        forgetTouched(before: min(asked, count - OperationMemory.lookInterval))
    }

    private mutating func forgetTouched(before count: Int) {
        forgotten = max(forgotten, count)
        touchedItems = touchedItems.filter { $0.value > count }
        touchedPlaces = touchedPlaces.filter { $0.value > count }
    }

    var touchedCount: Int { touchedItems.count + touchedPlaces.count }
    /// Operations between two looks at what can be forgotten, and those that a feed is heard after.
    static let lookInterval = 1_024
    private static let touchedMax = 4_096
}

/// The provider's feed of changes, or the polls in its stead.
struct FeedMemory {
    /// Which feed this is: what comes of an earlier one is not meant any more.
    var number = 0
    /// Nil before it has begun.
    var anchor: Anchor?
    var attempts = 0
    /// How often it began anew, as the provider knew the anchor no longer, since changes came.
    var expiries = 0
    var rest = FeedRest()
    /// Of the folders that a provider without a feed named last: those that were not listed since;
    /// and when that began, and when all had been.
    var polled: Set<ItemIdentifier> = []
    var pollBegan: Duration = .zero
    var pollEnded: Duration = .zero
    /// When each of what it cannot tell of was used and looked at.
    var quiet = QuietFolders()
    /// Uptime of the last look at what programs watch.
    var watchersAsked = Duration.zero
    /// Questions for what is new that somebody waits for.
    var newsAskedCount = 0
    /// How many operations had ended when the feed was asked last, and the first of those questions.
    var askedAfter = 0
    var newsAskedAfter = 0
    /// Of the answers that are still to come.
    var answersKnow: Int { newsAskedCount > 0 ? min(askedAfter, newsAskedAfter) : askedAfter }
    /// Of the looks at what programs use.
    var usedRound = 0

    /// One that was polled has been looked at, or cannot be.
    mutating func ended(_ folder: ItemIdentifier, at now: Duration) {
        guard polled.remove(folder) != nil, polled.isEmpty else { return }
        pollEnded = now
    }

    /// A provider without a feed names all that is known, each time. If listing all of that takes
    /// longer than the poll interval, polls would follow each other without end, and whoever waits
    /// for the provider to have everything would wait for ever: a pause is kept. It is as long as
    /// the looking took, so that a million objects do not keep a server busy all the time.
    func mayPoll(at now: Duration, interval: Duration) -> Bool {
        let pause = max(interval / 2, min(pollEnded - pollBegan, .seconds(600)))
        return polled.isEmpty && now >= pollEnded + pause
    }
}
