import Logging
import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem
import Synchronization

/// Moves a folder: each key below it is copied and deleted, many at a time. What a kill or a
/// refusal leaves is the same to begin with again: what has been copied is found the same, and
/// nothing is deleted whose copy is not there. What the server refuses stays where it is, and the
/// move ends: it would never be any better.
final class FolderMove: Sendable {
    /// A copy at the server carries nothing; a few connections are left for what programs wait for.
    private static let movesAtOnceMax = 24
    /// When others write into it meanwhile.
    private static let roundsMax = 8

    /// What has become of an object of a folder that moves.
    private enum Moved: Sendable {
        case done
        /// It is not there, or was changed meanwhile: another round sees.
        case changed
        /// Something else has the place: then both stay.
        case taken
        case failed(ProviderError)
    }

    private let bucket: S3Bucket
    private let folders: BucketFolders
    private let copier: ObjectCopier
    private let remover: ObjectRemover
    private let journal: MoveJournal
    /// Objects that were left where they were, one of them, and why.
    private let leftBehind = Mutex<(count: Int, example: String, reason: String)>((0, "", ""))

    init(
        bucket: S3Bucket, folders: BucketFolders, copier: ObjectCopier, remover: ObjectRemover,
        journal: MoveJournal
    ) {
        self.bucket = bucket
        self.folders = folders
        self.copier = copier
        self.remover = remover
        self.journal = journal
    }

    /// For people; nil when all went well.
    var limitation: String? {
        let left = leftBehind.withLock { $0 }
        guard left.count > 0 else { return nil }
        return
            "\(left.count) objects of folders that were moved stayed at their old place, such as "
            + "'\(left.example)': \(left.reason)"
    }

    /// Throws `.refused` for a folder into itself, and where a key would be too long.
    func move(_ path: [FileName], to target: [FileName]) async throws(ProviderError) {
        let (source, destination) = (bucket.names.folderKey(path), bucket.names.folderKey(target))
        guard !destination.starts(with: source) else {
            throw ProviderError(.refused, "\(shown(path)) cannot be moved into itself")
        }
        let what = "\(shown(path)) cannot be moved to \(shown(target))"
        try await checkLengths(source, destination, what)
        try await folders.keep(of: path)
        let record = MoveJournal.Record(
            source: S3Location.encoded(source), target: S3Location.encoded(destination))
        try await bucket.pool.run { [journal] () throws(ProviderError) in try journal.begin(record)
        }
        do throws(ProviderError) {
            try await carryOut(record, what)
        } catch {
            journal.leave(record)
            throw error
        }
    }

    /// What is longest below a folder must have a place at the other key, too, or the move could
    /// never end.
    private func checkLengths(_ source: [UInt8], _ target: [UInt8], _ what: String)
        async throws(ProviderError)
    {
        guard target.count > source.count else { return }
        var longest = 0
        try await bucket.forEachObject(source, what) { longest = max(longest, $0.key.count) }
        guard longest - source.count + target.count <= KeyNames.byteCountMax else {
            let limit = KeyNames.byteCountMax
            throw ProviderError(
                .refused, "\(what): a key in it would be longer than \(limit) bytes")
        }
    }

    /// Also of a move that broke off. Throws what was refused when nothing could be moved at all.
    func carryOut(_ record: MoveJournal.Record, _ what: String) async throws(ProviderError) {
        guard let source = PercentEncoding.decoded(record.source),
            let target = PercentEncoding.decoded(record.target)
        else { return await end(record) }
        let hadMarker = folders.isMarked(source)
        do throws(ProviderError) {
            try await carryOut(record, from: source, to: target, what)
        } catch {
            if error.code.isLasting { await end(record) }
            throw error
        }
        folders.moved(source, to: target, hadMarker: hadMarker)
        await end(record)
    }

    private func end(_ record: MoveJournal.Record) async {
        await bucket.pool.run { [journal] in journal.end(record) }
    }

    private func carryOut(
        _ record: MoveJournal.Record, from source: [UInt8], to target: [UInt8], _ what: String
    ) async throws(ProviderError) {
        var stays: Set<[UInt8]> = []
        var failure: ProviderError?
        var movedCount = 0
        for round in 1... {
            guard round <= FolderMove.roundsMax else {
                throw ProviderError(.retry, "\(what): what is in it changes all the time")
            }
            let there = try await bucket.everything(target, what)
            // What was added or changed meanwhile is moved by another round.
            let found = try await bucket.everything(source, what).values.filter {
                !stays.contains($0.key)
            }
            if found.isEmpty { break }
            let outcomes = try await concurrently(found, width: FolderMove.movesAtOnceMax) {
                [self] (object) async throws(ProviderError) -> ([UInt8], Moved)? in
                let copy = target + object.key.dropFirst(source.count)
                do throws(ProviderError) {
                    return (object.key, try await move(object, to: copy, there[copy], record, what))
                } catch {
                    guard error.code.isLasting else { throw error }
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
        leave(stays, failure)
    }

    private func leave(_ stays: Set<[UInt8]>, _ failure: ProviderError) {
        let example = stays.first.map { escapedForDisplay($0) } ?? ""
        bucket.logger.error(
            "a folder's move left objects behind",
            metadata: ["reason": "\(failure.description)", "first": "\(example)"])
        leftBehind.withLock { $0 = ($0.count + stays.count, example, failure.message) }
    }

    // MARK: One object of it

    private func move(
        _ object: S3Listing.Object, to target: [UInt8], _ there: S3Listing.Object?,
        _ record: MoveJournal.Record, _ what: String
    ) async throws(ProviderError) -> Moved {
        let name = S3Location.encoded(object.key)
        if HollowObject.mayBeOne(size: object.size),
            let isEnded = try await copier.hollows.endRemoval(object.key, copiedTo: target, what)
        {
            return isEnded ? .done : .taken
        }
        var there = there
        if let size = there?.size, HollowObject.mayBeOne(size: size),
            bucket.traits.copiesIntoHollows,
            try await bucket.status(ofKey: target, what) == nil
        {
            there = nil
        }
        if let there, there.tag != object.tag || there.size != object.size {
            // Parts, or a key of the server's, give a copy another tag.
            guard journal.copyTag(name, tag: object.tag, record) == there.tag else { return .taken }
        }
        var ours: String?
        if there == nil {
            guard let tag = try await copy(object, to: target, what) else { return .changed }
            ours = tag
            if tag != object.tag {
                await bucket.pool.run { [journal] in
                    journal.copied(name, tag: object.tag, copyTag: tag, record)
                }
            }
            bucket.details.copied(object.key, to: target, tag: tag)
        }
        do throws(ProviderError) {
            if try await remover.remove(object.key, of: object.tag, copiedTo: target, what) {
                journal.moved(name, record)
                return .done
            }
        } catch {
            if let ours, !error.code.leavesInDoubt {
                await remover.takeBack(target, of: ours, copiedFrom: object.key, object.tag, what)
            }
            throw error
        }
        // The next round copies what was written in between. Our copy of what it was makes way, or
        // both would stay.
        if let ours { _ = try await remover.remove(target, of: ours, what) }
        return .changed
    }

    /// Returns the copy's tag; nil when the source is gone or changed since it was listed, or the
    /// target was made meanwhile.
    private func copy(
        _ object: S3Listing.Object, to target: [UInt8], _ what: String
    ) async throws(ProviderError) -> String? {
        let traits = bucket.traits
        // The listing may be of a while ago, and the server would copy over what was made since.
        if !traits.copyRefusesTaken, !traits.copiesIntoHollows,
            try await bucket.status(ofKey: target, what) != nil
        {
            return nil
        }
        let status: ObjectStatus?
        if object.size > ObjectCopier.byteCountMax {
            status = try await bucket.status(ofKey: object.key, what)
        } else {
            var headers: HTTPHeaders = [:]
            headers.add(name: "ETag", value: object.tag)
            headers.add(name: "Content-Length", value: "\(object.size)")
            status = ObjectStatus(headers)
        }
        guard let status else { return nil }
        do throws(ProviderError) {
            return try await copier.copyWhereNothingIs(object.key, status, to: target, nil, what)
        } catch {
            guard error.code == .notFound || error.code == .conflict else { throw error }
            return nil
        }
    }
}
