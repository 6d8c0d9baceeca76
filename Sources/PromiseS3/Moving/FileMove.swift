import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem

/// Moves one object: S3 has no rename, so a copy at the server and a deletion, with a record in the
/// journal for whoever has to end it. Nothing is copied over, and nothing deleted whose copy is not
/// there.
struct FileMove: Sendable {
    let bucket: S3Bucket
    let folders: BucketFolders
    let copier: ObjectCopier
    let remover: ObjectRemover
    let journal: MoveJournal

    /// What is known already is not looked at again where the server sees itself that it is so
    /// still: a copy where nothing is, and a deletion of what was copied. Nil when it has to be
    /// looked at, also why that was refused.
    func moveKnown(
        _ path: [FileName], to target: [FileName], _ base: ContentVersion
    ) async throws(ProviderError) -> ObjectStatus? {
        let traits = bucket.traits
        guard base != S3Items.folderVersion, traits.copyRefusesTaken || traits.copiesIntoHollows,
            traits.deletionMatches || traits.deletesByHollows, folders.isKept(of: path),
            let known = bucket.details.status(bucket.names.key(path), tag: base.rawValue),
            known.size <= ObjectCopier.byteCountMax, try await !folders.hasBecomeFolder(target)
        else { return nil }
        do throws(ProviderError) {
            return try await move(path, known, to: target, nil)
        } catch {
            guard error.code == .conflict || error.code == .notFound else { throw error }
            return nil
        }
    }

    /// Returns what is at the target then. Throws `.conflict` when the object has not the version
    /// `base`, or the name is taken.
    func move(
        _ path: [FileName], to target: [FileName], _ base: ContentVersion?, _ metadata: Metadata?
    ) async throws(ProviderError) -> ObjectStatus {
        let found = try await bucket.status(of: path)
        guard base == nil || found.version == base else { throw ProviderError.taken(path) }
        try await folders.keep(of: path)
        return try await move(path, found, to: target, metadata)
    }

    private func move(
        _ path: [FileName], _ found: ObjectStatus, to target: [FileName], _ metadata: Metadata?
    ) async throws(ProviderError) -> ObjectStatus {
        let what = "\(shown(path)) cannot be moved to \(shown(target))"
        let (source, destination) = (bucket.names.key(path), bucket.names.key(target))
        var record = MoveJournal.Record(
            source: S3Location.encoded(source), target: S3Location.encoded(destination))
        record.tag = found.tag
        try await bucket.pool.run { [journal, record] () throws(ProviderError) in
            try journal.begin(record)
        }
        var moved = found
        do throws(ProviderError) {
            moved.tag = try await copyAndRemove(
                source, found, to: destination, metadata, record, what)
        } catch {
            if error.code.leavesInDoubt {
                journal.leave(record)
            } else {
                await end(record)
            }
            throw error
        }
        await end(record)
        if let metadata { moved.details = ObjectDetails(metadata, target: found.details.target) }
        let stamp = KnownDetails.Stamp(tag: moved.tag, lastModified: nil)
        bucket.details.note(destination, stamp, moved.details, size: moved.size)
        return moved
    }

    /// Returns the copy's tag.
    private func copyAndRemove(
        _ source: [UInt8], _ found: ObjectStatus, to target: [UInt8], _ metadata: Metadata?,
        _ record: MoveJournal.Record,
        _ what: String
    ) async throws(ProviderError) -> String {
        let tag = try await copier.copyWhereNothingIs(source, found, to: target, metadata, what)
        if tag != found.tag {
            await bucket.pool.run { [journal] in
                journal.copied(record.source, tag: found.tag, copyTag: tag, record)
            }
        }
        let isMoved: Bool
        do throws(ProviderError) {
            isMoved = try await remover.remove(source, of: found.tag, copiedTo: target, what)
        } catch {
            if !error.code.leavesInDoubt {
                await remover.takeBack(target, of: tag, copiedFrom: source, found.tag, what)
            }
            throw error
        }
        // What was written in between is neither lost nor taken for what was to be moved.
        guard isMoved else {
            _ = try await remover.remove(target, of: tag, what)
            throw ProviderError(.conflict, "\(what): it was changed on the server meanwhile")
        }
        return tag
    }

    /// Ends a move that broke off: deletes what was copied; true when it is at the target and
    /// nowhere else. Otherwise what is there stays.
    func carryOut(_ record: MoveJournal.Record) async throws(ProviderError) -> Bool {
        let what = "a file cannot be moved"
        var isDone = false
        do throws(ProviderError) {
            let (source, target) = (
                PercentEncoding.decoded(record.source), PercentEncoding.decoded(record.target)
            )
            if let target { _ = try await copier.hollows.remove(target, what) }
            if let source, let target, let tag = record.tag,
                let copy = try await bucket.status(ofKey: target, what),
                copy.tag == journal.copyTag(record.source, tag: tag, record) ?? tag
            {
                isDone = try await remover.remove(source, of: tag, copiedTo: target, what)
            }
        } catch {
            if error.code.isLasting { await end(record) }
            throw error
        }
        await end(record)
        return isDone
    }

    private func end(_ record: MoveJournal.Record) async {
        await bucket.pool.run { [journal] in journal.end(record) }
    }
}
