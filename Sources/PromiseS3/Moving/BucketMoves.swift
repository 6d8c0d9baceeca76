import Logging
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem

/// Moves, and the end of those that broke off: an item is at one place only for whoever looks
/// through this provider. Each is journalled before it begins; what an earlier daemon has begun is
/// ended by whoever comes by it.
struct BucketMoves: Sendable {
    enum Outcome: Sendable {
        case file(ObjectStatus)
        case folder
    }

    let bucket: S3Bucket
    let folders: BucketFolders
    let files: FileMove
    let wholes: FolderMove
    let journal: MoveJournal
    let meeting: FirstMeeting

    private var names: KeyNames { bucket.names }

    /// Never over something else: `.conflict` then, and when it has not the version `base`. Of a
    /// file with other metadata, unless both names are of one key.
    func move(
        _ path: [FileName], to target: [FileName], _ base: ContentVersion?, _ metadata: Metadata?
    ) async throws(ProviderError) -> Outcome {
        let (source, destination) = (names.key(path), names.key(target))
        return try await bucket.turns.takeBoth(
            S3Location.encoded(source), S3Location.encoded(destination)
        ) { () async throws(ProviderError) in
            if source == destination, let named = try await rename(path, to: target, base) {
                return .file(named)
            }
            return try await moveInTurn(path, to: target, base, metadata)
        }
    }

    /// The two names of a file that is, or was, beside a folder of its name stand for one key:
    /// nothing moves. Nil for a folder, whose keys say its name.
    private func rename(
        _ path: [FileName], to target: [FileName], _ base: ContentVersion?
    ) async throws(ProviderError) -> ObjectStatus? {
        var isFolder = base == S3Items.folderVersion
        if base == nil { isFolder = try await bucket.isFolder(path) }
        if isFolder { return nil }
        if try await bucket.isFolder(target) { throw ProviderError.taken(target) }
        let found = try await bucket.status(of: path)
        guard base == nil || found.version == base else { throw ProviderError.taken(path) }
        return found
    }

    private func moveInTurn(
        _ path: [FileName], to target: [FileName], _ base: ContentVersion?, _ metadata: Metadata?
    ) async throws(ProviderError) -> Outcome {
        if metadata == nil, let base, let moved = try await files.moveKnown(path, to: target, base)
        {
            return .file(moved)
        }
        try await checkFree(target, for: path)
        if try await bucket.isFolder(path) {
            guard base == nil || base == S3Items.folderVersion else {
                throw ProviderError.becameFolder(path)
            }
            folders.added(target)
            try await wholes.move(path, to: target)
            return .folder
        }
        return .file(try await files.move(path, to: target, base, metadata))
    }

    /// What an earlier attempt left was perhaps ended by whoever came by it: then it is at its new
    /// place, and nothing at the old one. That is no conflict with what is there.
    private func checkFree(_ target: [FileName], for path: [FileName]) async throws(ProviderError) {
        do throws(ProviderError) {
            try await bucket.check(.nothing, at: target)
            if try await bucket.isFolder(target) { throw ProviderError.taken(target) }
        } catch {
            guard error.code == .conflict, try await !bucket.isFolder(path) else { throw error }
            _ = try await bucket.status(of: path)
            throw error
        }
    }

    // MARK: What broke off

    /// Ends what an earlier daemon, or an attempt that broke off, has begun with what is at a path,
    /// right in it or around it; `containing`: also with what is anywhere below it. One at a time;
    /// whoever comes meanwhile waits. Returns those that came to their end.
    @discardableResult
    func finish(
        at path: [FileName], containing: Bool = false
    ) async throws(ProviderError) -> [MoveJournal.Record] {
        guard meeting.mayProbe, !unfinished(at: path, containing).isEmpty else { return [] }
        try await meeting.acquaintance.complete()
        return try await bucket.turns.take(" moves") { () async throws(ProviderError) in
            var ended: [MoveJournal.Record] = []
            for record in unfinished(at: path, containing) {
                let places: Logger.Metadata = [
                    "from": "\(record.source)", "to": "\(record.target)",
                ]
                bucket.logger.notice("a move is ended", metadata: places)
                do throws(ProviderError) {
                    if record.tag == nil {
                        try await wholes.carryOut(record, "a folder cannot be moved")
                        ended.append(record)
                    } else if try await files.carryOut(record) {
                        ended.append(record)
                    }
                } catch {
                    // It ended where it is; whoever came by it has not asked for it.
                    guard error.code.isLasting else { throw error }
                }
            }
            return ended
        }
    }

    private func unfinished(at path: [FileName], _ containing: Bool) -> [MoveJournal.Record] {
        let key = names.folderKey(path)
        return journal.unfinished.filter { record in
            [record.source, record.target].contains { text in
                guard var end = PercentEncoding.decoded(text) else { return true }
                if end.last != KeyNames.slash { end.append(KeyNames.slash) }
                if key.starts(with: end) { return true }
                guard end.starts(with: key) else { return false }
                return containing || !end.dropFirst(key.count).dropLast().contains(KeyNames.slash)
            }
        }
    }

    /// An attempt of before that broke off may have been at just this.
    func isSame(_ record: MoveJournal.Record, _ path: [FileName], _ target: [FileName]) -> Bool {
        let files = (names.key(path), names.key(target))
        let folders = (names.folderKey(path), names.folderKey(target))
        let ends = record.tag == nil ? folders : files
        return record.source == S3Location.encoded(ends.0)
            && record.target == S3Location.encoded(ends.1)
    }
}
