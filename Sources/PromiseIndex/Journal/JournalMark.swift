import PromiseCore

/// What the database says of its journal, in the table `setting`: which files are its own, and up to which body it has
/// everything itself. Written in the same transaction as the bodies.
struct JournalMark {
    var identity: JournalIdentity
    var sequence: UInt64

    private static let insertion =
        "INSERT INTO setting VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = excluded.value"
        as StaticString

    /// Nil when the database has none yet. The table must exist.
    static func find(in connection: Connection) throws(Failure) -> JournalMark? {
        func value(_ key: String) throws(Failure) -> String? {
            try connection.first("SELECT value FROM setting WHERE key = ?1", .text(key)) { $0.text(0) }
        }
        guard let identity = try value("journal.identity"), let sequence = try value("journal.sequence") else { return nil }
        let words = identity.split(separator: "-").compactMap { UInt64($0, radix: 16) }
        guard words.count == 2, let number = UInt64(sequence) else {
            throw Failure(.corrupted, "the index does not say which journal is its own: \(identity), \(sequence)")
        }
        return JournalMark(identity: JournalIdentity(upper: words[0], lower: words[1]), sequence: number)
    }

    /// Makes one for a database that has none.
    static func take(from connection: Connection) throws(Failure) -> JournalMark {
        if let mark = try find(in: connection) { return mark }
        let identity = JournalIdentity(upper: .random(in: .min ... .max), lower: .random(in: .min ... .max))
        let text = String(identity.upper, radix: 16) + "-" + String(identity.lower, radix: 16)
        try connection.run(insertion, .text("journal.identity"), .text(text))
        try connection.run(insertion, .text("journal.sequence"), .text("0"))
        return JournalMark(identity: identity, sequence: 0)
    }

    /// Within the transaction that commits everything up to `sequence`.
    static func set(_ sequence: UInt64, in connection: Connection) throws(Failure) {
        try connection.run(insertion, .text("journal.sequence"), .text("\(sequence)"))
    }
}
