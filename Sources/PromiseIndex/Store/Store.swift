import Glibc
import PromiseCore
import PromiseSystem

/// Everything behind the one lock: the connection, the caches, the totals, the numbers not given out yet, and the state
/// of the open transaction. `StoreLock` owns the lock; nothing here takes one.
///
/// A *body* is one caller's closure. An *epoch* is a transaction of SQLite's that many bodies share. A body begins to
/// change things lazily, so that one that only looks costs no transaction.
final class Store {
    let connection: Connection
    var nodes: ClockCache<NodeID, Node>
    /// What a place holds; nil: nothing, and that is known.
    var places: ClockCache<Place, Entry?>

    /// The entries of a node, oldest first: asked for with every change in a folder, and every close.
    var names: ClockCache<NodeID, [Entry]>

    /// False: no file has any extended attribute or ACL, which programs ask for all the time.
    var hasAttributes = true

    /// False: no content has holes that nobody has the bytes of, which every upload asks.
    var hasHoles = true

    /// Rows of the table `node` that have changed since SQLite saw them: see `Store+Nodes.swift`.
    var dirtyNodes: [NodeID: DirtyNode] = [:]

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

    // The epoch: a transaction of SQLite's that is open over many bodies. See `Store+Epoch.swift`.

    let journal: Journal
    let log: Log
    /// The record of the body that runs. A pointer, as `Binder` writes to it.
    let record: UnsafeMutablePointer<RecordBuffer>
    var isEpochOpen = false
    /// Bodies in the open transaction that no record stands for.
    var derivedBodyCount = 0
    /// Answered bodies are missing in SQLite's state: nothing goes on before they have been replayed.
    var isBehind = false
    /// Of the last answered body.
    var sequence: UInt64 = 0
    /// Of the last body that SQLite has committed.
    var committedSequence: UInt64 = 0
    /// Counts the commits that no record stands for; `synchronize` must sync SQLite's log for them. 1: what was there
    /// before the index was opened.
    var unrecordedCount = 1
    var syncedUnrecordedCount = 0
    /// When a commit failed last (CLOCK_MONOTONIC), and how; nil after one that did not.
    var commitFailure: (failure: Failure, time: Int64)?
    /// When no journal file could be begun, last (CLOCK_MONOTONIC).
    var fileFailureTime: Int64 = .min / 2
    /// What the background thread is to be told of.
    var notes: Notes = []
    /// Since the database was opened. Smaller than the number of writes.
    var commitCount = 0
    /// Of `Connection.writtenPageCount`, at the last commit that asked for a checkpoint.
    var checkpointedPageCount = 0

    private var isBodyWriting = false
    private var isBodyDerived = false
    private(set) var hasBodyChanged = false
    private var memoryBeforeBody = Memory()
    private var touchedNodes: [NodeID] = []
    private var touchedPlaces: [Place] = []
    private var touchedNames: [NodeID] = []
    /// Names whose place in line has changed.
    private(set) var touchedEntries: [EntryID] = []
    /// Nodes of which the body that ended last has changed something.
    var touched: [NodeID] { touchedNodes + touchedNames }

    /// Of 4 KiB each: some 250,000 items.
    private static let smallPageCountMax = 16_384
    private var hasLargeCache = false

    /// How many numbers one row of `setting` reserves at a time; as many are lost when the process ends.
    static let reservationCount = 4096

    /// `journal` has been recovered from, and nothing was written to it yet.
    init(path: [UInt8], cacheCountMax: Int, journal: Journal, log: Log, now: Timestamp) throws(Failure) {
        connection = try Connection(path: path)
        self.journal = journal
        self.log = log
        record = .allocate(capacity: 1)
        record.initialize(to: RecordBuffer(countMax: journal.recordCountMax))
        nodes = ClockCache(countMax: cacheCountMax)
        places = ClockCache(countMax: cacheCountMax)
        names = ClockCache(countMax: max(1, cacheCountMax / 8))
        try configure()
        try fitCache()
        try loadNumbers()
        try makeRoot(now: now)
        memory.totals = try Totals(from: connection)
        hasAttributes = try connection.exists("SELECT 1 FROM attribute LIMIT 1")
        hasHoles = try connection.exists("SELECT 1 FROM hole LIMIT 1")
        let mark = try JournalMark.take(from: connection)
        sequence = mark.sequence
        committedSequence = mark.sequence
        journal.takeStock(of: mark.identity)
        changeFile()
    }

    deinit {
        record.pointee.free()
        record.deinitialize(count: 1)
        record.deallocate()
    }

    private func configure() throws(Failure) {
        // A commit is in the log before it returns; fsync is `synchronize()`'s (sqlite.org/pragma.html#pragma_synchronous).
        try connection.run("PRAGMA synchronous = NORMAL")
        try connection.run("PRAGMA wal_autocheckpoint = 0")
        try connection.run("PRAGMA journal_size_limit = 16777216")
        try connection.run("PRAGMA cache_size = -6144")
        try connection.run("PRAGMA foreign_keys = OFF")
        try connection.run("PRAGMA temp_store = MEMORY")
        // Debian builds SQLite with it on: it would overwrite deleted rows with zeros.
        try connection.run("PRAGMA secure_delete = OFF")
    }

    /// SQLite's own cache of pages, in KiB; the rest of an index is in the system's page cache, which is not this process's
    /// memory. A search among a million names with the small one reads its pages again and again, and takes five times as long.
    func fitCache() throws(Failure) {
        guard !hasLargeCache else { return }
        let pageCount = try connection.first("PRAGMA page_count") { $0.integer(0) } ?? 0
        guard pageCount > Store.smallPageCountMax else { return }
        try connection.run("PRAGMA cache_size = -16384")
        hasLargeCache = true
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
        try connection.run(Store.nodeInsertion) { root.bindAll(to: &$0) }
    }

    // Numbers.

    /// The first of `count` numbers in a row.
    func takeNodes(_ count: Int = 1) throws(Failure) -> NodeID {
        let end = nextNode + UInt64(count)
        if end > memory.nodeLimit {
            let limit = end + UInt64(Store.reservationCount)
            // Before `memory` changes: the first change of a body remembers it for a roll-back.
            try reserve("reserved.node", "\(limit)")
            memory.nodeLimit = limit
        }
        defer { nextNode = end }
        return NodeID(nextNode)
    }

    var nextNodeID: NodeID { NodeID(nextNode) }

    func takeEntry() throws(Failure) -> EntryID {
        if nextEntry >= memory.entryLimit {
            let limit = nextEntry + Int64(Store.reservationCount)
            try reserve("reserved.entry", "\(limit)")
            memory.entryLimit = limit
        }
        defer { nextEntry += 1 }
        return EntryID(nextEntry)
    }

    /// The number given to the newest change, even when what took it was rolled back.
    var lastChange: Int64 { nextChange - 1 }

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
        if isBodyDerived { return try connection.run(sql, binding: bind) }
        return try connection.run(sql, recordingTo: record, binding: bind)
    }

    /// As `change`, for a node's row that `dirtyNodes` brings into the table: the statement is only recorded.
    func note(_ sql: StaticString, binding bind: (inout Binder) -> Void) throws(Failure) {
        if !hasBodyChanged { try beginChanging() }
        precondition(!isBodyDerived, "a derived body changes no node")
        try connection.note(sql, to: record, binding: bind)
    }

    private func beginChanging() throws(Failure) {
        precondition(isBodyWriting, "a read changes nothing: use write")
        try checkRoom()
        if !isEpochOpen { try beginEpoch() }
        memoryBeforeBody = memory
        hasBodyChanged = true
    }

    /// To be called before a node's row or cached value changes.
    func touch(_ node: NodeID) { touchedNodes.append(node) }
    func touch(_ place: Place) { touchedPlaces.append(place) }
    func touch(_ entry: EntryID) { touchedEntries.append(entry) }
    /// To be called before an entry of the node changes; its cached entries are forgotten.
    func touchNames(of node: NodeID) {
        touchedNames.append(node)
        names.remove(node)
    }

    // A body's life.

    /// What a `derived` body changes can be made again from the rest, and is lost with an epoch.
    func beginBody(writing: Bool, derived: Bool = false) {
        isBodyWriting = writing
        isBodyDerived = derived
        hasBodyChanged = false
        if writing { record.pointee.begin() }
        if !touchedNodes.isEmpty { touchedNodes.removeAll(keepingCapacity: touchedNodes.capacity <= 1024) }
        if !touchedNames.isEmpty { touchedNames.removeAll(keepingCapacity: touchedNames.capacity <= 1024) }
        if !touchedPlaces.isEmpty { touchedPlaces.removeAll(keepingCapacity: touchedPlaces.capacity <= 1024) }
        if !touchedEntries.isEmpty { touchedEntries.removeAll(keepingCapacity: touchedEntries.capacity <= 1024) }
        connection.problem = nil
    }

    /// Ends a body that itself says whether it `succeeded`. Returns when its changes survive the end of this process; throws
    /// when nothing of them is left. A storage failure that the body swallowed undoes it too.
    func endBody(succeeded: Bool) throws(Failure) {
        defer { isBodyWriting = false }
        noticeLostEpoch()
        guard hasBodyChanged else {
            if let problem = connection.problem { throw problem }
            return
        }
        if succeeded, connection.problem == nil {
            if isBodyEmpty { return closeEmptyEpoch() }
            do throws(Failure) {
                return isBodyDerived ? keepDerivedBody() : try keepBody()
            } catch {
                undoBody()
                throw error
            }
        }
        let problem = connection.problem
        undoBody()
        if let problem { throw problem }
    }

    /// No statement of it changed anything.
    private var isBodyEmpty: Bool { !isBodyDerived && record.pointee.statementCount == 0 }

    /// As if the body had not run.
    private func undoBody() {
        memory = memoryBeforeBody
        for node in touchedNodes { nodes.remove(node) }
        for place in touchedPlaces { places.remove(place) }
        for node in touchedNames { names.remove(node) }
        if isBodyEmpty && isEpochOpen && connection.problem == nil { return closeEmptyEpoch() }
        rollBack(isCommitting: true)
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
