import PromiseCore
import PromiseIndex

// What is due by itself, in the order in which it is looked at.

extension Machine {
    static let roomInterval = Duration.seconds(5)
    /// How long folders that are listed for the first time may show what is missing.
    private static let missingPatience = Duration.seconds(10)

    /// Somebody who waits has nothing better to do with the line.
    private var listingsMax: Int {
        let usual = facts.configuration.listingsMax
        return memory.operations.isDraining ? max(usual, FolderWalk.aheadCount) : usual
    }

    /// Room on the disk is looked for whenever there is something to do, but not all the time.
    func isRoomDue(at now: Moment) -> Bool {
        memory.roomChecked.map { now.uptime - $0 >= Machine.roomInterval } ?? true
    }

    /// A folder that is to be listed again now. It is taken out of the queue.
    mutating func nextListing(at now: Moment) -> ItemIdentifier? {
        guard memory.listings.hasPlace(of: listingsMax, at: now.uptime) else { return nil }
        return memory.listings.due.next(at: now.uptime)
    }

    /// It could not be begun.
    mutating func putBack(_ folder: ItemIdentifier, at now: Moment) {
        memory.listings.add(folder, at: now.uptime + .seconds(1))
    }

    /// What is under way may show what is missing; but a poll of everything may be under way for
    /// long, and so may a walk through folders that nobody has seen.
    mutating func isAskingDue(at now: Moment) -> Bool {
        if memory.questions.missing.isEmpty {
            memory.questions.missingSince = nil
            return false
        }
        let since = memory.questions.missingSince ?? now.uptime
        memory.questions.missingSince = since
        if !memory.feed.polled.isEmpty { return true }
        let isLong = now.uptime - since >= Machine.missingPatience
        return memory.listings.isResting(at: now.uptime, again: isLong)
    }

    /// A folder that was made here, one at a time, when nothing else is to be looked at.
    mutating func nextMade(at now: Moment) -> ItemIdentifier? {
        let isDue = memory.listings.due.nextDue().map { $0 <= now.uptime } ?? false
        guard !isDue, mayListMade(at: now) else { return nil }
        return memory.listings.made.next(isBusy: !memory.operations.running.isEmpty, at: now.uptime)
    }

    private func mayListMade(at now: Moment) -> Bool {
        memory.questions.missing.isEmpty && memory.listings.unscanned.isEmpty
            && memory.listings.isResting(at: now.uptime)
            && memory.listings.hasPlace(of: listingsMax, at: now.uptime)
    }

    /// What was told last may have arrived: until known folders have been looked at nothing is
    /// told.
    var mayTell: Bool { memory.listings.unscanned.isEmpty }

    /// How long until something is due; nil: until somebody calls. `isShortOfRoom`: the last look
    /// found too little room, so the disk is looked at again although nobody calls. Without a limit
    /// and with room an idle daemon sleeps.
    mutating func nextDue(
        at now: Moment, isShortOfRoom: Bool, _ transaction: borrowing Transaction
    ) throws(Failure) -> Duration? {
        var candidates: [Duration] = []
        if memory.limits.cacheLimit(facts.configuration.cacheLimit) != nil || isShortOfRoom {
            candidates.append(Machine.roomInterval)
        }
        guard memory.connection.isOnline else { return candidates.min() }
        memory.listings.passOverSilent(of: listingsMax, at: now.uptime)
        if !memory.listings.unscanned.isEmpty || !memory.questions.missing.isEmpty {
            candidates.append(ListingMemory.silencePatience)
        }
        if let next = memory.fetches.nextPass, memory.operations.pausedSince == nil {
            candidates.append(max(next - now.uptime, .milliseconds(1)))
        }
        if !memory.operations.isHeld,
            memory.operations.occupiedCount < facts.configuration.operationsMax,
            let due = try transaction.nextPendingDue()
        {
            let quiet = Telling.restUntilQuiet(memory, facts, world.lastChange(), at: now)
            // Work that is due but runs already must not make the engine spin.
            let soonest = max(quiet, .milliseconds(memory.operations.running.isEmpty ? 5 : 50))
            candidates.append(max(.nanoseconds(due.nanoseconds(since: now.time)), soonest))
        }
        if let due = memory.listings.due.nextDue() {
            let hasPlace = memory.listings.hasPlace(of: listingsMax, at: now.uptime)
            candidates.append(
                hasPlace
                    ? max(due - now.uptime, .milliseconds(1)) : ListingMemory.silencePatience)
        }
        if let due = memory.listings.made.due(isBusy: !memory.operations.running.isEmpty) {
            // Whatever keeps it from being listed wakes the machine when it ends, unless it hangs.
            candidates.append(
                mayListMade(at: now)
                    ? max(due - now.uptime, .milliseconds(1)) : ListingMemory.silencePatience)
        }
        return candidates.min()
    }
}
