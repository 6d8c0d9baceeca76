import PromiseAccess
package import PromiseCore
import PromiseKeyValue
package import PromiseProvider
package import PromiseSystem

/// Brings all that one storage has to another one, so that a domain can go on there.
///
/// The old storage is only read, but for the record of where its domain went. It is gone through
/// again and again until a pass finds nothing new; then the new one is looked at, whether it has
/// everything and nothing else. What is done is in a log, so that a migration that was cut off goes
/// on.
///
/// **Threads.** One task has the state; up to `parallelCount` others ask the storages.
package struct Migration {
    /// What only its user can do.
    package struct Surroundings: Sendable {
        /// A file without a name for a content on its way; throws when the disk is full.
        package var scratch: @Sendable () throws(Failure) -> Descriptor
        /// What this machine has of an item's version at a path, so that it need not be fetched.
        package var localContent: @Sendable (Item, [FileName]) -> (any ContentSource)?
        /// Where what blocks is done.
        package var pool: BlockingPool
        package var onProgress: @Sendable (Progress) -> Void

        package init(
            pool: BlockingPool, scratch: @escaping @Sendable () throws(Failure) -> Descriptor,
            localContent: @escaping @Sendable (Item, [FileName]) -> (any ContentSource)?,
            onProgress: @escaping @Sendable (Progress) -> Void
        ) {
            self.pool = pool
            self.scratch = scratch
            self.localContent = localContent
            self.onProgress = onProgress
        }
    }

    package struct Progress: Sendable {
        /// Of the present pass.
        package var looked = 0
        package var brought = 0
        package var bytesBrought: UInt64 = 0
        /// Of these bytes, those that this machine had.
        package var bytesFromHere: UInt64 = 0
        package var pass = 0

        package init() {}
    }

    /// An item that could not be brought, by its path at the old storage.
    package struct Trouble: Sendable {
        package var path: [FileName]
        package var problem: ProviderError
        package var message: String { problem.message }
    }

    static let parallelCount = 8
    /// Passes over a storage that others go on changing.
    private static let passCountMax = 10

    let old: any Provider
    let new: any Provider
    let surroundings: Surroundings
    /// Whether contents are fetched from the new storage and compared.
    let readsBack: Bool
    let log: MigrationLog

    /// What the new storage has, by its place there: two names of one file are two of these.
    var places: [NewPlace: MigratedItem] = [:]
    /// One of each item that was brought, by the old identifier.
    package internal(set) var items: [ItemIdentifier: MigratedItem] = [:]
    /// Everything that was ever made at the new storage, as it was made last.
    var made: [ItemIdentifier: MigratedItem] = [:]
    var root = ItemReference(identifier: ItemIdentifier(""), path: [])
    package internal(set) var newRoot = ItemReference(identifier: ItemIdentifier(""), path: [])
    package internal(set) var progress = Progress()
    package internal(set) var troubles: [Trouble] = []
    /// References stand for items that have to be there first.
    var references: [Job.Item] = []
    /// What machines have told each other of moves, where the old storage knows places only.
    var moved = MovedPaths()
    /// Of the present pass.
    var seen: Set<NewPlace> = []
    /// Where the new storage has a file and the old one a folder by now, or the like.
    var obstacles: [ItemReference] = []

    package init(
        from old: any Provider, to new: any Provider, log: MigrationLog, readsBack: Bool,
        _ surroundings: Surroundings
    ) {
        self.old = old
        self.new = new
        self.log = log
        self.readsBack = readsBack
        self.surroundings = surroundings
        for item in log.items { note(item) }
    }

    /// Both are connected. Throws when a storage goes away, and for what makes all of it
    /// impossible; single items that cannot be brought are in `troubles`, and the domain must not
    /// go on there then.
    package mutating func run() async throws(ProviderError) {
        try await begin()
        repeat {
            progress.pass += 1
            guard progress.pass <= Migration.passCountMax else {
                throw ProviderError(
                    .retry,
                    "the old storage is changed all the time: end what changes it, and go on")
            }
            troubles = []
            let before = progress.brought
            try await pass()
            try await readMoves()
            try await bringReferences()
            try await removeObstacles()
            if progress.brought == before { break }
        } while troubles.isEmpty
        guard troubles.isEmpty else { return }
        places = places.filter { seen.contains($0.key) }
        items = [:]
        for item in places.values { items[item.old] = item }
        try await dressFolders()
        try await bringPrivateObjects()
        try await compareAll()
        try onDisk { () throws(SystemError) in try log.synchronize() }
    }

    private mutating func begin() async throws(ProviderError) {
        root = ItemReference(identifier: try await old.root().identifier, path: [])
        newRoot = ItemReference(identifier: try await new.root().identifier, path: [])
        if let heading = log.heading {
            guard heading.root == newRoot.identifier else {
                throw ProviderError(
                    .permanent, "'\(new.name)' is not the storage that this migration was begun to")
            }
            return try await goOn()
        }
        guard try await new.enumerateItems(in: newRoot, page: nil).items.isEmpty else {
            throw ProviderError(
                .conflict,
                "'\(new.name)' is not empty: a domain is migrated into an empty folder or bucket of its own"
            )
        }
        let heading = MigrationLog.Heading(from: old.name, to: new.name, root: newRoot.identifier)
        try onDisk { () throws(SystemError) in try log.begin(heading) }
    }

    /// The whole old storage, with everything in it that the new one does not have as it is.
    private mutating func pass() async throws(ProviderError) {
        progress.looked = 0
        (references, seen, obstacles) = ([], [], [])
        try await perform([.folder(Job.Folder(old: root, new: newRoot))])
    }

    var worker: MigrationWorker {
        MigrationWorker(old: old, new: new, surroundings: surroundings, readsBack: readsBack)
    }

    /// Performs jobs, and those that come of them, a few at a time.
    mutating func perform(_ jobs: [Job]) async throws(ProviderError) {
        var jobs = jobs
        var failure: ProviderError?
        let worker = worker
        await withTaskGroup(of: Job.Outcome.self) { group in
            var running = 0
            while true {
                while failure == nil, running < Migration.parallelCount, let job = jobs.popLast() {
                    do throws(ProviderError) {
                        try intend(job)
                    } catch {
                        failure = error
                        break
                    }
                    running += 1
                    group.addTask { await worker.perform(job) }
                }
                guard let outcome = await group.next() else { break }
                running -= 1
                do throws(ProviderError) {
                    jobs += try take(outcome)
                } catch {
                    failure = error
                    group.cancelAll()
                }
            }
        }
        if let failure { throw failure }
    }

    private func intend(_ job: Job) throws(ProviderError) {
        guard case .item(let item) = job, item.known == nil else { return }
        let place = NewPlace(parent: item.folder.new.identifier, name: item.item.name)
        try onDisk { () throws(SystemError) in try log.intend(place) }
    }

    /// What is to be done next.
    private mutating func take(_ outcome: Job.Outcome) throws(ProviderError) -> [Job] {
        switch outcome {
        case .listed(let folder, let children): return plan(children, of: folder)
        case .brought(let item, let result):
            if result.isNew {
                let record = result.record
                try onDisk { () throws(SystemError) in try log.add([record]) }
                note(record)
                progress.brought += 1
                progress.bytesBrought += result.bytes
                progress.bytesFromHere += result.bytesFromHere
                surroundings.onProgress(progress)
            }
            guard item.item.kind == .folder else { return [] }
            return [
                .folder(Job.Folder(old: item.oldReference, new: item.reference(of: result.record)))
            ]
        case .failed(let path, let problem):
            guard !Migration.endsAll(problem) else { throw problem }
            // It went, or was changed, behind the listing: the next pass finds it as it is. What is
            // listed and never there is named in the end.
            let isNews = [.notFound, .stale, .sourceChanged].contains(problem.code)
            if isNews, progress.pass < Migration.passCountMax {
                progress.brought += 1
                return []
            }
            troubles.append(Trouble(path: path, problem: problem))
            return []
        }
    }

    private mutating func note(_ item: MigratedItem) {
        places[item.place] = item
        items[item.old] = item
        made[item.new] = item
    }

    /// Whether going on with other items makes no sense.
    static func endsAll(_ problem: ProviderError) -> Bool {
        switch problem.code {
        case .offline, .authenticate, .outOfSpace, .localDiskFull, .cancelled: true
        default: false
        }
    }

    private mutating func plan(_ children: [Item], of folder: Job.Folder) -> [Job] {
        var jobs: [Job] = []
        for item in children where item.kind.isStorable {
            progress.looked += 1
            let place = NewPlace(parent: folder.new.identifier, name: item.name)
            seen.insert(place)
            var job = Job.Item(item: item, folder: folder, known: places[place])
            if let known = job.known, known.kind != item.kind {
                obstacles.append(job.reference(of: known))
            } else if item.kind == .link, let record = ReferenceRecord(target: item.target ?? []) {
                job.reference = record
                references.append(job)
            } else {
                jobs.append(.item(job))
            }
        }
        if progress.looked % 1_000 < children.count { surroundings.onProgress(progress) }
        return jobs
    }

    // MARK: References

    /// By which a place is found that was noted before its item was moved.
    private mutating func readMoves() async throws(ProviderError) {
        guard old.capabilities.contains(.placeIdentifiers), let objects = old.privateObjects,
            let name = PrivateName(.moves, "\(MovedPaths.store.text).json"),
            let object = try await objects.read(name)
        else { return }
        moved = MovedPaths(record: object.bytes)
    }

    /// What the old storage has of what was once at a path.
    func item(
        onceAt path: [FileName], _ paths: [[FileName]: ItemIdentifier]
    ) -> ItemIdentifier? { paths[moved.now(of: path) { paths[$0] != nil }] }

    private mutating func bringReferences() async throws(ProviderError) {
        guard !references.isEmpty else { return }
        let paths = old.capabilities.contains(.placeIdentifiers) ? paths() : [:]
        let jobs = references.map { job in
            var job = job
            if let record = job.reference { job.target = target(of: record, paths).target }
            return Job.item(job)
        }
        try await perform(jobs)
    }

    /// The same note, with what the item is called at the new storage.
    func target(
        of record: ReferenceRecord, _ paths: [[FileName]: ItemIdentifier]
    ) -> ReferenceRecord {
        // Of another storage, which stays where it is.
        if record.storage != nil { return record }
        var record = record
        record.key = key(record.key, paths)
        return record
    }

    /// Machines that share no identifiers find it by its path.
    func key(_ key: ItemKey, _ paths: [[FileName]: ItemIdentifier]) -> ItemKey {
        var key = key
        let old = key.machine == nil ? key.identifier : nil
        let item = old.flatMap { items[$0] } ?? self.item(onceAt: key.path, paths).flatMap { items[$0] }
        guard let item else { return key }
        key.machine = nil
        key.identifier =
            new.capabilities.contains(.placeIdentifiers) && !item.new.isNumber ? nil : item.new
        return key
    }

    /// Where the old storage has what it has.
    package func paths() -> [[FileName]: ItemIdentifier] {
        Migration.paths(of: places.values, root: root.identifier)
    }

    /// `items`: one for each name.
    package static func paths(
        of items: some Collection<MigratedItem>, root: ItemIdentifier
    ) -> [[FileName]: ItemIdentifier] {
        let folders = Dictionary(
            items.lazy.filter { $0.kind == .folder }.map { ($0.old, $0) }, uniquingKeysWith: { $1 })
        var known: [ItemIdentifier: [FileName]] = [root: []]
        func path(of item: MigratedItem, depth: Int) -> [FileName]? {
            // No real path is this deep.
            guard depth < 4096 else { return nil }
            if known[item.parent] == nil, let folder = folders[item.parent] {
                known[item.parent] = path(of: folder, depth: depth + 1)
            }
            return known[item.parent].map { $0 + [item.name] }
        }
        var result: [[FileName]: ItemIdentifier] = [:]
        for item in items {
            if let path = path(of: item, depth: 0) { result[path] = item.old }
        }
        return result
    }
}
