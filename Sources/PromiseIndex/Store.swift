import PromiseCore
import PromiseSystem

import Glibc

/// Everything behind the one lock: the connection, the caches, the totals, the numbers not given out yet, and the state
/// of the open transaction. `CommitQueue` owns the lock; nothing here takes one.
///
/// A *body* is one caller's closure. A *batch* is a transaction of SQLite's, shared by the bodies that wait at the same
/// time. A body begins to change things lazily, so that one that only looks costs no transaction.
final class Store {
    let connection: Connection
    var nodes: ClockCache<NodeID, Node>
    /// What a place holds; nil: nothing, and that is known.
    var places: ClockCache<Place, Entry?>

    /// What a roll-back must restore besides the tables.
    struct Memory {
        var totals = Totals()
        /// Numbers below these are reserved in the table `setting` and may be given out.
        var nodeLimit: UInt64 = 0
        var entryLimit: Int64 = 0
    }
    var memory = Memory()
    /// The next numbers to give out. Never go back, not even when what took them is rolled back.
    private var nextNode: UInt64 = 0
    private var nextEntry: Int64 = 0
    private var nextChange: Int64 = 0

    private(set) var isBatchOpen = false
    private(set) var bodyCount = 0
    /// Since the database was opened. Smaller than the number of writes when they share commits.
    private(set) var commitCount = 0
    private var memoryBeforeBatch = Memory()

    private var isBodyWriting = false
    private var hasBodyChanged = false
    private var hasSavepoint = false
    private var memoryBeforeBody = Memory()
    private var touchedNodes: [NodeID] = []
    private var touchedPlaces: [Place] = []

    /// How many numbers one row of `setting` reserves at a time; as many are lost when the process ends.
    static let reservationCount = 4096

    init(path: [UInt8], cacheCountMax: Int, now: Timestamp) throws(Failure) {
        connection = try Connection(path: path)
        nodes = ClockCache(countMax: cacheCountMax)
        places = ClockCache(countMax: cacheCountMax)
        try configure()
        try loadNumbers()
        try makeRoot(now: now)
        memory.totals = try Totals(from: connection)
    }

    private func configure() throws(Failure) {
        // A commit is in the log before it returns; fsync is `synchronize()`'s (sqlite.org/pragma.html#pragma_synchronous).
        try connection.run("PRAGMA synchronous = NORMAL")
        try connection.run("PRAGMA wal_autocheckpoint = 0")
        try connection.run("PRAGMA journal_size_limit = 16777216")
        try connection.run("PRAGMA cache_size = -65536")
        try connection.run("PRAGMA foreign_keys = OFF")
        try connection.run("PRAGMA temp_store = MEMORY")
        // Debian builds SQLite with it on: it would overwrite deleted rows with zeros.
        try connection.run("PRAGMA secure_delete = OFF")
    }

    private func loadNumbers() throws(Failure) {
        nextNode = UInt64(try number("reserved.node") ?? 2)
        nextEntry = try number("reserved.entry") ?? 1
        nextChange = try (connection.first("SELECT max(sequence) FROM change") { $0.integer(0) } ?? 0) + 1
        memory.nodeLimit = nextNode
        memory.entryLimit = nextEntry
    }

    private func number(_ key: String) throws(Failure) -> Int64? {
        let text = try connection.first("SELECT value FROM setting WHERE key = ?1", .text(key)) { $0.text(0) }
        guard let text else { return nil }
        guard let value = Int64(text), value > 0 else {
            throw Failure(.corrupted, "the setting \(key) of the index is no number: \(text)")
        }
        return value
    }

    private func makeRoot(now: Timestamp) throws(Failure) {
        if try connection.exists("SELECT 1 FROM node WHERE id = 1") { return }
        var root = Node(id: .root, kind: .folder, mode: 0o755, owner: getuid(), group: getgid(), time: now)
        root.linkCount = 2
        try connection.run(
            "INSERT INTO node VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21,?22,?23)"
        ) { root.bindAll(to: &$0) }
    }

    // Numbers.

    func takeNode() throws(Failure) -> NodeID {
        if nextNode >= memory.nodeLimit {
            let limit = nextNode + UInt64(Store.reservationCount)
            // Before `memory` changes: the first change of a body remembers it for a roll-back.
            try reserve("reserved.node", "\(limit)")
            memory.nodeLimit = limit
        }
        defer { nextNode += 1 }
        return NodeID(nextNode)
    }

    func takeEntry() throws(Failure) -> EntryID {
        if nextEntry >= memory.entryLimit {
            let limit = nextEntry + Int64(Store.reservationCount)
            try reserve("reserved.entry", "\(limit)")
            memory.entryLimit = limit
        }
        defer { nextEntry += 1 }
        return EntryID(nextEntry)
    }

    func takeChange() -> Int64 {
        defer { nextChange += 1 }
        return nextChange
    }

    private func reserve(_ key: String, _ value: String) throws(Failure) {
        try change(
            "INSERT INTO setting VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = excluded.value", .text(key), .text(value))
    }

    // Changing.

    /// Runs a statement that changes something, after beginning a transaction or a savepoint where that is due.
    @discardableResult
    func change(_ sql: StaticString, _ values: SQLValue...) throws(Failure) -> Int {
        try change(sql) { $0.all(values) }
    }

    @discardableResult
    func change(_ sql: StaticString, binding bind: (inout Binder) -> Void) throws(Failure) -> Int {
        if !hasBodyChanged { try beginChanging() }
        return try connection.run(sql, binding: bind)
    }

    private func beginChanging() throws(Failure) {
        precondition(isBodyWriting, "a read changes nothing: use write")
        if isBatchOpen {
            // What others did in this transaction must outlive this body's failure.
            try connection.run("SAVEPOINT body")
            hasSavepoint = true
        } else {
            try connection.run("BEGIN IMMEDIATE")
            isBatchOpen = true
            memoryBeforeBatch = memory
        }
        memoryBeforeBody = memory
        hasBodyChanged = true
    }

    /// To be called before a node's row or cached value changes.
    func touch(_ node: NodeID) { touchedNodes.append(node) }
    func touch(_ place: Place) { touchedPlaces.append(place) }

    // A body's life.

    func beginBody(writing: Bool) {
        isBodyWriting = writing
        hasBodyChanged = false
        hasSavepoint = false
        if !touchedNodes.isEmpty { touchedNodes.removeAll(keepingCapacity: touchedNodes.capacity <= 1024) }
        if !touchedPlaces.isEmpty { touchedPlaces.removeAll(keepingCapacity: touchedPlaces.capacity <= 1024) }
        connection.problem = nil
    }

    /// What became of the batch at the end of a body.
    enum BodyOutcome {
        /// The body's changes, if any, are part of the open batch.
        case kept
        /// The body's changes are undone.
        case undone
        /// SQLite gave up the whole transaction: everybody's changes are undone.
        case batchLost(Failure)
    }

    /// Ends a body; `succeeded` is what the body itself says. A storage failure that the body swallowed undoes it too.
    func endBody(succeeded: Bool) -> BodyOutcome {
        defer { isBodyWriting = false }
        if isBatchOpen && connection.isInAutocommit {
            let failure = connection.problem ?? Failure(.inputOutput, "the index gave up a transaction")
            abandonBatch()
            return .batchLost(failure)
        }
        let isGood = succeeded && connection.problem == nil
        guard hasBodyChanged else { return isGood ? .kept : .undone }
        bodyCount += 1
        do throws(Failure) {
            if isGood {
                if hasSavepoint { try connection.run("RELEASE body") }
                return .kept
            }
            if hasSavepoint {
                try connection.run("ROLLBACK TO body")
                try connection.run("RELEASE body")
            } else {
                // The body is alone in its transaction.
                try connection.run("ROLLBACK")
                isBatchOpen = false
                bodyCount = 0
            }
        } catch {
            abandonBatch()
            return .batchLost(error)
        }
        memory = memoryBeforeBody
        for node in touchedNodes { nodes.remove(node) }
        for place in touchedPlaces { places.remove(place) }
        return .undone
    }

    /// Commits the batch. When that fails everything in it is undone.
    func commit() throws(Failure) {
        precondition(isBatchOpen, "only an open transaction can be committed")
        do throws(Failure) {
            if let fault = FaultInjection.take("index.commit") { throw Failure(SystemError(errno: fault, label: "index.commit")) }
            try connection.run("COMMIT")
        } catch {
            abandonBatch()
            throw error
        }
        isBatchOpen = false
        bodyCount = 0
        commitCount += 1
    }

    /// Rolls the batch back and forgets everything cached.
    private func abandonBatch() {
        if !connection.isInAutocommit {
            // An error here has already undone the transaction, or the connection is beyond use and later calls say so.
            _ = try? connection.run("ROLLBACK")
        }
        isBatchOpen = false
        bodyCount = 0
        memory = memoryBeforeBatch
        nodes.removeAll()
        places.removeAll()
    }
}

/// Where an entry is.
struct Place: Hashable {
    var parent: NodeID
    var name: FileName

    /// All bytes at once: an array's own hash goes byte by byte.
    func hash(into hasher: inout Hasher) {
        hasher.combine(parent.rawValue)
        name.bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
    }
}
