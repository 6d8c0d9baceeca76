package import PromiseAccess
package import PromiseCore
package import PromiseIndex

/// Finds what was noted of an item again, in the index alone: by its identifier, then by the name
/// that it had here, then by its place.
package struct ItemFinder {
    package static let machineSetting = "machine.identifier"

    package struct Finding: Sendable {
        package var fate: ItemFate
        /// Nil of what was not found.
        package var entry: Entry?
        /// Where it is, or was.
        package var path: [FileName]
        /// What to look for at the provider, where the index cannot know that the item is gone.
        package var missing: ItemIdentifier?
    }

    private let key: ItemKey
    private let bound: EntryID?
    private let reference: NodeID?
    /// What other machines say of moves; not where it would be a right.
    package var believesNotes = true

    /// `bound`: its name on this machine, which stays when others replace it as a whole.
    package init(_ key: ItemKey, bound: EntryID?) {
        self.key = key
        self.bound = bound
        reference = nil
    }

    /// `reference`: whose note of that name is looked for only where it is needed.
    init(_ key: ItemKey, reference: NodeID) {
        self.key = key
        bound = nil
        self.reference = reference
    }

    static func setting(of reference: NodeID) -> String { "reference.\(reference)" }

    package static func bound(
        of reference: NodeID, _ transaction: borrowing Transaction
    ) throws(Failure) -> EntryID? {
        try transaction.setting(setting(of: reference)).flatMap { Int64($0) }.map { EntryID($0) }
    }

    /// Also by what the item was called at a storage where the domain was before.
    package static func entry(
        for identifier: ItemIdentifier, _ transaction: borrowing Transaction
    ) throws(Failure) -> Entry? {
        if let entry = try transaction.entry(for: identifier) { return entry }
        guard let now = try transaction.setting(ProviderChange.formerPrefix + identifier.rawValue)
        else { return nil }
        return try transaction.entry(for: ItemIdentifier(now))
    }

    /// Whether it is what was called so at a storage where the domain was before.
    package static func isSuccessor(
        _ entry: Entry, of identifier: ItemIdentifier, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard let now = entry.identifier else { return false }
        return try transaction.setting(ProviderChange.formerPrefix + identifier.rawValue) == now.rawValue
    }

    /// What the item is called by. At the storage where the domain is now another item may be called so:
    /// of the two the one is meant that has the noted name, and neither where that leads to none of them.
    private func named(
        _ identifier: ItemIdentifier, _ transaction: borrowing Transaction
    ) throws(Failure) -> Entry? {
        guard let entry = try transaction.entry(for: identifier) else {
            return try ItemFinder.entry(for: identifier, transaction)
        }
        guard try transaction.setting(ProviderChange.formerPrefix + identifier.rawValue) != nil,
            let bound = try boundName(transaction)
        else { return entry }
        if entry.id == bound { return entry }
        guard let noted = try transaction.entry(bound),
            try ItemFinder.isSuccessor(noted, of: identifier, transaction)
        else { return nil }
        return noted
    }

    private func boundName(_ transaction: borrowing Transaction) throws(Failure) -> EntryID? {
        guard let reference else { return bound }
        return try ItemFinder.bound(of: reference, transaction)
    }

    package func find(_ transaction: borrowing Transaction) throws(Failure) -> Finding {
        let machine = key.machine == nil ? nil : try transaction.setting(ItemFinder.machineSetting)
        var identifier = key.identifier(on: machine)
        if key.identifier == nil, let bound { identifier = try NotedName.identifier(of: bound, transaction) }
        if let identifier, let entry = try named(identifier, transaction),
            let found = try finding(entry, transaction)
        {
            return found
        }
        let bound = try boundName(transaction)
        if let bound, let entry = try transaction.entry(bound), entry.conflictsWith == nil,
            try !ItemFinder.isBackup(entry, transaction), let found = try finding(entry, transaction)
        {
            return found
        }
        if identifier == nil, let bound, let heir = try NotedName.heir(of: bound, transaction),
            let found = try finding(heir, transaction)
        {
            return found
        }
        var finding = try atPlace(isNamed: identifier != nil || bound != nil, transaction)
        if isAtPlaces, finding.fate != .found, let moved = try atNewPlace(transaction) { return moved }
        // Where places are all that is known, an item that others moved is another one.
        if let identifier, key.machine == nil, try !isRemovedHere(identifier, transaction) {
            finding.missing = identifier
        }
        return finding
    }

    /// What an editor has left of a document has its name here, but is not the document. What was moved into a folder that
    /// stays on this machine is.
    package static func isBackup(_ entry: Entry, _ transaction: borrowing Transaction) throws(Failure) -> Bool {
        guard entry.isExcluded else { return false }
        return try transaction.entries(of: entry.parent).first?.isExcluded != true
    }

    private func finding(
        _ entry: Entry, _ transaction: borrowing Transaction
    ) throws(Failure) -> Finding? {
        guard let folder = try transaction.path(of: entry.parent),
            try transaction.node(entry.node)?.kind == key.kind
        else { return nil }
        return Finding(fate: .found, entry: entry, path: folder + [entry.name])
    }

    private func isRemovedHere(
        _ identifier: ItemIdentifier, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        if case .deleted? = try transaction.remote(identifier) { return true }
        return try transaction.pending(.deletion(identifier)) != nil
    }

    /// Identifiers are of one machine alone.
    private var isAtPlaces: Bool { believesNotes && (key.identifier == nil || key.machine != nil) }

    /// Where another machine says that it has moved it to, with a folder above, too, which nobody may have listed here.
    private func atNewPlace(_ transaction: borrowing Transaction) throws(Failure) -> Finding? {
        guard let path = try MovedPlace.now(of: key.path, transaction) else { return nil }
        if let entry = try MovedPlace.entry(at: path, transaction) { return try finding(entry, transaction) }
        guard try MovedPlace.isUnlisted(path, transaction) else { return nil }
        return Finding(fate: .unknown, entry: nil, path: path)
    }

    /// `isNamed`: another item at the place is known to be another one.
    private func atPlace(
        isNamed: Bool, _ transaction: borrowing Transaction
    ) throws(Failure) -> Finding {
        var finding = Finding(fate: .deleted, entry: nil, path: key.path)
        var current = NodeID.root
        for (depth, name) in key.path.enumerated() {
            guard let entry = try transaction.entry(in: current, named: name) else {
                if try transaction.node(current)?.isPopulated == false { finding.fate = .unknown }
                return finding
            }
            guard depth == key.path.count - 1 else {
                current = entry.node
                continue
            }
            let isKind = try transaction.node(entry.node)?.kind == key.kind
            finding.fate = isNamed || !isKind || entry.isExcluded ? .replaced : .found
            if finding.fate == .found { finding.entry = entry }
        }
        return finding
    }
}
