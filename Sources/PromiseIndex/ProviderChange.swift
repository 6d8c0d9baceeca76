import GRDB
package import PromiseCore

/// Lets an index that nobody has open go on with another storage, in which its items have other
/// identifiers and versions. Blocking.
///
/// Nodes, names, content and what waits to be told stay as they are: what was agreed on with the old
/// storage is agreed on with the new one. What is known under an old identifier is found by
/// `ItemFinder` through the setting `former.IDENTIFIER`, which says as well of what is gone that
/// another item is called so now.
package struct ProviderChange {
    /// An item as it was last agreed on, wherever its name is here now.
    package struct AgreedItem: Hashable, Sendable {
        package var identifier: ItemIdentifier
        package var parent: ItemIdentifier?
        package var name: FileName
    }

    /// What an item is called from now on.
    package struct Renaming: Hashable, Sendable {
        package var old: ItemIdentifier
        package var new: ItemIdentifier
        /// The old version that the new storage has as `newVersion`.
        package var version: ContentVersion
        package var newVersion: ContentVersion
        /// What a link says at the new storage; nil: what it says here.
        package var target: [UInt8]?

        package init(
            old: ItemIdentifier, new: ItemIdentifier, version: ContentVersion,
            newVersion: ContentVersion, target: [UInt8]?
        ) {
            self.old = old
            self.new = new
            self.version = version
            self.newVersion = newVersion
            self.target = target
        }
    }

    package static let formerPrefix = "former."
    /// What this machine removed at the old storage: of no use at the new one.
    package static let removalPrefix = "removed."
    /// Before the identifier of what the new storage does not have: no storage has one like it.
    private static let gonePrefix = "gone:"

    /// What is called so from now on that the new storage does not have.
    package static func gone(_ old: ItemIdentifier) -> ItemIdentifier {
        ItemIdentifier(gonePrefix + old.rawValue)
    }

    private let database: DatabaseQueue

    /// Brings what a crash left in the journal into the database first.
    package init(path: [UInt8]) throws(Failure) {
        try Index(path: path).close()
        do {
            var configuration = Configuration()
            configuration.journalMode = .wal
            configuration.foreignKeysEnabled = false
            configuration.label = "index.provider"
            configuration.prepareDatabase { try $0.execute(sql: "PRAGMA synchronous = FULL") }
            database = try DatabaseQueue(path: Schema.filename(path), configuration: configuration)
        } catch {
            throw Failure(.inputOutput, "the index cannot be opened: \(error)")
        }
    }

    private func checked<Value>(_ body: () throws -> Value) throws(Failure) -> Value {
        do {
            return try body()
        } catch let error as DatabaseError {
            throw Failure(
                Connection.meaning(of: error.resultCode.rawValue),
                "the index cannot be changed: \(error.message ?? "\(error.resultCode)")")
        } catch {
            throw Failure(.inputOutput, "the index cannot be changed: \(error)")
        }
    }

    /// How many changes were sent to the old storage without an answer.
    package func unansweredCount() throws(Failure) -> Int {
        try checked {
            try database.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM sent") ?? 0 }
        }
    }

    /// In no order.
    package func agreedItems(root: ItemIdentifier) throws(Failure) -> [AgreedItem] {
        try checked {
            try database.read { database in
                let rows = try GRDB.Row.fetchCursor(
                    database,
                    sql: """
                        SELECT identifier, parent, hex(name) FROM synced WHERE identifier <> ?1
                        UNION ALL
                        SELECT entry.identifier, coalesce((
                            SELECT above.identifier FROM entry above WHERE above.node = entry.parent), ?1),
                            hex(entry.name)
                        FROM entry JOIN node ON node.id = entry.node
                        WHERE node.is_as_synced = 1 AND entry.identifier IS NOT NULL
                        """, arguments: [root.rawValue])
                var items: [AgreedItem] = []
                while let row = try rows.next() {
                    guard let name = FileName(bytes(row[2])) else { continue }
                    let parent: String? = row[1]
                    items.append(
                        AgreedItem(
                            identifier: ItemIdentifier(row[0]),
                            parent: parent.map { ItemIdentifier($0) },
                            name: name))
                }
                return items
            }
        }
    }

    /// All or nothing, and on the disk when it returns. What is in no `renaming` is gone at the new
    /// storage.
    ///
    /// `forgetsUnanswered`: what was sent to the old storage without an answer is sent again to the
    /// new one. `grants`: take the place of those of these numbers.
    package func apply(
        _ renamings: [Renaming], to provider: String, root: Renaming, grants: [GrantRow] = [],
        forgetsUnanswered: Bool = false
    ) throws(Failure) {
        try checked {
            try database.write { database in
                try database.execute(sql: ProviderChange.tables)
                for renaming in renamings + [root] {
                    // What is in the statement itself are hexadecimal digits alone.
                    let target = renaming.target.map { "x'\(digits($0))'" } ?? "NULL"
                    try database.execute(
                        sql: "INSERT OR REPLACE INTO move VALUES (?1, ?2, ?3, ?4, \(target))",
                        arguments: [
                            renaming.old.rawValue, renaming.new.rawValue, renaming.version.rawValue,
                            renaming.newVersion.rawValue,
                        ])
                }
                try database.execute(sql: ProviderChange.gone)
                for statement in ProviderChange.statements { try database.execute(sql: statement) }
                for row in grants {
                    let (record, seal) = (digits(row.record), digits(row.seal))
                    try database.execute(
                        sql: "UPDATE access_grant SET record = x'\(record)', seal = x'\(seal)' WHERE id = ?1",
                        arguments: [row.id])
                }
                if forgetsUnanswered { try database.execute(sql: "DELETE FROM sent") }
                for (key, value) in [
                    ("root.identifier", root.new.rawValue), ("provider.name", provider),
                ] {
                    try database.execute(
                        sql: "INSERT OR REPLACE INTO setting VALUES (?1, ?2)",
                        arguments: [key, value])
                }
                try database.execute(sql: "DROP TABLE move")
            }
            try database.writeWithoutTransaction { database in
                _ = try database.checkpoint(.truncate)
            }
            try database.close()
        }
    }

    // MARK: Statements

    private static let tables = """
        CREATE TEMP TABLE move (
            old TEXT PRIMARY KEY, new TEXT NOT NULL, version TEXT, new_version TEXT, target BLOB
        ) WITHOUT ROWID
        """

    private static let gone = """
        INSERT OR IGNORE INTO move
        SELECT identifier, '\(gonePrefix)' || identifier, NULL, NULL, NULL FROM (
            SELECT identifier FROM entry WHERE identifier IS NOT NULL
            UNION SELECT identifier FROM synced)
        """

    /// What was edited from, or agreed on in, another version than the one that was brought.
    private static func version(_ column: String, _ move: String) -> String {
        """
        CASE WHEN \(column) = \(move).version THEN \(move).new_version
        ELSE 'before the migration: ' || \(column) END
        """
    }

    /// Identifiers are unique and new ones may be old ones of others: so they change in two steps.
    private static let statements = [
        """
        UPDATE node SET version = \(version("node.version", "move")),
            target = coalesce(move.target, node.target),
            size = coalesce(length(move.target), node.size)
        FROM entry JOIN move ON move.old = entry.identifier
        WHERE entry.node = node.id AND node.version IS NOT NULL
        """,
        """
        UPDATE entry SET identifier = char(1) || move.new FROM move WHERE move.old = entry.identifier
        """,
        "UPDATE entry SET identifier = substr(identifier, 2) WHERE identifier IS NOT NULL",
        """
        UPDATE entry SET conflicts_with = move.new FROM move WHERE move.old = entry.conflicts_with
        """,
        """
        UPDATE displaced SET conflicts_with = move.new FROM move
        WHERE move.old = displaced.conflicts_with
        """,
        """
        UPDATE synced SET identifier = char(1) || move.new,
            version = \(version("synced.version", "move")),
            target = coalesce(move.target, synced.target),
            size = coalesce(length(move.target), synced.size)
        FROM move WHERE move.old = synced.identifier
        """,
        "UPDATE synced SET identifier = substr(identifier, 2)",
        "UPDATE synced SET parent = move.new FROM move WHERE move.old = synced.parent",
        "DELETE FROM remote",
        """
        INSERT INTO remote (is_deleted, identifier) SELECT 1, new FROM move
        WHERE new = '\(gonePrefix)' || old
        """,
        "DELETE FROM fingerprint",
        "DELETE FROM setting WHERE key GLOB '\(removalPrefix)*'",
        """
        UPDATE pending SET identifier = char(1) || move.new FROM move
        WHERE move.old = pending.identifier
        """,
        "UPDATE pending SET identifier = ltrim(identifier, char(1)) WHERE identifier IS NOT NULL",
        "UPDATE pending SET attempts = 0, due = 0, error = NULL, message = NULL",
        """
        UPDATE setting SET key = 'pin.' || char(1) || move.new FROM move
        WHERE setting.key = 'pin.' || move.old
        """,
        """
        UPDATE OR REPLACE setting SET key = 'pin.' || substr(key, 6)
        WHERE substr(key, 1, 5) = 'pin.' || char(1)
        """,
        """
        UPDATE setting SET value = (SELECT new FROM move WHERE move.old = setting.value)
        WHERE substr(key, 1, 7) = '\(formerPrefix)'
            AND EXISTS (SELECT 1 FROM move WHERE move.old = setting.value)
        """,
        """
        INSERT OR REPLACE INTO setting SELECT '\(formerPrefix)' || old, new FROM move
        WHERE old <> new
            AND (new <> '\(gonePrefix)' || old OR old IN (SELECT new FROM move))
        """,
    ]
}

private func digits(_ bytes: [UInt8]) -> String { bytes.map { hexadecimal($0) }.joined() }

/// Of pairs of hexadecimal digits.
private func bytes(_ digits: String) -> [UInt8] {
    func value(_ digit: UInt8) -> UInt8 {
        digit < UInt8(ascii: "A") ? digit - UInt8(ascii: "0") : digit - UInt8(ascii: "A") + 10
    }
    let digits = Array(digits.utf8)
    return stride(from: 0, to: digits.count - 1, by: 2).map {
        value(digits[$0]) << 4 | value(digits[$0 + 1])
    }
}
