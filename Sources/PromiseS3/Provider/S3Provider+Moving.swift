import Foundation
import Logging
import NIOCore
import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem
import Synchronization

// Moving: S3 has no rename, so a copy at the server and a deletion; of a folder, for each key in it, journalled.

extension S3Provider {
    /// A copy at the server carries nothing; a few connections are left for what programs wait for.
    private static let movesAtOnceMax = 24
    /// Of a folder's move, when others write into it meanwhile.
    private static let roundsMax = 8

    /// Never over something else.
    func move(
        _ path: [FileName], to target: [FileName], _ base: ContentVersion?, _ metadata: Metadata?
    ) async throws(ProviderError) -> Item {
        let (source, destination) = (names.key(path), names.key(target))
        // In one order, so that two moves that cross do not wait for each other.
        let ends = [source, destination].map { S3Location.encoded($0) }.sorted()
        return try await turns.take(ends[0]) { () async throws(ProviderError) in
            try await turns.take(ends[1]) { () async throws(ProviderError) in
                if metadata == nil, let base, let moved = try await moveKnown(path, to: target, base) { return moved }
                try await checkFree(target, for: path)
                if try await isFolder(path) {
                    guard base == nil || base == S3Provider.folderVersion else {
                        throw ProviderError(.conflict, "\(shown(path)) is a folder on the server now")
                    }
                    seenFolders.added(names.folderKey(target), in: names.folderKey(target.dropLast()))
                    return try await moveFolder(path, to: target, metadata)
                }
                return try await moveFile(path, to: target, base, metadata)
            }
        }
    }

    /// What an earlier attempt left was perhaps ended by whoever came by it: then it is at its new
    /// place, and nothing at the old one. That is no conflict with what is there.
    private func checkFree(_ target: [FileName], for path: [FileName]) async throws(ProviderError) {
        do throws(ProviderError) {
            try await check(.nothing, at: target)
            if try await isFolder(target) { throw S3Provider.taken(shown(target)) }
        } catch {
            guard error.code == .conflict, try await !isFolder(path) else { throw error }
            _ = try await status(of: path)
            throw error
        }
    }

    /// What is known already is not looked at again where the server sees itself that it is so still: a copy where nothing is,
    /// and a deletion of what was copied. Nil when it has to be looked at, also why that was refused.
    private func moveKnown(
        _ path: [FileName], to target: [FileName], _ base: ContentVersion
    ) async throws(ProviderError) -> Item? {
        let traits = traits
        guard base != S3Provider.folderVersion, traits.copyRefusesTaken || traits.copiesIntoHollows,
            traits.deletionMatches || traits.deletesByHollows, isFolderKept(of: path),
            let known = details.status(names.key(path), tag: base.rawValue), known.size <= S3Provider.copyByteCountMax,
            try await !hasBecomeFolder(target)
        else { return nil }
        do throws(ProviderError) {
            return try await moveFile(path, known, to: target, nil)
        } catch {
            guard error.code == .conflict || error.code == .notFound else { throw error }
            return nil
        }
    }

    private func moveFile(
        _ path: [FileName], to target: [FileName], _ base: ContentVersion?, _ metadata: Metadata?
    ) async throws(ProviderError) -> Item {
        let found = try await status(of: path)
        guard base == nil || found.version == base else { throw S3Provider.taken(shown(path)) }
        try await keepFolder(of: path)
        return try await moveFile(path, found, to: target, metadata)
    }

    private func moveFile(
        _ path: [FileName], _ found: ObjectStatus, to target: [FileName], _ metadata: Metadata?
    ) async throws(ProviderError) -> Item {
        let what = "\(shown(path)) cannot be moved to \(shown(target))"
        let (source, destination) = (names.key(path), names.key(target))
        var record = MoveJournal.Record(source: S3Location.encoded(source), target: S3Location.encoded(destination))
        record.tag = found.tag
        try await pool.run { [moves, record] () throws(ProviderError) in try moves.begin(record) }
        var moved = found
        do throws(ProviderError) {
            moved.tag = try await copyAndRemove(source, found, to: destination, metadata, record, what)
        } catch {
            switch error.code {
            // It may have happened all the same.
            case .retry, .retryAfter, .offline, .authenticate, .cancelled: moves.leave(record)
            default: await pool.run { [moves, record] in moves.end(record) }
            }
            throw error
        }
        await pool.run { [moves, record] in moves.end(record) }
        if let metadata { moved.details = ObjectDetails(metadata, target: found.details.target) }
        details.note(destination, KnownDetails.Stamp(tag: moved.tag, lastModified: nil), moved.details, size: moved.size)
        return item(moved, target, parent: nil)
    }

    /// Returns the copy's tag.
    private func copyAndRemove(
        _ source: [UInt8], _ found: ObjectStatus, to target: [UInt8], _ metadata: Metadata?, _ record: MoveJournal.Record,
        _ what: String
    ) async throws(ProviderError) -> String {
        let tag = try await copyWhereNothingIs(source, found, to: target, metadata, what)
        if tag != found.tag {
            await pool.run { [moves] in moves.copied(record.source, tag: found.tag, copyTag: tag, record) }
        }
        // What was written in between is neither lost nor taken for what was to be moved.
        guard try await remove(source, of: found.tag, copiedTo: target, what) else {
            _ = try await remove(target, of: tag, what)
            throw ProviderError(.conflict, "\(what): it was changed on the server meanwhile")
        }
        return tag
    }

    // MARK: Folders

    private func moveFolder(
        _ path: [FileName], to target: [FileName], _ metadata: Metadata?
    ) async throws(ProviderError) -> Item {
        let (source, destination) = (names.folderKey(path), names.folderKey(target))
        guard !destination.starts(with: source) else {
            throw ProviderError(.refused, "\(shown(path)) cannot be moved into itself")
        }
        try await checkLengths(source, destination, "\(shown(path)) cannot be moved to \(shown(target))")
        try await keepFolder(of: path)
        let record = MoveJournal.Record(source: S3Location.encoded(source), target: S3Location.encoded(destination))
        try await pool.run { [moves] () throws(ProviderError) in try moves.begin(record) }
        do throws(ProviderError) {
            try await carryOut(record, "\(shown(path)) cannot be moved to \(shown(target))")
        } catch {
            moves.leave(record)
            throw error
        }
        shared.withLock { $0.folders[identifier(path)] = nil }
        if let metadata { return try await store(metadata, ofFolder: target) }
        return try await folderItem(target, parent: nil)
    }

    private func store(_ metadata: Metadata, ofFolder path: [FileName]) async throws(ProviderError) -> Item {
        let reference = ItemReference(identifier: identifier(path), path: path)
        return try await modify(reference, changes: ItemChanges(metadata: metadata), contents: nil, baseVersion: nil)
    }

    /// What is longest below a folder must have a place at the other key, too, or the move could never end.
    private func checkLengths(_ source: [UInt8], _ target: [UInt8], _ what: String) async throws(ProviderError) {
        guard target.count > source.count else { return }
        let longest = try await everything(source, what).keys.map(\.count).max() ?? 0
        guard longest - source.count + target.count <= S3Provider.keyByteCountMax else {
            throw ProviderError(.refused, "\(what): a key in it would be longer than \(S3Provider.keyByteCountMax) bytes")
        }
    }

    /// Ends what an earlier daemon, or an attempt that broke off, has begun with what is at a path, right in it or around it;
    /// `containing`: also with what is anywhere below it. One at a time; whoever comes meanwhile waits.
    /// Returns those that came to their end.
    @discardableResult
    func finishMoves(
        at path: [FileName], containing: Bool = false
    ) async throws(ProviderError) -> [MoveJournal.Record] {
        guard mayProbe, !unfinishedMoves(at: path, containing).isEmpty else { return [] }
        try await acquaintance.complete()
        return try await turns.take(" moves") { () async throws(ProviderError) in
            var ended: [MoveJournal.Record] = []
            for record in unfinishedMoves(at: path, containing) {
                logger.notice("a move is ended", metadata: ["from": "\(record.source)", "to": "\(record.target)"])
                do throws(ProviderError) {
                    if record.tag == nil {
                        try await carryOut(record, "a folder cannot be moved")
                        ended.append(record)
                    } else if try await carryOutFile(record) {
                        ended.append(record)
                    }
                } catch {
                    // It ended where it is; whoever came by it has not asked for it.
                    guard isLasting(error) else { throw error }
                }
            }
            return ended
        }
    }

    private func unfinishedMoves(at path: [FileName], _ containing: Bool) -> [MoveJournal.Record] {
        let key = names.folderKey(path)
        return moves.unfinished.filter { record in
            [record.source, record.target].contains { text in
                guard var end = PercentEncoding.decoded(text) else { return true }
                if end.last != KeyNames.slash { end.append(KeyNames.slash) }
                if key.starts(with: end) { return true }
                guard end.starts(with: key) else { return false }
                return containing || !end.dropFirst(key.count).dropLast().contains(KeyNames.slash)
            }
        }
    }

    /// The server will answer the same the next time.
    private func isLasting(_ error: ProviderError) -> Bool {
        switch error.code {
        case .refused, .permanent: true
        default: false
        }
    }

    /// Deletes what was copied; true when it is at the target and nowhere else. Otherwise what is there stays.
    private func carryOutFile(_ record: MoveJournal.Record) async throws(ProviderError) -> Bool {
        let what = "a file cannot be moved"
        var isDone = false
        do throws(ProviderError) {
            if let target = PercentEncoding.decoded(record.target) { _ = try await removeHollow(target, what) }
            if let source = PercentEncoding.decoded(record.source), let target = PercentEncoding.decoded(record.target),
                let tag = record.tag, let copy = try await status(ofKey: target, what),
                copy.tag == moves.copyTag(record.source, tag: tag, record) ?? tag
            {
                isDone = try await remove(source, of: tag, copiedTo: target, what)
            }
        } catch {
            if isLasting(error) { await pool.run { [moves] in moves.end(record) } }
            throw error
        }
        await pool.run { [moves] in moves.end(record) }
        return isDone
    }

    /// What has become of an object of a folder that moves.
    private enum Moved: Sendable {
        case done
        /// It is not there, or was changed meanwhile: another round sees.
        case changed
        /// Something else has the place: then both stay.
        case taken
        case failed(ProviderError)
    }

    /// Can be begun again at any point: what has been copied is copied again or found the same, and nothing is deleted whose
    /// copy is not there. What the server refuses stays where it is, and the move ends: it would never be any better. Throws what
    /// was refused when nothing could be moved at all.
    private func carryOut(_ record: MoveJournal.Record, _ what: String) async throws(ProviderError) {
        guard let source = PercentEncoding.decoded(record.source), let target = PercentEncoding.decoded(record.target) else {
            return await pool.run { [moves] in moves.end(record) }
        }
        let hadMarker = shared.withLock { $0.markers.contains(source) }
        do throws(ProviderError) {
            try await carryOut(record, from: source, to: target, what)
        } catch {
            if isLasting(error) { await pool.run { [moves] in moves.end(record) } }
            throw error
        }
        if hadMarker { shared.withLock { $0.markers = $0.markers.union([target]).subtracting([source]) } }
        await pool.run { [moves] in moves.end(record) }
    }

    private func carryOut(
        _ record: MoveJournal.Record, from source: [UInt8], to target: [UInt8], _ what: String
    ) async throws(ProviderError) {
        var stays: Set<[UInt8]> = []
        var failure: ProviderError?
        var movedCount = 0
        for round in 1... {
            guard round <= S3Provider.roundsMax else {
                throw ProviderError(.retry, "\(what): what is in it changes all the time")
            }
            let there = try await everything(target, what)
            // What was added or changed meanwhile is moved by another round.
            let found = try await everything(source, what).values.filter { !stays.contains($0.key) }
            if found.isEmpty { break }
            let outcomes = try await concurrently(found, width: S3Provider.movesAtOnceMax) {
                [self] (object) async throws(ProviderError) -> ([UInt8], Moved)? in
                let copy = target + object.key.dropFirst(source.count)
                do throws(ProviderError) {
                    return (object.key, try await moveObject(object, to: copy, there[copy], record, what))
                } catch {
                    guard isLasting(error) else { throw error }
                    return (object.key, .failed(error))
                }
            }
            for (key, outcome) in outcomes {
                switch outcome {
                case .done: movedCount += 1
                case .changed: break
                case .taken: stays.insert(key)
                case .failed(let error):
                    stays.insert(key)
                    failure = error
                }
            }
        }
        guard let failure else { return }
        if movedCount == 0 { throw failure }
        let example = stays.first.map { escapedForDisplay($0) } ?? ""
        logger.error("a folder's move left objects behind", metadata: ["reason": "\(failure.description)", "first": "\(example)"])
        shared.withLock { shared in
            shared.leftBehind = (shared.leftBehind.count + stays.count, example, failure.message)
        }
    }

    private func moveObject(
        _ object: S3Listing.Object, to target: [UInt8], _ there: S3Listing.Object?, _ record: MoveJournal.Record, _ what: String
    ) async throws(ProviderError) -> Moved {
        let name = S3Location.encoded(object.key)
        if object.size == 0, let isEnded = try await endRemoval(object.key, copiedTo: target, what) {
            return isEnded ? .done : .taken
        }
        var there = there
        if there?.size == 0, traits.copiesIntoHollows, try await status(ofKey: target, what) == nil { there = nil }
        if let there, there.tag != object.tag || there.size != object.size {
            // Parts, or a key of the server's, give a copy another tag.
            guard moves.copyTag(name, tag: object.tag, record) == there.tag else { return .taken }
        }
        var ours: String?
        if there == nil {
            guard let tag = try await copyObject(object, to: target, what) else { return .changed }
            ours = tag
            if tag != object.tag {
                await pool.run { [moves] in moves.copied(name, tag: object.tag, copyTag: tag, record) }
            }
            details.copied(object.key, to: target, tag: tag)
        }
        if try await remove(object.key, of: object.tag, copiedTo: target, what) { return .done }
        // The next round copies what was written in between. Our copy of what it was makes way, or
        // both would stay.
        if let ours { _ = try await remove(target, of: ours, what) }
        return .changed
    }

    /// Returns the copy's tag; nil when the source is gone or changed since it was listed, or the target was made meanwhile.
    private func copyObject(
        _ object: S3Listing.Object, to target: [UInt8], _ what: String
    ) async throws(ProviderError) -> String? {
        // The listing may be of a while ago, and the server would copy over what was made since.
        if !traits.copyRefusesTaken, !traits.copiesIntoHollows,
            try await self.status(ofKey: target, what) != nil
        {
            return nil
        }
        let status: ObjectStatus?
        if object.size > S3Provider.copyByteCountMax {
            status = try await self.status(ofKey: object.key, what)
        } else {
            var headers: HTTPHeaders = [:]
            headers.add(name: "ETag", value: object.tag)
            headers.add(name: "Content-Length", value: "\(object.size)")
            status = ObjectStatus(headers)
        }
        guard let status else { return nil }
        do throws(ProviderError) {
            return try await copyWhereNothingIs(object.key, status, to: target, nil, what)
        } catch {
            guard error.code == .notFound || error.code == .conflict else { throw error }
            return nil
        }
    }

    /// Every key that begins so, also those that cannot be shown.
    private func everything(_ prefix: [UInt8], _ what: String) async throws(ProviderError) -> [[UInt8]: S3Listing.Object] {
        var result: [[UInt8]: S3Listing.Object] = [:]
        var next: S3Listing.Next?
        repeat {
            let page = try await list(prefix, delimiter: false, from: next, what)
            for object in page.objects { result[object.key] = object }
            next = page.next
        } while next != nil
        return result
    }
}
