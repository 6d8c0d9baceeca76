import PromiseCore

/// The checks of `Index.verify`: what SQLite knows of its own file, and what must hold between the tables.
struct Verification {
    static let problemCountMax = 1_000

    let connection: Connection
    private var problems: [String] = []

    init(connection: Connection) { self.connection = connection }

    /// Reads one snapshot. Stops at `problemCountMax` violations.
    mutating func run() throws(Failure) -> [String] {
        try connection.run("BEGIN")
        try checkFile()
        // Without its tables the rest cannot even be asked.
        if problems.isEmpty {
            try checkRoot()
            try checkEntries()
            try checkNames()
            try checkCircles()
            try checkProvider()
            try checkContent()
        }
        try connection.run("COMMIT")
        return problems
    }

    /// Adds one sentence for each row.
    private mutating func check(_ sql: StaticString, _ sentence: (Row) -> String) throws(Failure) {
        var found: [String] = []
        let room = Verification.problemCountMax - problems.count
        guard room > 0 else { return }
        try connection.forEach(sql) { row in
            found.append(sentence(row))
            return found.count < room
        }
        problems += found
    }

    private mutating func checkFile() throws(Failure) {
        try check("PRAGMA integrity_check(100)") { "SQLite finds: \($0.text(0))" }
        problems.removeAll { $0 == "SQLite finds: ok" }
        let present = Set(try connection.all("SELECT name FROM sqlite_master") { $0.text(0) })
        for name in Schema.objectNames where !present.contains(name) { problems.append("the table or index \(name) is missing") }
    }

    private mutating func checkRoot() throws(Failure) {
        let hasRoot = try connection.exists("SELECT 1 FROM node WHERE id = 1 AND kind = 1")
        if !hasRoot { problems.append("node 1 is not the root folder") }
        try check("SELECT link_count, content FROM node WHERE id = 1 AND kind = 1 AND (link_count < 2 OR content <> 0)") {
            "the root folder has the link count \($0.integer(0)) and content \($0.integer(1))"
        }
        // The root is the only item that is in no folder.
        try check(
            """
            SELECT identifier FROM synced WHERE parent IS NULL
                AND NOT EXISTS (SELECT 1 FROM setting WHERE key = 'root.identifier')
            """
        ) { "the index does not say that it belongs to the storage \($0.text(0))" }
        try check("SELECT id FROM entry WHERE node = 1") { "entry \($0.integer(0)) names the root folder, which has no name" }
    }

    private mutating func checkEntries() throws(Failure) {
        try check("SELECT id, node FROM entry WHERE node NOT IN (SELECT id FROM node)") {
            "entry \($0.integer(0)) names node \($0.integer(1)), which does not exist"
        }
        try check("SELECT id, parent FROM entry WHERE parent NOT IN (SELECT id FROM node WHERE kind = 1)") {
            "entry \($0.integer(0)) is in node \($0.integer(1)), which is no folder or does not exist"
        }
        try check("SELECT id, length(name) FROM entry WHERE typeof(name) <> 'blob' OR length(name) NOT BETWEEN 1 AND 255") {
            "entry \($0.integer(0)) has a name of \($0.integer(1)) bytes"
        }
        try check(
            """
            SELECT id FROM entry WHERE typeof(name) = 'blob' AND length(name) BETWEEN 1 AND 255
                AND (instr(name, x'2F') OR instr(name, x'00') OR name IN (x'2E', x'2E2E'))
            """
        ) { "entry \($0.integer(0)) has a name that no file can have" }
        try check(
            """
            WITH item (identifier, name) AS (
                SELECT identifier, name FROM synced WHERE parent IS NOT NULL
                UNION ALL SELECT identifier, name FROM remote WHERE is_deleted = 0 AND parent IS NOT NULL)
            SELECT identifier FROM item WHERE typeof(name) <> 'blob' OR length(name) NOT BETWEEN 1 AND 255
                OR instr(name, x'2F') OR instr(name, x'00') OR name IN (x'2E', x'2E2E')
            """
        ) { "the item \($0.text(0)) is known by a name that no file can have" }
        try check(
            """
            SELECT node FROM displaced WHERE typeof(name) <> 'blob' OR length(name) NOT BETWEEN 1 AND 255
                OR instr(name, x'2F') OR instr(name, x'00') OR name IN (x'2E', x'2E2E')
            """
        ) { "the lost name of node \($0.integer(0)) is none that a file can have" }
        try check("SELECT node FROM attribute WHERE node NOT IN (SELECT id FROM node) GROUP BY node") {
            "there are extended attributes of node \($0.integer(0)), which does not exist"
        }
    }

    private mutating func checkNames() throws(Failure) {
        try check(
            """
            SELECT id, link_count FROM node
            WHERE id <> 1 AND link_count <> 0 AND NOT EXISTS (SELECT 1 FROM entry WHERE entry.node = node.id)
            """
        ) { "node \($0.integer(0)) has the link count \($0.integer(1)) but no entry" }
        try check(
            """
            SELECT node.id, node.link_count, count(*) FROM node JOIN entry ON entry.node = node.id
            WHERE node.kind <> 1 GROUP BY node.id HAVING count(*) <> node.link_count
            """
        ) { "node \($0.integer(0)) has the link count \($0.integer(1)) but \($0.integer(2)) entries" }
        try check(
            """
            SELECT node.id, count(*) FROM node JOIN entry ON entry.node = node.id
            WHERE node.kind = 1 GROUP BY node.id HAVING count(*) > 1
            """
        ) { "folder \($0.integer(0)) has \($0.integer(1)) entries" }
    }

    private mutating func checkCircles() throws(Failure) {
        try check(
            """
            WITH RECURSIVE reachable (id) AS (
                SELECT 1
                UNION SELECT entry.node FROM reachable JOIN entry ON entry.parent = reachable.id
                    JOIN node ON node.id = entry.node WHERE node.kind = 1)
            SELECT id, parent FROM entry
            WHERE parent IN (SELECT id FROM node WHERE kind = 1) AND parent NOT IN (SELECT id FROM reachable)
            """
        ) { "entry \($0.integer(0)) is in folder \($0.integer(1)), which cannot be reached from the root" }
    }

    private mutating func checkProvider() throws(Failure) {
        try check(
            """
            SELECT id, identifier FROM entry WHERE identifier IS NOT NULL
                AND identifier NOT IN (SELECT identifier FROM synced) AND identifier NOT IN (SELECT identifier FROM remote)
                AND node NOT IN (SELECT id FROM node WHERE is_as_synced = 1)
            """
        ) { "entry \($0.integer(0)) stands for the item \($0.text(1)), which is neither synced nor remote" }
        try check(
            """
            SELECT node.id FROM node LEFT JOIN entry ON entry.node = node.id
            WHERE node.is_as_synced = 1 AND (
                node.version IS NULL OR entry.identifier IS NULL OR entry.identifier IN (SELECT identifier FROM synced))
            GROUP BY node.id
            """
        ) { "node \($0.integer(0)) is said to be as synced, but has no item or a row of its own" }
        try check("SELECT id FROM pending WHERE id > 0 AND id NOT IN (SELECT id FROM entry)") {
            "there is a pending row of entry \($0.integer(0)), which does not exist"
        }
        try check(
            """
            SELECT identifier FROM pending WHERE id <= 0 AND identifier NOT IN (SELECT identifier FROM synced)
                AND identifier NOT IN (
                    SELECT identifier FROM entry JOIN node ON node.id = entry.node
                    WHERE is_as_synced = 1 AND identifier IS NOT NULL)
            """
        ) {
            "there is a pending deletion of the item \($0.text(0)), which is not synced"
        }
        try check("SELECT id FROM pending WHERE (id > 0) <> (identifier IS NULL)") {
            "pending row \($0.integer(0)) is neither of an entry nor of a deletion"
        }
    }

    private mutating func checkContent() throws(Failure) {
        try check(
            """
            SELECT local_range.node, lower, upper FROM local_range LEFT JOIN node ON node.id = local_range.node
            WHERE node.id IS NULL OR node.content <> 1 GROUP BY local_range.node
            """
        ) { "node \($0.integer(0)) has local ranges but no partial content" }
        try check(
            """
            SELECT node.id, lower, upper, size FROM local_range JOIN node ON node.id = local_range.node
            WHERE lower < 0 OR upper <= lower OR upper > size
            """
        ) { "node \($0.integer(0)) of \($0.integer(3)) bytes has the local range \($0.integer(1))..<\($0.integer(2))" }
        try check(
            """
            SELECT node, lower, before FROM (
                SELECT node, lower, lag(upper) OVER (PARTITION BY node ORDER BY lower) AS before FROM local_range)
            WHERE before >= lower
            """
        ) { "node \($0.integer(0)) has a local range from \($0.integer(1)) on that touches one up to \($0.integer(2))" }
        try check(
            """
            SELECT hole.node FROM hole LEFT JOIN node ON node.id = hole.node
            WHERE node.id IS NULL OR node.content <> 2 GROUP BY hole.node
            """
        ) { "node \($0.integer(0)) has holes but no whole content" }
        try check(
            """
            SELECT removed.node FROM removed JOIN node ON node.id = removed.node
            WHERE removed.kind = 0 AND (node.link_count > 0 OR node.kind <> 0)
            """
        ) { "node \($0.integer(0)) is kept as one that was removed, but has a name" }
        try check("SELECT node FROM displaced WHERE node NOT IN (SELECT id FROM node WHERE link_count = 0)") {
            "node \($0.integer(0)) is said to have lost its name, but has one or does not exist"
        }
    }

    /// What was made or edited here and is not in line for the provider would never get there. The queue is what a daemon
    /// keeps, so this is no invariant of the index itself.
    mutating func runQueue() throws(Failure) -> [String] {
        try check(
            """
            WITH RECURSIVE hidden (node) AS (
                SELECT node FROM entry WHERE is_excluded = 1
                UNION SELECT entry.node FROM entry JOIN hidden ON entry.parent = hidden.node)
            SELECT entry.id FROM entry JOIN node ON node.id = entry.node LEFT JOIN synced ON synced.identifier = entry.identifier
            WHERE node.kind <= 2 AND node.is_as_synced = 0 AND entry.is_excluded = 0
                AND entry.parent NOT IN (SELECT node FROM hidden)
                AND NOT EXISTS (SELECT 1 FROM remote WHERE remote.identifier = entry.identifier)
                AND NOT EXISTS (SELECT 1 FROM pending WHERE pending.id = entry.id)
                AND (entry.identifier IS NULL OR node.kind = 0 AND synced.edits <> node.edits)
            """
        ) { "entry \($0.integer(0)) was made or edited here, but is not in line for the provider" }
        let root = try connection.first("SELECT value FROM setting WHERE key = 'root.identifier'") { $0.text(0) }
        let lost = try connection.all(LostNames.query, .optional(root)) { SyncedItem($0) }
        problems += lost.prefix(Verification.problemCountMax - problems.count).map {
            "the item '\($0.item.name.display)' has no name here, but nobody has removed it"
        }
        return problems
    }
}

extension Store {
    /// Whether the caches and totals say what the tables say.
    func verifyMemory() throws(Failure) -> [String] {
        var problems: [String] = []
        let totals = try Totals(from: connection)
        if totals != memory.totals { problems.append("the totals in memory are \(memory.totals), those of the table \(totals)") }
        for id in Array(nodes.keys) {
            let row = try connection.first("SELECT * FROM node WHERE id = ?1", .id(id)) { Node($0) }
            if row != nodes.value(for: id) { problems.append("node \(id) is cached in a state that the table does not have") }
        }
        for id in Array(names.keys) {
            let rows = try connection.all("SELECT * FROM entry WHERE node = ?1 ORDER BY id", .id(id)) { Entry($0) }
            if rows != names.value(for: id) { problems.append("the names of node \(id) are cached as the table has them not") }
        }
        for place in Array(places.keys) {
            let row = try connection.first(
                "SELECT * FROM entry WHERE parent = ?1 AND name = ?2", .id(place.parent), .name(place.name)
            ) { Entry($0) }
            if places.value(for: place) != .some(row) {
                problems.append("\(place.name) in folder \(place.parent) is cached in a state that the table does not have")
            }
        }
        return problems
    }
}
