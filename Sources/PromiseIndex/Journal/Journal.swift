import PromiseCore
import PromiseSystem

/// The redo journal: each answered body's statements, in two files that are written in turn.
///
/// A body's record is in the kernel's hands when `append` returns, so that it survives the end of this process. SQLite's
/// own commit follows later, for many bodies at once. A file may be written over only when the log of SQLite that holds
/// its bodies has been synced: `freed`.
///
/// A body that is committed by SQLite at once has a sequence number, but no record; replay stops at such a gap, which is
/// then covered by the database or was never synced. In that case what comes behind it is dead: the numbers go on
/// beyond it, and so that they may, the first sync after an unclean start takes SQLite's log to the disk, too.
///
/// Not thread-safe: under the store's lock. Only `JournalFile.synchronize` runs outside.
final class Journal {
    /// Two of them are kept.
    static let fileByteCount = 8 << 20
    /// Below this the file counts as full.
    static let roomMin = 4096

    private struct Half {
        let path: [UInt8]
        var file: JournalFile?
        /// All its blocks are written.
        var isWhole = false
        /// Of the newest record; 0: there is none.
        var lastSequence: UInt64 = 0
    }

    private var halves: [Half]
    /// What the files held when they were opened, until one is written over.
    private var found: [JournalContents?] = [nil, nil]
    private var current: Int?
    /// What was the present file until it was given up.
    private var abandoned: Int?
    private var offset = 0
    private let byteCount: Int
    private var identity = JournalIdentity(upper: 0, lower: 0)
    /// Bodies up to this one survive a power cut by what SQLite has written: their records are not needed.
    private var freedSequence: UInt64 = 0
    /// Records up to this one survive a power cut.
    private var syncedSequence: UInt64 = 0
    /// What seeds the checksums of the records of the present life.
    private(set) var salt: UInt64 = 0
    /// How many files were made, and how many of those were there when the folder was last synced:
    /// others may make one meanwhile.
    private(set) var madeFileCount = 0
    private var namedFileCount = 0
    var hasUnsyncedName: Bool { madeFileCount > namedFileCount }
    func syncedNames(of count: Int) { namedFileCount = max(namedFileCount, count) }

    /// Opens what is there and makes nothing. Throws `.invalid` for a journal of a newer version of this program.
    init(path: [UInt8], byteCount: Int) throws(Failure) {
        precondition(byteCount >= 4 * Journal.roomMin, "a journal file has room for records")
        self.byteCount = byteCount
        halves = [Half(path: path + Array("-redo-a".utf8)), Half(path: path + Array("-redo-b".utf8))]
        for position in 0..<2 {
            do throws(SystemError) {
                halves[position].file = try JournalFile.open(halves[position].path)
            } catch {
                throw Failure(error)
            }
            if let file = halves[position].file { found[position] = try JournalContents(of: file) }
        }
    }

    // Replay.

    /// When the files were opened.
    var hasRecords: Bool { found.contains { $0?.firstSequence != nil } }

    /// Runs the records after `sequence` that the files held when they were opened, up to the first gap. Returns the last
    /// one's sequence. A transaction must be open.
    func recover(into connection: Connection, after sequence: UInt64, of identity: JournalIdentity) throws(Failure) -> UInt64 {
        let replay = Replay(connection)
        defer { replay.close() }
        var done = sequence
        let contents = found.compactMap { $0 }.filter { $0.identity == identity && $0.firstSequence != nil }
        for contents in contents.sorted(by: { $0.firstSequence! < $1.firstSequence! }) {
            done = try Journal.run(contents, replay, after: done)
        }
        return done
    }

    /// Of the records that the files held when they were opened, also behind a gap.
    func newestSequence(of identity: JournalIdentity) -> UInt64 {
        found.compactMap { $0?.identity == identity ? $0?.lastSequence : nil }.max() ?? 0
    }

    /// Runs the records after `sequence`, which are all in the present file. A transaction must be open.
    func replay(into connection: Connection, after sequence: UInt64) throws(Failure) -> UInt64 {
        guard let file = current.flatMap({ halves[$0].file }) else { return sequence }
        let replay = Replay(connection)
        defer { replay.close() }
        return try Journal.run(try JournalContents(of: file), replay, after: sequence)
    }

    private static func run(
        _ contents: JournalContents, _ replay: Replay, after sequence: UInt64
    ) throws(Failure) -> UInt64 {
        defer { replay.close() }
        replay.beginFile()
        var done = sequence
        try contents.forEach { (number, payload) throws(Failure) in
            let isNext = number == done + 1
            try replay.apply(payload, isRunning: isNext)
            if isNext { done = number }
        }
        return done
    }

    /// Looks what the files hold of this index, before the first `begin`.
    func takeStock(of identity: JournalIdentity) {
        self.identity = identity
        for position in 0..<2 {
            guard let contents = found[position], contents.identity == identity else { continue }
            halves[position].lastSequence = contents.lastSequence ?? 0
        }
    }

    // Writing.

    /// No record can be larger.
    var recordCountMax: Int { byteCount - JournalFile.headerCount }

    var hasFile: Bool { current != nil }

    /// Bytes that can be appended.
    var room: Int { current == nil ? 0 : byteCount - offset }

    /// Goes on at the start of a file whose records are not needed any more, the other one if it can be; false when there
    /// is none, or no room for it on the disk. Everything answered must have been committed.
    func begin() -> Bool {
        let next = 1 - (current ?? abandoned ?? 1)
        for position in [next, 1 - next] where halves[position].lastSequence <= freedSequence {
            // What a failure leaves of the header is unknown.
            if current == position { current = nil }
            do throws(SystemError) {
                if !halves[position].isWhole {
                    halves[position].file = try JournalFile.make(halves[position].path, byteCount: byteCount)
                    halves[position].isWhole = true
                    madeFileCount += 1
                }
                let salt = UInt64.random(in: .min ... .max)
                try halves[position].file!.begin(identity: identity, salt: salt)
                self.salt = salt
            } catch {
                continue
            }
            halves[position].lastSequence = 0
            offset = JournalFile.headerCount
            current = position
            found = [nil, nil]
            return true
        }
        return false
    }

    /// In the hands of the kernel when this returns.
    func append(_ record: UnsafeRawBufferPointer, sequence: UInt64) throws(Failure) {
        guard let current, let file = halves[current].file else { preconditionFailure("there is a file to append to") }
        do throws(SystemError) {
            try file.append(record, at: offset)
        } catch {
            throw Failure(error)
        }
        offset += record.count
        halves[current].lastSequence = sequence
    }

    /// A file that could not be synced is not to be relied on any more, and the next of its name is
    /// another one: what the kernel has dropped of this one it takes for written, and says nothing
    /// of it again. Everything answered has been committed and synced.
    func abandon(_ file: JournalFile) {
        guard let position = halves.firstIndex(where: { $0.file === file }) else { return }
        _ = try? unlink(halves[position].path, label: "index.journal.abandon")
        halves[position] = Half(path: halves[position].path)
        guard current == position else { return }
        abandoned = position
        current = nil
    }

    // Power cuts.

    /// Bodies up to `sequence` are in the database or in its log, and synced.
    func freed(upTo sequence: UInt64) {
        freedSequence = max(freedSequence, sequence)
        for position in 0..<2 where position != current {
            guard halves[position].lastSequence > 0, halves[position].lastSequence <= freedSequence else { continue }
            // So that after a crash nobody has to sync for it again. If it fails somebody does.
            _ = try? halves[position].file?.invalidate()
            halves[position].lastSequence = 0
        }
    }

    /// The files have been synced with their records up to `sequence`.
    func synced(upTo sequence: UInt64) { syncedSequence = max(syncedSequence, sequence) }

    /// The files with records that a power cut could take.
    func unsyncedFiles() -> [JournalFile] {
        halves.filter { $0.lastSequence > max(syncedSequence, freedSequence) }.compactMap(\.file)
    }

    /// No file could be written over now.
    var isFileWaiting: Bool { halves.indices.contains { $0 != current && halves[$0].lastSequence > freedSequence } }

    /// After a close that left everything in the database file: the records are worth nothing any more.
    func invalidate() {
        for half in halves { _ = try? half.file?.invalidate() }
    }
}
