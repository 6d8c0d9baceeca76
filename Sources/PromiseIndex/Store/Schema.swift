import GRDB
import PromiseCore
import PromiseSystem

/// Makes and migrates the tables. A published migration is never changed; a new one is added below it.
///
/// Columns are read by position (`SELECT *`), so a later migration only adds columns at the end of a table. Names and
/// link targets are blobs, identifiers and versions text, times nanoseconds, 64-bit counts the same bits as a signed number.
enum Schema {
    /// What is still open after a migration.
    struct Migration {
        fileprivate let database: DatabaseQueue

        /// To be called when other connections are open: SQLite copies the whole log when the last one is closed, which
        /// would make the first call after a crash wait.
        func close() throws(Failure) {
            do {
                try database.close()
            } catch {
                throw Failure(.inputOutput, "the migration of the index cannot be closed: \(error)")
            }
        }
    }

    /// Opens or creates the database in WAL mode and brings it to the newest schema. `prepare` runs before anything is
    /// changed, and not on a database of a newer version.
    static func migrate(path: [UInt8], preparedBy prepare: () throws(Failure) -> Void) throws(Failure) -> Migration {
        do {
            var configuration = Configuration()
            configuration.journalMode = .wal
            configuration.busyMode = .timeout(2)
            configuration.foreignKeysEnabled = false
            configuration.label = "index.migration"
            let database = try DatabaseQueue(path: filename(path), configuration: configuration)
            let migrator = self.migrator
            if try database.read({ try migrator.hasBeenSuperseded($0) }) {
                throw Failure(
                    .invalid,
                    "the index \(escapedForDisplay(path)) was made by a newer version of this program; use that version")
            }
            try prepare()
            try makeDurable(database, migrator)
            try migrator.migrate(database)
            return Migration(database: database)
        } catch let failure as Failure {
            throw failure
        } catch let error as DatabaseError {
            throw Failure(
                Connection.meaning(of: error.resultCode.rawValue),
                "the index \(escapedForDisplay(path)) cannot be opened: \(error.message ?? "\(error.resultCode)")")
        } catch {
            throw Failure(.inputOutput, "the index \(escapedForDisplay(path)) cannot be opened: \(error)")
        }
    }

    /// A migration of what there is has to be on the disk before the first record that is written
    /// for the new tables: a power cut could leave such records behind old tables, on which they
    /// cannot be run, and the index would be refused. The commits before it, in the same log, are
    /// synced with it.
    private static func makeDurable(
        _ database: DatabaseQueue, _ migrator: DatabaseMigrator
    ) throws {
        let isMigrating = try database.read { database in
            try !migrator.appliedIdentifiers(database).isEmpty
                && !migrator.hasCompletedMigrations(database)
        }
        guard isMigrating else { return }
        try database.writeWithoutTransaction {
            try $0.execute(literal: SQL(sql: "PRAGMA synchronous = FULL"))
        }
    }

    /// GRDB takes a path as `String`. One that is no UTF-8 goes through SQLite's URI form, which escapes bytes
    /// (sqlite.org/uri.html); it needs SQLITE_USE_URI, which distributions build in.
    static func filename(_ path: [UInt8]) -> String {
        if let text = String(validating: path, as: UTF8.self) { return text }
        return "file:" + path.map { $0 == 0x2F ? "/" : "%" + hexadecimal($0) }.joined()
    }

    private static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1 tree") { database in
            try database.execute(literal: SQL(sql: treeTables))
            try database.execute(literal: SQL(sql: providerTables))
            try database.execute(literal: SQL(sql: bookkeepingTables))
        }
        migrator.registerMigration("2 listings") { database in
            try database.execute(literal: SQL(sql: listingColumns))
        }
        migrator.registerMigration("3 searched names") { database in
            try database.execute(literal: SQL(sql: searchedNames))
        }
        migrator.registerMigration("4 pinned placeholders") { database in
            try database.execute(literal: SQL(sql: pinnedPlaceholders))
        }
        migrator.registerMigration("5 sent changes") { database in
            try database.execute(literal: SQL(sql: sentChanges))
            try migrateIntents(database)
        }
        migrator.registerMigration("6 conflicts and what stays here") { database in
            try database.execute(literal: SQL(sql: rareEntries))
        }
        // Rows of the search of names have the names folded now, so all are made again.
        migrator.registerMigration("7 folded names") { database in
            try database.execute(literal: SQL(sql: searchedNames))
        }
        migrator.registerMigration("8 grants") { database in
            try database.execute(literal: SQL(sql: accessGrants))
        }
        migrator.registerMigration("9 what was removed") { database in
            try database.execute(literal: SQL(sql: removedItems))
        }
        migrator.registerMigration("10 noted names") { database in
            try database.execute(literal: SQL(sql: notedNames))
            try migrateNoted(database)
        }
        migrator.registerMigration("11 told rights") { database in
            try database.execute(literal: SQL(sql: toldRights))
        }
        return migrator
    }

    /// Every table and index, for `verify`.
    static let objectNames = [
        "node", "node_local", "node_populated", "node_unlinked", "node_pinned", "entry", "entry_place", "entry_node",
        "entry_identifier", "entry_conflict", "entry_excluded", "attribute",
        "local_range", "synced", "synced_place", "remote", "remote_place", "pending",
        "pending_identifier", "pending_due", "pending_failing", "change", "setting", "name_search", "sent", "sent_item",
        "sent_place", "sent_entry", "displaced", "fingerprint", "hole", "access_grant",
        "removed", "removed_file",
        "noted", "noted_left", "noted_left_place",
    ]

    /// Each index costs a page in every commit that touches it, so one partial index (`node_local`) serves every
    /// question about content: it is read in order of last use and carries what the questions filter by.
    private static let treeTables = """
        CREATE TABLE node (
            id INTEGER PRIMARY KEY,
            kind INTEGER NOT NULL,
            content INTEGER NOT NULL,
            pin INTEGER NOT NULL,
            is_open_for_writing INTEGER NOT NULL,
            is_populated INTEGER NOT NULL,
            is_durable INTEGER NOT NULL,
            mode INTEGER NOT NULL,
            owner INTEGER NOT NULL,
            owner_group INTEGER NOT NULL,
            size INTEGER NOT NULL,
            local_bytes INTEGER NOT NULL,
            access_time INTEGER NOT NULL,
            modification_time INTEGER NOT NULL,
            change_time INTEGER NOT NULL,
            birth_time INTEGER NOT NULL,
            last_use INTEGER NOT NULL,
            link_count INTEGER NOT NULL,
            device INTEGER NOT NULL,
            generation INTEGER NOT NULL,
            edits INTEGER NOT NULL,
            version TEXT,
            target BLOB
        );
        CREATE INDEX node_local ON node (last_use, id, content, pin, is_open_for_writing, is_durable)
            WHERE kind = 0 AND (content <> 0 OR is_open_for_writing = 1);
        CREATE INDEX node_populated ON node (id) WHERE is_populated = 1;
        CREATE INDEX node_unlinked ON node (id) WHERE link_count = 0;
        CREATE TABLE entry (
            id INTEGER PRIMARY KEY,
            parent INTEGER NOT NULL,
            name BLOB NOT NULL,
            node INTEGER NOT NULL,
            identifier TEXT,
            is_excluded INTEGER NOT NULL,
            conflicts_with TEXT
        );
        CREATE UNIQUE INDEX entry_place ON entry (parent, name);
        CREATE INDEX entry_node ON entry (node);
        CREATE UNIQUE INDEX entry_identifier ON entry (identifier) WHERE identifier IS NOT NULL;
        CREATE TABLE attribute (
            node INTEGER NOT NULL,
            name BLOB NOT NULL,
            value BLOB NOT NULL,
            PRIMARY KEY (node, name)
        ) WITHOUT ROWID;
        CREATE TABLE local_range (
            node INTEGER NOT NULL,
            lower INTEGER NOT NULL,
            upper INTEGER NOT NULL,
            PRIMARY KEY (node, lower)
        ) WITHOUT ROWID;
        """

    private static let providerTables = """
        CREATE TABLE synced (
            identifier TEXT NOT NULL PRIMARY KEY,
            parent TEXT,
            name BLOB NOT NULL,
            kind INTEGER NOT NULL,
            size INTEGER NOT NULL,
            mode INTEGER NOT NULL,
            owner INTEGER NOT NULL,
            owner_group INTEGER NOT NULL,
            modification_time INTEGER NOT NULL,
            version TEXT NOT NULL,
            target BLOB,
            edits INTEGER NOT NULL
        ) WITHOUT ROWID;
        CREATE INDEX synced_place ON synced (parent, name);
        CREATE TABLE remote (
            sequence INTEGER PRIMARY KEY,
            is_deleted INTEGER NOT NULL,
            identifier TEXT NOT NULL UNIQUE,
            parent TEXT,
            name BLOB,
            kind INTEGER,
            size INTEGER,
            mode INTEGER,
            owner INTEGER,
            owner_group INTEGER,
            modification_time INTEGER,
            version TEXT,
            target BLOB
        );
        CREATE INDEX remote_place ON remote (parent, name) WHERE parent IS NOT NULL;
        """

    /// `pending.id` is the entry's id, or a negative number for a deletion: so a change of an entry touches no index
    /// but the one of due times.
    private static let bookkeepingTables = """
        CREATE TABLE pending (
            id INTEGER PRIMARY KEY,
            identifier TEXT,
            since INTEGER NOT NULL,
            due INTEGER NOT NULL,
            attempts INTEGER NOT NULL,
            error TEXT,
            message TEXT
        );
        CREATE UNIQUE INDEX pending_identifier ON pending (identifier) WHERE identifier IS NOT NULL;
        CREATE INDEX pending_due ON pending (due);
        CREATE INDEX pending_failing ON pending (id) WHERE error IS NOT NULL;
        CREATE TABLE change (
            sequence INTEGER PRIMARY KEY,
            kind INTEGER NOT NULL,
            node INTEGER NOT NULL,
            parent INTEGER NOT NULL,
            name BLOB
        );
        CREATE TABLE setting (
            key TEXT NOT NULL PRIMARY KEY,
            value TEXT NOT NULL
        ) WITHOUT ROWID;
        CREATE VIRTUAL TABLE name_search USING fts5 (names, tokenize = 'trigram');
        """

    /// A listing brings many items that are here exactly as they are there, so it costs what their nodes and names cost.
    private static let listingColumns = """
        ALTER TABLE node ADD COLUMN is_as_synced INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE change ADD COLUMN count INTEGER NOT NULL DEFAULT 1;
        """

    /// What has yet to come of what is kept here. It costs nothing where nothing is pinned.
    private static let pinnedPlaceholders = """
        CREATE INDEX node_pinned ON node (id) WHERE pin = 1 AND kind = 0 AND content <> 2;
        """

    /// Versions are found wherever their document is now, and what is never sent is counted. Both cost nothing where there
    /// is neither.
    private static let rareEntries = """
        CREATE INDEX entry_conflict ON entry (conflicts_with) WHERE conflicts_with IS NOT NULL;
        CREATE INDEX entry_excluded ON entry (id) WHERE is_excluded = 1;
        """

    /// Rows of the search of names begin and end with a `/` now, so all are made again.
    private static let searchedNames = """
        INSERT OR REPLACE INTO setting SELECT 'search.rebuild', '0' WHERE EXISTS (SELECT 1 FROM name_search LIMIT 1);
        """

    /// What applications were given: sealed, so that what is in a record is not looked at here.
    private static let accessGrants = """
        CREATE TABLE access_grant (
            id INTEGER PRIMARY KEY,
            record BLOB NOT NULL,
            seal BLOB NOT NULL
        );
        """

    /// What programs have removed and can have back: its content file stays, and is found by the node that it was of.
    private static let removedItems = """
        CREATE TABLE removed (
            id INTEGER PRIMARY KEY,
            node INTEGER NOT NULL,
            generation INTEGER NOT NULL,
            kind INTEGER NOT NULL,
            is_replaced INTEGER NOT NULL,
            is_durable INTEGER NOT NULL,
            mode INTEGER NOT NULL,
            owner INTEGER NOT NULL,
            owner_group INTEGER NOT NULL,
            size INTEGER NOT NULL,
            local_bytes INTEGER NOT NULL,
            modification_time INTEGER NOT NULL,
            removal_time INTEGER NOT NULL,
            path BLOB NOT NULL,
            version TEXT,
            target BLOB,
            attributes BLOB
        );
        CREATE INDEX removed_file ON removed (node) WHERE kind = 0;
        """

    /// What was noted before the provider had it, and what the provider calls it since; and the places that it left before.
    private static let notedNames = """
        CREATE TABLE noted (
            entry INTEGER PRIMARY KEY,
            identifier TEXT
        );
        CREATE TABLE noted_left (
            entry INTEGER NOT NULL,
            parent INTEGER NOT NULL,
            name BLOB NOT NULL,
            kind INTEGER NOT NULL,
            time INTEGER NOT NULL,
            PRIMARY KEY (entry, parent, name)
        ) WITHOUT ROWID;
        CREATE INDEX noted_left_place ON noted_left (parent, name);
        """

    /// Whether the provider was told of the item's rights. What an earlier version sent counts as told.
    private static let toldRights = """
        ALTER TABLE sent ADD COLUMN tells_rights INTEGER NOT NULL DEFAULT 1;
        """

    /// What the provider was told and has not answered; nodes that the provider's changes took from their names while a program
    /// has them open; and what is missing of content whose version is gone at the provider.
    private static let sentChanges = """
        CREATE TABLE sent (
            id INTEGER PRIMARY KEY,
            entry INTEGER NOT NULL,
            item TEXT,
            is_move INTEGER NOT NULL,
            parent TEXT NOT NULL,
            name BLOB NOT NULL,
            kind INTEGER NOT NULL,
            edits INTEGER NOT NULL,
            size INTEGER NOT NULL,
            modification_time INTEGER NOT NULL,
            base TEXT,
            target BLOB,
            digest TEXT
        );
        CREATE INDEX sent_item ON sent (item) WHERE item IS NOT NULL;
        CREATE INDEX sent_place ON sent (parent, name);
        CREATE INDEX sent_entry ON sent (entry);
        CREATE TABLE displaced (
            node INTEGER PRIMARY KEY,
            parent INTEGER NOT NULL,
            name BLOB NOT NULL,
            edits INTEGER NOT NULL,
            conflicts_with TEXT
        );
        CREATE TABLE fingerprint (
            identifier TEXT NOT NULL PRIMARY KEY,
            version TEXT NOT NULL,
            size INTEGER NOT NULL,
            digest TEXT NOT NULL
        ) WITHOUT ROWID;
        CREATE TABLE hole (
            node INTEGER NOT NULL,
            lower INTEGER NOT NULL,
            upper INTEGER NOT NULL,
            PRIMARY KEY (node, lower)
        ) WITHOUT ROWID;
        """
}
