import PromiseCore

extension Journal {
    /// Brings what the last process answered and SQLite had not committed into the database at `path`, in one transaction.
    /// Nothing happens when there is nothing. Doing it again changes nothing. Before migrations: the records were written
    /// for the tables as they are.
    func recover(path: [UInt8]) throws(Failure) {
        guard hasRecords else { return }
        let connection = try Connection(path: path)
        defer { connection.close() }
        guard try connection.exists("SELECT 1 FROM sqlite_master WHERE name = 'setting'"),
            let mark = try JournalMark.find(in: connection)
        else { return }
        try connection.run("PRAGMA synchronous = NORMAL")
        try connection.run("PRAGMA wal_autocheckpoint = 0")
        try connection.run("PRAGMA secure_delete = OFF")
        try connection.run("BEGIN IMMEDIATE")
        do throws(Failure) {
            let done = try recover(into: connection, after: mark.sequence, of: mark.identity)
            // What a power cut has left behind a gap never happened. No body of the future gets a number from there, as
            // that record would be taken for the one after it.
            let sequence = max(done, newestSequence(of: mark.identity))
            if sequence > mark.sequence { try JournalMark.set(sequence, in: connection) }
            try connection.run("COMMIT")
        } catch {
            if !connection.isInAutocommit { _ = try? connection.run("ROLLBACK") }
            throw error
        }
    }
}
