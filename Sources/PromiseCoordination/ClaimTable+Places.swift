package import PromiseCore

// Claims and presenters stay with their items wherever these are moved.

/// A name of an item, where it is now.
package struct MovedName: Sendable {
    package var node: NodeID
    /// Those that hold it, nearest first, up to the root.
    package var folders: [NodeID]
    /// Those of each name of the item, as it is now.
    package var names: [[NodeID]]
    /// Which one it is, where that is known.
    package var entry: EntryID?

    package init(_ node: NodeID, in folders: [NodeID], names: [[NodeID]]? = nil, entry: EntryID? = nil) {
        self.node = node
        self.folders = folders
        self.names = names ?? [folders]
        self.entry = entry
    }
}

/// A document is another node now, as when it was saved as a new file.
package struct ReplacedNode: Sendable {
    package var old: NodeID
    package var new: NodeID
    /// The name that is the document's. Other names of the old node are that still. Nil: all of them are the new one.
    package var name: EntryID?
    /// The folder of that name, as it was.
    package var parent: NodeID?
    /// Where it came back to, from a backup's name: the folders above. Then claims stay with the file, as others may have
    /// claims on what is at the place.
    package var newFolders: [NodeID]?

    package init(
        _ old: NodeID, by new: NodeID, name: EntryID? = nil, parent: NodeID? = nil, newFolders: [NodeID]? = nil
    ) {
        self.old = old
        self.new = new
        self.name = name
        self.parent = parent
        self.newFolders = newFolders
    }

    /// Of the folders above the names of the old node those that are above this one.
    func chains(of all: [[NodeID]]) -> [[NodeID]] {
        guard name != nil, let parent else { return all }
        let own = all.filter { $0.first == parent }
        return own.isEmpty ? all : own
    }

    func isOf(_ name: EntryID?) -> Bool { self.name == nil || name == nil || self.name == name }
}

extension ClaimTable {
    mutating func enter(_ id: ClaimID, _ claim: Claim) {
        for intent in claim.intents {
            for key in intent.keys { places[key, default: Place()].claims.append(id) }
            for folder in intent.folders { places[folder, default: Place()].below.append(id) }
        }
    }

    mutating func leave(_ id: ClaimID, _ claim: Claim) {
        for intent in claim.intents {
            for key in intent.keys { change(key) { $0.claims.removeFirst(of: id) } }
            for folder in intent.folders { change(folder) { $0.below.removeFirst(of: id) } }
        }
    }

    mutating func change(_ node: NodeID, _ body: (inout Place) -> Void) {
        guard let index = places.index(forKey: node) else { return }
        body(&places.values[index])
        if places.values[index].isEmpty { places.remove(at: index) }
    }

    /// A name and what is below it are in other folders now. Claims stay with their items; those that wait, wait for whatever
    /// is in their way now. Of an item with several names the others stay where they are. `place`: where it was.
    package mutating func moved(_ name: MovedName, from place: OldPlace? = nil, now: Duration = .zero) {
        let node = name.node
        guard let known = places[node] else { return }
        let vacated = place.map { NodeID.vacancy($0.name, in: $0.parent) }
        for id in Set(known.claims + known.below) {
            guard var claim = claims[id] else { continue }
            leave(id, claim)
            let moving = claim.intents(about: name, from: place?.parent, vacated)
            for index in claim.intents.indices {
                let isOther = claim.intents[index].node == node && !moving.contains(index)
                if !isOther {
                    let held = claim.intents[index].moved(name, vacated, isInside: isGranted(id))
                    claim.intents[index] = held[0]
                    claim.intents += held.dropFirst()
                } else if vacated != nil, claim.intents[index].place == vacated, !claim.intents[index].access.isReplacing {
                    claim.intents[index].place = nil
                }
            }
            enter(id, claim)
            claims[id] = claim
        }
        movePresenters(name, known)
        findBlockersAnew(now: now)
    }

    /// Items are other nodes now: a document that was saved by renaming a new file over it, two that exchanged their contents.
    /// Claims and presenters stay with the document, and its presenters are told.
    package mutating func replaced(_ replaced: [ReplacedNode], now: Duration = .zero) {
        let taking = replaced.filter { $0.newFolders == nil }
        for id in Set(taking.flatMap { places[$0.old]?.claims ?? [] }) {
            guard var claim = claims[id] else { continue }
            leave(id, claim)
            let several = claim.severalNames
            for index in claim.intents.indices {
                let intent = claim.intents[index]
                guard let by = taking.first(where: { $0.old == intent.node }) else { continue }
                if let parent = by.parent, several.contains(intent.node), intent.folders.first != parent { continue }
                claim.intents[index].node = by.new
            }
            enter(id, claim)
            claims[id] = claim
        }
        replacePresenters(replaced)
        findBlockersAnew(now: now)
    }

    /// Something is at a place that claims were made on when nothing was there: now they are on that, wherever it goes.
    package mutating func arrived(_ node: NodeID, at place: NodeID, in folders: [NodeID], now: Duration = .zero) {
        guard let waiting = places[place]?.claims else { return }
        var isOther = false
        for id in Set(waiting) {
            guard var claim = claims[id] else { continue }
            leave(id, claim)
            for index in claim.intents.indices where claim.intents[index].node == place {
                (claim.intents[index].node, claim.intents[index].folders) = (node, folders)
                (claim.intents[index].place, claim.intents[index].wasVacant) = (place, true)
                isOther = true
            }
            enter(id, claim)
            claims[id] = claim
        }
        if isOther { findBlockersAnew(now: now) }
    }

    /// The nodes of a claim's items as they are now, in the order in which they were asked for.
    package func nodes(of claim: ClaimID) -> [NodeID] { claims[claim]?.intents.map(\.node) ?? [] }

    /// After conflicts have become others: who waited for another one still does if they still conflict, whichever came first,
    /// as one may have let the other in; and for new conflicts who waits already goes on waiting.
    private mutating func findBlockersAnew(now: Duration) {
        let ids = claims.filter { !isGranted($0.key) }.keys.sorted()
        var conflicts: [ClaimID: Set<ClaimID>] = [:]
        for id in ids {
            guard let claim = claims[id] else { continue }
            var found: Set<ClaimID> = []
            forEachConflict(of: claim) { if $0 != id { found.insert($0) } }
            conflicts[id] = found
            claims[id]?.blockers.formIntersection(found)
        }
        var refused: [ClaimID] = []
        for id in ids {
            guard case .waiting? = claims[id]?.phase else { continue }
            let before = claims[id]?.blockers
            for other in (conflicts[id] ?? []).sorted() {
                // Of two who wait the later one looks.
                if case .waiting? = claims[other]?.phase, other > id { continue }
                if claims[id]?.blockers.contains(other) == true || claims[other]?.blockers.contains(id) == true { continue }
                if waits(other, forOneOf: [id]) {
                    claims[other]?.blockers.insert(id)
                } else {
                    claims[id]?.blockers.insert(other)
                }
            }
            // A move has closed a circle that no claim did when it came.
            guard let claim = claims[id], claim.blockers != before else { continue }
            if closesCircle(claim, []) { refused.append(id) }
        }
        for id in refused {
            actions.append(.refused(id, .deadlock))
            release(id, now: now)
        }
        for id in ids { goOn(id, now: now) }
    }

}

extension Intent {
    /// What a claim holds when an item, or a folder above it, was moved: who waits for a place at
    /// which nothing was has that still, and who is to put something else there has both. `vacated`:
    /// the place that it left; nil: that is not known.
    fileprivate func moved(_ name: MovedName, _ vacated: NodeID?, isInside: Bool) -> [Intent] {
        guard let moved = moved(name.node, to: name.folders) else { return [self] }
        guard name.node == node, let place, place != node,
            vacated.map({ $0 == place }) ?? (folders != moved.folders)
        else { return [moved] }
        let vacancy = Intent(node: place, folders: folders, access: access, place: place)
        if wasVacant, !isInside || access.isReplacing { return [vacancy] }
        guard access.isReplacing else { return [moved] }
        var item = moved
        item.place = nil
        return [item, vacancy]
    }

    /// When a name of `node` is in other folders now; nil: that is neither the item nor above it.
    private func moved(_ node: NodeID, to folders: [NodeID]) -> Intent? {
        var intent = self
        if intent.node == node {
            intent.folders = folders
            // Its old place concerns only who is to put something else there.
            if !intent.access.isReplacing { intent.place = nil }
        } else if let index = intent.folders.firstIndex(of: node) {
            intent.folders = intent.folders[...index] + folders
        } else {
            return nil
        }
        return intent
    }
}

extension ClaimTable.Claim {
    /// What it says of the name that moved. Of several names those that are still somewhere are others; of two in one
    /// folder the one whose place was left is meant, where that is known.
    fileprivate func intents(about name: MovedName, from parent: NodeID?, _ vacated: NodeID?) -> [Int] {
        let own = intents.indices.filter { intents[$0].node == name.node }
        guard name.names.count > 1 else { return own }
        // An item may have been asked for more than once.
        let each = max(1, (own.count + name.names.count - 1) / name.names.count)
        var room = name.names.reduce(into: [:]) { $0[$1, default: 0] += each }
        func rank(_ index: Int) -> Int {
            guard let place = intents[index].place else { return 1 }
            return place == vacated ? 2 : 0
        }
        var rest: [Int] = []
        for index in own.sorted(by: { (rank($0), $0) < (rank($1), $1) }) {
            let folders = intents[index].folders
            if let left = room[folders], left > 0 { room[folders] = left - 1 } else { rest.append(index) }
        }
        guard let from = parent ?? rest.first.flatMap({ intents[$0].folders.first }) else { return [] }
        return Array(rest.filter { intents[$0].folders.first == from }.prefix(each))
    }

    /// Items that it is about by names in several folders.
    fileprivate var severalNames: Set<NodeID> {
        if intents.count < 2 { return [] }
        let folders = Dictionary(grouping: intents, by: \.node).mapValues { Set($0.map(\.folders)) }
        return Set(folders.filter { $0.value.count > 1 }.keys)
    }
}

extension [ClaimID] {
    fileprivate mutating func removeFirst(of claim: ClaimID) {
        if last == claim { removeLast() } else if let index = firstIndex(of: claim) { remove(at: index) }
    }
}
