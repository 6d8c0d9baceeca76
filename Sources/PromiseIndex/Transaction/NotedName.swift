package import PromiseCore

/// Of what was noted before the provider had it, by a bookmark say, only the name here is known.
/// When others move such an item to where nobody on this machine has looked, that name goes: what
/// the provider calls it is kept from when it does. And when a program saves it by removing or
/// renaming it first, what is made in its place is the document.
package enum NotedName {
    /// Of each the latest places that it left are kept.
    private static let placesMax = 2

    package static func noteUnsent(
        _ entry: EntryID, _ transaction: borrowing Transaction
    ) throws(Failure) {
        try transaction.store.change("INSERT OR IGNORE INTO noted VALUES (?1, NULL)", .id(entry))
    }

    /// Nil before the provider has it, and of what was never noted so.
    package static func identifier(
        of entry: EntryID, _ transaction: borrowing Transaction
    ) throws(Failure) -> ItemIdentifier? {
        try transaction.connection.first("SELECT identifier FROM noted WHERE entry = ?1", .id(entry)) {
            $0.identifier(0)
        }.flatMap { $0 }
    }

    private static func isUnsent(
        _ entry: EntryID, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        try transaction.connection.exists(
            "SELECT 1 FROM noted WHERE entry = ?1 AND identifier IS NULL", .id(entry))
    }

    /// An entry that the provider does not have leaves its place.
    package static func noteLeft(
        _ entry: Entry, _ kind: NodeKind, at now: Timestamp, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard entry.identifier == nil, kind == .file || kind == .link,
            try isUnsent(entry.id, transaction)
        else { return }
        try transaction.store.change(
            """
            INSERT INTO noted_left VALUES (?1, ?2, ?3, ?4, ?5)
            ON CONFLICT DO UPDATE SET kind = excluded.kind, time = excluded.time
            """, .id(entry.id), .id(entry.parent), .name(entry.name), .count(kind.rawValue), .time(now))
        for place in try leftPlaces(of: entry.id, transaction).dropFirst(placesMax) {
            try transaction.store.change(
                "DELETE FROM noted_left WHERE entry = ?1 AND parent = ?2 AND name = ?3", .id(entry.id),
                .id(place.parent), .name(place.name))
        }
    }

    /// What is the document now that one with this name was, which has gone or is a backup.
    package static func heir(
        of entry: EntryID, _ transaction: borrowing Transaction
    ) throws(Failure) -> Entry? {
        for place in try leftPlaces(of: entry, transaction) {
            guard let heir = try transaction.entry(in: place.parent, named: place.name),
                heir.id != entry, try isHeir(heir, of: place, transaction)
            else { continue }
            return heir
        }
        return nil
    }

    private static func isHeir(
        _ entry: Entry, of place: LeftPlace, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard !entry.isExcluded, let node = try transaction.node(entry.node) else { return false }
        return node.kind == place.kind && place.isOfOneSave(node.birthTime)
    }

    /// The latest first.
    private static func leftPlaces(
        of entry: EntryID, _ transaction: borrowing Transaction
    ) throws(Failure) -> [LeftPlace] {
        try transaction.connection.all(
            "SELECT * FROM noted_left WHERE entry = ?1 ORDER BY time DESC", .id(entry)
        ) { row in
            LeftPlace(
                parent: row.node(1), name: row.name(2),
                kind: NodeKind(rawValue: Int(row.integer(3))) ?? .file, time: row.time(4))
        }
    }

    /// It has another identifier than before.
    static func take(_ entry: Entry, _ transaction: borrowing Transaction) throws(Failure) {
        guard let identifier = entry.identifier else { return }
        try name(entry.id, identifier, transaction)
        let former = try transaction.connection.all(
            "SELECT entry FROM noted_left WHERE parent = ?1 AND name = ?2", .id(entry.parent),
            .name(entry.name)
        ) { $0.entry(0) }
        for former in former where former != entry.id {
            guard try heir(of: former, transaction)?.id == entry.id, try isUnsent(former, transaction)
            else { continue }
            // Under another name it is the item until that goes.
            if let other = try transaction.entry(former), !other.isExcluded { continue }
            try name(former, identifier, transaction)
        }
    }

    /// Nothing happens to what was not noted. What has an identifier is found by that alone.
    private static func name(
        _ entry: EntryID, _ identifier: ItemIdentifier, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard try transaction.connection.exists("SELECT 1 FROM noted WHERE entry = ?1", .id(entry))
        else { return }
        try transaction.store.change(
            "UPDATE noted SET identifier = ?2 WHERE entry = ?1", .id(entry), .identifier(identifier))
        try transaction.store.change("DELETE FROM noted_left WHERE entry = ?1", .id(entry))
    }
}

/// Where an entry was.
private struct LeftPlace {
    /// For so long what a program does to a document and to its new version is one save of it.
    private static let savingNanoseconds: Int64 = 600_000_000_000

    var parent: NodeID
    var name: FileName
    var kind: NodeKind
    var time: Timestamp

    /// The new version may have been made a moment before, too.
    func isOfOneSave(_ birth: Timestamp) -> Bool {
        let distance = birth.rawValue.subtractingReportingOverflow(time.rawValue)
        return !distance.overflow && distance.partialValue.magnitude < LeftPlace.savingNanoseconds
    }
}
