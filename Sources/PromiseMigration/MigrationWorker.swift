import PromiseAccess
import PromiseCore
import PromiseProvider
import PromiseSystem

/// A file that nobody else has: filled by a fetch, then sent.
struct ScratchFile: ContentSource {
    let file: SharedDescriptor
    let size: UInt64

    var descriptor: Int32 { file.number }
    func validate() throws(ProviderError) {}
}

/// A piece of a migration's work.
enum Job: Sendable {
    struct Folder: Sendable {
        var old: ItemReference
        var new: ItemReference
    }

    struct Item: Sendable {
        var item: PromiseCore.Item
        var folder: Folder
        /// What the new storage has of it already, at the same place.
        var known: MigratedItem?
        var reference: ReferenceRecord?
        /// What a link is to say; nil: what it says at the old storage.
        var target: [UInt8]?

        var path: [FileName] { folder.old.path + [item.name] }
        var oldReference: ItemReference { ItemReference(identifier: item.identifier, path: path) }
    }

    struct Result: Sendable {
        var record: MigratedItem
        /// False when there was nothing to do.
        var isNew: Bool
        var bytes: UInt64 = 0
        var bytesFromHere: UInt64 = 0
    }

    enum Outcome: Sendable {
        case listed(Folder, [PromiseCore.Item])
        case brought(Item, Result)
        case failed([FileName], ProviderError)
    }

    case folder(Folder)
    case item(Item)
}

/// Asks both storages for what a job takes. Has no state.
struct MigrationWorker: Sendable {
    let old: any Provider
    let new: any Provider
    let surroundings: Migration.Surroundings
    let readsBack: Bool

    /// How often passing trouble is met before an item is given up for this run.
    private static let attemptCountMax = 5
    /// A storage that says when it is to be asked again is asked again for so long: on a WebDAV server the
    /// locks of a run that was killed last half a minute.
    private static let patience = Duration.seconds(60)

    func perform(_ job: Job) async -> Job.Outcome {
        let path: [FileName]
        switch job {
        case .folder(let folder): path = folder.old.path
        case .item(let item): path = item.path
        }
        do throws(ProviderError) {
            return try await patiently { () async throws(ProviderError) in
                switch job {
                case .folder(let folder): return .listed(folder, try await list(folder.old, old))
                case .item(let item): return .brought(item, try await bring(item))
                }
            }
        } catch {
            return .failed(path, error)
        }
    }

    /// Tries again while the trouble may pass. `body` may be carried out several times.
    func patiently<Value>(
        _ body: () async throws(ProviderError) -> Value
    ) async throws(ProviderError) -> Value {
        var (attempt, waited) = (0, Duration.zero)
        while true {
            do throws(ProviderError) {
                return try await body()
            } catch {
                attempt += 1
                guard let pause = pause(after: error, attempt, waited) else { throw error }
                waited += pause
                try? await Task.sleep(for: pause)
            }
        }
    }

    private func pause(
        after problem: ProviderError, _ attempt: Int, _ waited: Duration
    ) -> Duration? {
        if Task.isCancelled { return nil }
        switch problem.code {
        case .retry:
            return attempt < MigrationWorker.attemptCountMax ? .milliseconds(200 << attempt) : nil
        case .retryAfter(let time):
            let isOver = waited >= MigrationWorker.patience
            return isOver ? nil : min(max(time, .milliseconds(200)), MigrationWorker.patience)
        default: return nil
        }
    }

    func list(
        _ folder: ItemReference, _ provider: any Provider
    ) async throws(ProviderError) -> [Item] {
        var items: [Item] = []
        var page: PageToken?
        var turns = PageTurns()
        repeat {
            let answer = try await provider.enumerateItems(in: folder, page: page)
            items += answer.items
            page = answer.next
            if let page { try turns.take(page, first: answer.items.first?.identifier) }
        } while page != nil
        return items
    }

    // MARK: One item

    private static let differs = ProviderError(
        .corrupted, "the new storage gives back other bytes than it was given")

    private func bring(_ job: Job.Item) async throws(ProviderError) -> Job.Result {
        var wanted = job.item
        if wanted.isGuess { wanted = try await old.item(for: job.oldReference) }
        if wanted.kind == .link { wanted.target = job.target ?? wanted.target }
        guard let known = job.known else { return try await make(wanted, of: job) }
        let isSameItem = known.old == wanted.identifier && known.parent == job.folder.old.identifier
        if wanted.kind == .folder {
            // What it says of itself is sent last.
            let isNew = !isSameItem || known.metadata != wanted.metadata
            return Job.Result(
                record: known.renewed(wanted, in: job.folder.old.identifier), isNew: isNew)
        }
        let isSameContent =
            isSameItem && known.version == job.item.version && known.target == wanted.target
        if isSameContent, known.metadata == wanted.metadata {
            return Job.Result(record: known, isNew: false)
        }
        do throws(ProviderError) {
            return try await change(known, to: wanted, of: job, hasContent: !isSameContent)
        } catch  where error.code == .notFound {
            return try await make(wanted, of: job)
        }
    }

    private func make(_ wanted: Item, of job: Job.Item) async throws(ProviderError) -> Job.Result {
        let item = NewItem(
            name: wanted.name, kind: wanted.kind, metadata: safe(wanted), target: wanted.target)
        guard wanted.kind == .file else {
            var made = try await make(item, nil, of: job)
            if wanted.kind == .link { made.target = wanted.target }
            return Job.Result(record: record(job, wanted, made), isNew: true)
        }
        let (source, isHere) = try await content(of: wanted, job)
        let made = try await make(item, source, of: job)
        try await compare(made, job, source)
        return Job.Result(
            record: record(job, wanted, made), isNew: true, bytes: source.size,
            bytesFromHere: isHere ? source.size : 0)
    }

    /// A folder must be open to what is to be put into it; it gets its mode last.
    private func safe(_ item: Item) -> Metadata {
        var metadata = item.metadata
        if item.kind == .folder { metadata.mode |= 0o700 }
        return metadata
    }

    private func record(_ job: Job.Item, _ wanted: Item, _ made: Item) -> MigratedItem {
        var item = job.item
        item.metadata = wanted.metadata
        return MigratedItem(
            item, in: job.folder.old.identifier, as: made, in: job.folder.new.identifier)
    }

    private func change(
        _ known: MigratedItem, to wanted: Item, of job: Job.Item, hasContent: Bool
    ) async throws(ProviderError) -> Job.Result {
        var changes = ItemChanges(metadata: wanted.metadata)
        let reference = job.reference(of: known)
        guard hasContent, wanted.kind == .file else {
            if hasContent { changes.target = wanted.target }
            var made = try await new.modify(
                reference, changes: changes, contents: nil,
                baseVersion: hasContent ? known.newVersion : nil)
            if wanted.kind == .link { made.target = wanted.target }
            return Job.Result(record: record(job, wanted, made), isNew: true)
        }
        let (source, isHere) = try await content(of: wanted, job)
        let made = try await new.modify(
            reference, changes: changes, contents: source, baseVersion: known.newVersion)
        try await compare(made, job, source)
        return Job.Result(
            record: record(job, wanted, made), isNew: true, bytes: source.size,
            bytesFromHere: isHere ? source.size : 0)
    }

    /// What is at the place already may be what a call whose answer got lost has made: a folder is
    /// taken, anything else when it is the same.
    private func make(
        _ item: NewItem, _ source: (any ContentSource)?, of job: Job.Item
    ) async throws(ProviderError) -> Item {
        do throws(ProviderError) {
            return try await new.create(item, in: job.folder.new, contents: source)
        } catch {
            guard error.code == .conflict,
                let found = try await list(job.folder.new, new).first(where: {
                    $0.name == item.name
                }),
                found.kind == item.kind
            else { throw error }
            switch item.kind {
            case .folder: return found
            case .link:
                guard found.target == item.target else { throw error }
                return found
            default:
                let reference = job.newReference(found.identifier)
                guard let source, found.size == source.size,
                    try await has(source, at: reference, found.version)
                else { throw error }
                return found
            }
        }
    }

    /// The bytes of an item's version; true when they were here.
    private func content(
        of item: Item, _ job: Job.Item
    ) async throws(ProviderError) -> (any ContentSource, Bool) {
        let surroundings = surroundings
        let local = await surroundings.pool.run { () throws(Never) in
            surroundings.localContent(item, job.path)
        }
        if let local, local.size == item.size { return (local, true) }
        let opened = await surroundings.pool.run { () throws(Never) in
            Result { () throws(Failure) in SharedDescriptor(try surroundings.scratch()) }
        }
        let file: SharedDescriptor
        do throws(Failure) {
            file = try opened.get()
        } catch {
            throw ProviderError(
                error.code == .storeFull ? .localDiskFull : .permanent, error.message)
        }
        try onDisk { () throws(SystemError) in
            try truncate(file.number, to: item.size, label: "migration.scratch.size")
        }
        let sink = FileSink(file, size: item.size)
        try await old.fetchContents(
            of: job.oldReference, version: item.version, range: nil, into: sink)
        guard sink.count == item.size else {
            throw ProviderError(
                .corrupted, "the old storage gave \(sink.count) of \(item.size) bytes")
        }
        return (ScratchFile(file: file, size: item.size), false)
    }

    private func compare(
        _ made: Item, _ job: Job.Item, _ source: any ContentSource
    ) async throws(ProviderError) {
        guard made.size == source.size else { throw MigrationWorker.differs }
        guard readsBack, source.size > 0 else { return }
        guard try await has(source, at: job.newReference(made.identifier), made.version) else {
            throw MigrationWorker.differs
        }
    }

    /// Whether that is what the new storage has there.
    private func has(
        _ source: any ContentSource, at reference: ItemReference, _ version: ContentVersion
    ) async throws(ProviderError) -> Bool {
        let sink = ComparingSink(source)
        do throws(ProviderError) {
            try await new.fetchContents(of: reference, version: version, range: nil, into: sink)
        } catch  where error.message == ComparingSink.differs.message {
            return false
        }
        return sink.isWhole
    }
}

extension Job.Item {
    func newReference(_ identifier: ItemIdentifier) -> ItemReference {
        ItemReference(identifier: identifier, path: folder.new.path + [item.name])
    }

    /// At the new storage.
    func reference(of record: MigratedItem) -> ItemReference { newReference(record.new) }
}
