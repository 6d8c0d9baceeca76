import Logging
import PromiseCore
import PromiseIndex
import PromiseProvider

// Work of ours on what is not where it was, at a store that knows places only: an edit, a removal,
// or something new. Others may have moved a folder above it. Believed gone, what was edited would
// be made anew under the old name and stay there beside the moved one, and what was removed would
// come back. So the folder above is asked for first. Of the uppermost one that is gone the folder
// that it was in is listed, and what appeared lately is looked into: what holds just what is known
// of it is that folder. So it is with a folder that was removed here with all that was in it: what
// is left of it is removed where others have moved it, item by item, each in the version known.

/// What is to be known before an item with work of ours is believed gone.
struct MovedFoldersMemory {
    /// By a folder that is asked for: what was not found below it.
    var waiting: [ItemIdentifier: Set<ItemIdentifier>] = [:]
    /// What is below folders that are there, and is asked for once more, and the uptime of that.
    var confirmed: [ItemIdentifier: Duration] = [:]
    /// Folders that were not found, and the uptime of that.
    var doubted: [ItemIdentifier: Duration] = [:]
    /// Folders that are new in known ones, and when that was.
    var appeared: [ItemIdentifier: Moment] = [:]

    mutating func noteAppeared(_ folder: ItemIdentifier, at now: Moment) {
        if appeared.count >= MovedFolders.appearedMax {
            appeared = appeared.filter {
                now.uptime - $0.value.uptime < MovedFolders.freshness
            }
            if appeared.count >= MovedFolders.appearedMax { appeared = [:] }
        }
        appeared[folder] = now
    }
}

enum MovedFolders {
    /// What appeared earlier was beside the folder for a while.
    static let freshness = Duration.seconds(120)
    static let appearedMax = 256
    private static let candidatesMax = 4
    /// How long is waited for the listing of the folder that one was in.
    private static let patience = Duration.seconds(10)
    private static let pendingMax = 200

    /// A folder is new here, in one that was known.
    static func noteAppeared(_ item: Item, _ turn: inout Turn) {
        guard item.kind == .folder, turn.facts.knowsByPlace, !item.identifier.isNumber
        else { return }
        let now = turn.now
        turn.remember { $0.questions.moved.noteAppeared(item.identifier, at: now) }
    }

    /// An item was not found where it was. False when it is not to be believed gone yet: what is
    /// found out first leads to it again.
    static func isToBeBelieved(
        _ identifier: ItemIdentifier, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard turn.facts.knowsByPlace, try isNearWork(identifier, turn, transaction)
        else { return true }
        let now = turn.now.uptime
        let confirmed = turn.memory.questions.moved.confirmed[identifier]
        if confirmed != nil { turn.remember { $0.questions.moved.confirmed[identifier] = nil } }
        if confirmed.map({ now - $0 > patience }) ?? true,
            let above = try heldFolder(above: identifier, turn, transaction)
        {
            turn.explain("the folder above is asked for first: \(above.rawValue)")
            turn.remember { $0.questions.moved.waiting[above, default: []].insert(identifier) }
            turn.ask(for: above)
            return false
        }
        return try isGone(identifier, &turn, transaction)
    }

    /// It is there. Its path may be another one than that by which what is below it was not found,
    /// so that is asked for once more, and believed.
    static func isThere(_ folder: ItemIdentifier, _ turn: inout Turn) {
        let moved = turn.memory.questions.moved
        if moved.doubted[folder] != nil {
            turn.remember { $0.questions.moved.doubted[folder] = nil }
        }
        guard let waiting = moved.waiting[folder] else { return }
        let now = turn.now.uptime
        turn.remember { memory in
            memory.questions.moved.waiting[folder] = nil
            memory.questions.moved.confirmed.forget(before: now - patience)
            for item in waiting { memory.questions.moved.confirmed[item] = now }
            memory.questions.missing.formUnion(waiting)
        }
    }

    /// Nobody can say, or its end is known. What waited for it is asked for again when it is told.
    static func isUndecided(_ folder: ItemIdentifier, _ turn: inout Turn) {
        let moved = turn.memory.questions.moved
        guard moved.waiting[folder] != nil || moved.doubted[folder] != nil else { return }
        turn.remember { memory in
            memory.questions.moved.waiting[folder] = nil
            memory.questions.moved.doubted[folder] = nil
        }
    }

    /// Something is to be told of what is in the same folder of the root. What has gone from beside
    /// it alone would be missed where the folder is looked for.
    private static func isNearWork(
        _ identifier: ItemIdentifier, _ turn: borrowing Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard try !transaction.allPending(limit: 1).isEmpty else { return false }
        var top = identifier
        // No real path is this deep.
        for _ in 0..<4096 {
            guard let parent = try turn.known(top, transaction)?.parent,
                parent != turn.facts.rootIdentifier
            else { break }
            top = parent
        }
        return try hasWork(top, turn, transaction)
    }

    /// Something is to be told of the item, or of what is below it.
    private static func hasWork(
        _ identifier: ItemIdentifier, _ turn: borrowing Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        if try transaction.pending(.deletion(identifier)) != nil { return true }
        guard let entry = try transaction.entry(for: identifier) else { return false }
        if try transaction.pending(.entry(entry.id)) != nil { return true }
        guard try transaction.node(entry.node)?.kind == .folder else { return false }
        for row in try transaction.allPending(limit: pendingMax) {
            switch row.subject {
            case .deletion(let other):
                if try turn.isInside(other, identifier, transaction) { return true }
            case .entry(let id):
                guard let other = try transaction.entry(id) else { continue }
                if try transaction.isInside(other.parent, entry.node) { return true }
            }
        }
        return false
    }

    /// The nearest folder above that is shown here, or was removed here and is to be told of, and
    /// was not heard of since it was agreed on.
    private static func heldFolder(
        above identifier: ItemIdentifier, _ turn: borrowing Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> ItemIdentifier? {
        var current = try turn.known(identifier, transaction)?.parent
        // No real path is this deep.
        for _ in 0..<4096 {
            guard let folder = current, folder != turn.facts.rootIdentifier,
                try transaction.remote(folder) == nil
            else { return nil }
            if try isHeld(folder, transaction) {
                return try turn.reference(to: folder, transaction) == nil ? nil : folder
            }
            current = try turn.known(folder, transaction)?.parent
        }
        return nil
    }

    /// It is shown here, or its removal is to be told.
    private static func isHeld(
        _ identifier: ItemIdentifier, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        if try transaction.entry(for: identifier) != nil { return true }
        return try removal(of: identifier, transaction) != nil
    }

    /// When what is agreed on was removed here, if that is to be told.
    static func removal(
        of identifier: ItemIdentifier, _ transaction: borrowing Transaction
    ) throws(Failure) -> Timestamp? {
        guard try transaction.entry(for: identifier) == nil,
            try transaction.synced(identifier) != nil
        else { return nil }
        return try transaction.pending(.deletion(identifier))?.since
    }

    // MARK: The uppermost one that is gone

    /// False while it is found out whether the folder is somewhere else.
    private static func isGone(
        _ identifier: ItemIdentifier, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard let known = try turn.known(identifier, transaction), known.kind == .folder,
            let parent = known.parent, try isHeld(identifier, transaction),
            try turn.knownFolder(parent, transaction) != nil,
            try hasWork(identifier, turn, transaction)
        else { return true }
        let now = turn.now.uptime
        guard let doubted = turn.memory.questions.moved.doubted[identifier] else {
            turn.explain("what is beside it is listed first")
            turn.remember { memory in
                memory.questions.moved.doubted[identifier] = now
                memory.wantLook(at: parent, now)
            }
            turn.listAgain(parent, after: .zero)
            return false
        }
        switch turn.memory.questions.looks[parent] {
        case .done(let time, _) where time >= doubted: break
        default:
            // The listing misses it, and it is asked for again.
            let isAwaited = turn.memory.awaitsLook(at: parent, wantedAt: doubted, now)
            if isAwaited || now - doubted < patience { return false }
        }
        turn.remember { memory in
            memory.questions.moved.doubted[identifier] = nil
            memory.questions.moved.waiting[identifier] = nil
        }
        guard let survey = try survey(for: identifier, turn, transaction) else { return true }
        Asking.note(identifier, &turn)
        turn.act(.call(.survey(survey, operationCount: turn.memory.operations.count)))
        return false
    }

    /// Nil when nothing may be it.
    private static func survey(
        for identifier: ItemIdentifier, _ turn: borrowing Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> FolderSurvey? {
        var places: [ItemReference] = []
        var fresh = turn.memory.questions.moved.appeared
        let removed = try removal(of: identifier, transaction)
        // What was to be seen here before the folder was removed was not meant by that.
        if let removed { fresh = fresh.filter { removed <= $0.value.time } }
        // The newest first, in an order that does not change from process to process.
        let sorted = fresh.sorted {
            ($1.value.uptime, $0.key.rawValue) < ($0.value.uptime, $1.key.rawValue)
        }
        for (folder, _) in sorted where places.count < candidatesMax {
            guard try isUntouched(folder, turn, transaction),
                let reference = try turn.reference(to: folder, transaction)
            else { continue }
            places.append(reference)
        }
        guard !places.isEmpty else { return nil }
        return try FolderSurvey(
            of: identifier, at: places, isRemoved: removed != nil, turn, transaction)
    }

    /// It appeared lately, and nothing was done with it here.
    private static func isUntouched(
        _ folder: ItemIdentifier, _ turn: borrowing Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard let time = turn.memory.questions.moved.appeared[folder],
            turn.now.uptime - time.uptime < freshness,
            let entry = try transaction.entry(for: folder),
            let node = try transaction.node(entry.node), node.kind == .folder, !node.isPopulated,
            turn.memory.listings.running[node.id] == nil,
            try transaction.pending(.entry(entry.id)) == nil, try transaction.remote(folder) == nil,
            let agreed = try transaction.synced(folder)?.item, agreed.name == entry.name,
            try agreed.parent == turn.identifier(of: entry.parent, transaction)
        else { return false }
        return try transaction.children(of: node.id, after: nil, limit: 1).isEmpty
    }

    static func surveyed(
        _ survey: FolderSurvey, _ result: Result<[FolderSurvey.Found], ProviderError>,
        since count: Int, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        let identifier = survey.folder
        turn.remember { $0.questions.asked[identifier] = nil }
        isUndecided(identifier, &turn)
        guard try isHeld(identifier, transaction), try transaction.remote(identifier) == nil,
            try (removal(of: identifier, transaction) != nil) == survey.isRemoved
        else { return }
        if try turn.mayHaveMoved(identifier, since: count, transaction) {
            return turn.ask(for: identifier)
        }
        switch result {
        case .failure(let problem):
            turn.judge(problem)
            if let parent = try turn.known(identifier, transaction)?.parent {
                turn.listAgain(parent, after: .seconds(5))
            }
        case .success(let found):
            let matches = found.filter { survey.matches($0) }.map(\.place)
            turn.explain("\(matches.count) of \(survey.places.count) new folders hold the same")
            if matches.count == 1,
                try rebind(identifier, to: matches[0], since: count, &turn, transaction)
            {
                return
            }
            try transaction.setRemote(identifier, .deleted)
            turn.noteDivergence()
        }
    }

    /// The folder is where another one was seen to appear. False when that is not as it was any
    /// more.
    private static func rebind(
        _ identifier: ItemIdentifier, to place: ItemReference, since count: Int, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard try isUntouched(place.identifier, turn, transaction),
            try turn.reference(to: place.identifier, transaction)?.path == place.path,
            try !turn.mayHaveMoved(place.identifier, since: count, transaction),
            try !turn.isInside(place.identifier, identifier, transaction),
            let entry = try transaction.entry(for: place.identifier),
            var item = try transaction.synced(place.identifier)?.item,
            try Tree.removeLocal(entry, depth: 0, &turn, transaction)
        else { return false }
        turn.log(.notice, "a folder with changes made here was moved by others: they go on there")
        // What was asked by the path before says nothing any more.
        turn.remember { memory in
            memory.operations.count += 1
            memory.operations.touchedItems[identifier] = memory.operations.count
        }
        item.identifier = identifier
        item = try turn.withAgreedMetadata(item, transaction)
        try turn.observe(item, synced: try transaction.synced(identifier), transaction)
        turn.listAgain(identifier, after: .zero)
        return true
    }
}
