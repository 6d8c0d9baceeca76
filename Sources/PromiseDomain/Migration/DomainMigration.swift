import Glibc
package import Logging
import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseKeyValue
package import PromiseMigration
import PromiseProvider
import PromiseSync
import PromiseSystem

/// Moves a domain that nobody has mounted to another storage: what `promisefs migrate` does.
package struct DomainMigration: Sendable {
    package struct Report: Sendable {
        package var from: String
        package var to: String
        /// False when the domain was there already.
        package var isMoved: Bool
        /// Another machine had brought everything there.
        package var isFollowing = false
        package var progress: Migration.Progress
        package var itemCount: Int
        /// What the new storage lacks, a sentence each.
        package var limitations: [String]
        /// What kept the domain where it is: nothing was switched.
        package var troubles: [Migration.Trouble]
    }

    package var domain: String
    package var stateFolder: [UInt8]
    package var provider: String
    package var login: Login?
    package var oldLogin: Login?
    /// The login of the domain that the Secret Service keeps is the new storage's, too.
    package var hasKeptLogin = true
    package var credentialsFile: [UInt8]?
    /// Of the new server, as `DomainConfiguration` has it.
    package var certificate: String?
    package var oldCertificate: String?
    package var readsBack = true

    /// What providers know of their servers, in the state folder.
    static let rememberedFiles = [
        "webdav-server.json", "webdav-uploads.json", "webdav-login.json", "s3-server.json", "s3-uploads.json",
        "s3-moves.json",
    ]
    /// What was killed may take a moment to let go of it.
    private static let lockPatience = Duration.seconds(3)
    static let connectionPatience = Duration.seconds(60)

    package init(domain: String, stateFolder: [UInt8], provider: String) {
        self.domain = domain
        self.stateFolder = stateFolder
        self.provider = provider
    }

    func file(_ name: String) -> [UInt8] { stateFolder + Array("/\(name)".utf8) }
    private var workFolder: [UInt8] { file("migration") }
    var logPath: [UInt8] { workFolder + Array("/log".utf8) }

    /// Throws a sentence when a storage is away, or when the domain cannot be moved at all. Going
    /// on with the same command is always right.
    package func run(
        logger: Logger, onProgress: @escaping @Sendable (Migration.Progress) -> Void
    ) async throws(Domain.StartFailure) -> Report {
        // Nobody mounts it meanwhile.
        let state = try await locked()
        defer { withExtendedLifetime(state) {} }
        let from = try knownProvider()
        let (old, new) = try (make(from, stateFolder, oldLogin), make(provider, nil, login))
        if new.name == from { return finished(from) }
        do throws(ProviderError) {
            try NestedStorages.demandApart(old.name, new.name)
            for storage in [old, new] {
                try await withDeadline(
                    DomainMigration.connectionPatience, "'\(storage.name)' did not answer"
                ) { () throws(ProviderError) in try await storage.connect() }
            }
            if let moved = try await recordToFollow(old, new) {
                return try await follow(moved, old, new)
            }
            let log = try prepareLog(old.name, new.name)
            let pool = BlockingPool(name: "migration", threads: 4)
            defer { pool.stop() }
            let (moved, troubles, progress) = try await bring(old, new, log, pool, onProgress)
            var report = Report(
                from: from, to: new.name, isMoved: troubles.isEmpty, progress: progress,
                itemCount: moved.items.count, limitations: new.limitations, troubles: troubles)
            if troubles.isEmpty {
                try checked { () throws(Failure) in
                    do throws(SystemError) { try log.noteTold() } catch { throw Failure(error) }
                }
                report.limitations += await tellOthers(moved, old, new)
                try switchOver(moved, old, new)
            }
            report.itemCount = moved.items.count
            return report
        } catch {
            throw Domain.StartFailure(error.message, exitStatus: DomainMigration.status(of: error))
        }
    }


    /// Looking makes no state folder.
    func locked() async throws(Domain.StartFailure) -> StateFolder {
        guard (try? FileStatus.of(file("index.sqlite"), label: "migration.index")) != nil else {
            throw Domain.StartFailure("there is no domain '\(domain)'", exitStatus: 3)
        }
        return try await StateFolder.lock(stateFolder, patience: DomainMigration.lockPatience)
    }

    // MARK: Before

    /// As `run` will have it; nil when nobody knows. Blocking.
    package var formerProvider: String? { try? knownProvider() }

    func knownProvider() throws(Domain.StartFailure) -> String {
        let known: String?
        do throws(Failure) {
            known = try Index.reading(file("index.sqlite")) { transaction throws(Failure) in
                try transaction.setting("provider.name")
            }
        } catch {
            throw Domain.StartFailure(error)
        }
        guard let known else {
            throw Domain.StartFailure(
                "'\(domain)' was never mounted, so there is nothing to migrate")
        }
        return known
    }

    func make(
        _ name: String, _ folder: [UInt8]?, _ login: Login?
    ) throws(Domain.StartFailure) -> any Provider {
        let logger = Logger(label: "promisefs")
        var choice = ProviderChoice(
            name: name, domain: domain, login: login, credentialsFile: credentialsFile,
            stateFolder: folder, certificate: folder == nil ? certificate : oldCertificate,
            logger: logger
        )
        choice.hasKeptLogin = folder != nil || hasKeptLogin
        return try choice.make()
    }

    private func prepareLog(_ from: String, _ to: String) throws(ProviderError) -> MigrationLog {
        let log: MigrationLog
        do throws(SystemError) {
            try makeFolders(workFolder, label: "migration.folder")
            log = try MigrationLog(path: logPath)
        } catch {
            throw ProviderError(
                .permanent, "the log of the migration cannot be kept: \(error.reason)")
        }
        if let heading = log.heading, heading.from != from || heading.to != to {
            throw ProviderError(
                .refused,
                "a migration from '\(heading.from)' to '\(heading.to)' was begun: go on with that one, or give "
                    + "it up with --abandon"
            )
        }
        let unanswered = try checked { () throws(Failure) in
            try ProviderChange(path: file("index.sqlite")).unansweredCount()
        }
        guard unanswered == 0 else {
            throw ProviderError(
                .refused,
                "\(unanswered == 1 ? "1 change was" : "\(unanswered) changes were") sent to '\(from)' and not answered: mount "
                    + "it, and unmount it with --wait"
            )
        }
        return log
    }

    func checked<Value>(
        _ body: () throws(Failure) -> Value
    ) throws(ProviderError) -> Value {
        do throws(Failure) {
            return try body()
        } catch {
            throw ProviderError(
                error.code == .storeFull ? .localDiskFull : .permanent, error.message)
        }
    }

    // MARK: Bringing

    private func bring(
        _ old: any Provider, _ new: any Provider, _ log: MigrationLog, _ pool: BlockingPool,
        _ onProgress: @escaping @Sendable (Migration.Progress) -> Void
    ) async throws(ProviderError) -> (Migration, [Migration.Trouble], Migration.Progress) {
        let (index, content) = try checked { () throws(Failure) in
            (try Index(path: file("index.sqlite")), try ContentStore(folder: file("content")))
        }
        defer { index.close() }
        let local = LocalContents(
            index: index, content: content,
            isByPlace: old.capabilities.contains(.placeIdentifiers))
        let surroundings = Migration.Surroundings(
            pool: pool, scratch: { () throws(Failure) in try content.scratch() },
            localContent: { local.content(of: $0, at: $1) },
            onProgress: onProgress)
        var migration = Migration(
            from: old, to: new, log: log, readsBack: readsBack, surroundings)
        try await migration.run()
        return (migration, migration.troubles, migration.progress)
    }

    // MARK: The switch

    private func switchOver(
        _ migration: Migration, _ old: any Provider, _ new: any Provider
    ) throws(ProviderError) {
        // They are of the old server, and can be learnt again.
        for name in DomainMigration.rememberedFiles {
            _ = try? unlink(file(name), label: "migration.forget")
        }
        ThumbnailStore(folder: file("thumbnails")).forgetProvider()
        try checked { () throws(Failure) in
            try keepRecords()
            let grants = try migratedGrants()
            let change = try ProviderChange(path: file("index.sqlite"))
            let known = try knownRoot()
            let agreed = try change.agreedItems(root: known)
            let byPlace = old.capabilities.contains(.placeIdentifiers)
            let renamings = DomainMigration.renamings(
                agreed, root: known, migration.items, byPlace ? migration.paths() : nil)
            let constant = ContentVersion("")
            let root = ProviderChange.Renaming(
                old: known, new: migration.newRoot.identifier, version: constant,
                newVersion: constant, target: nil)
            let names = DomainMigration.names(renamings + [root], byPlace ? nil : migration.items)
            try change.apply(
                renamings, to: new.name, root: root, grants: try grants.rows(for: new, new: names))
        }
        removeWorkFolder()
    }

    /// Values, attributes and moves that the old storage was not told of are told to the new one.
    /// Before the switch: a record that is begun anew is merged with what the old storage has, too.
    func keepRecords() throws(Failure) {
        for folder in ["values", "attributes", "moves"] {
            let files = ValueFiles(folder: file(folder))
            for application in files.applications() {
                // What cannot be read is for 'promisefs verify' to say.
                guard var store = (try? files.read(application)) ?? nil else { continue }
                store.beginAnew()
                try files.write(store)
            }
        }
    }

    func knownRoot() throws(Failure) -> ItemIdentifier {
        let known = try Index.reading(file("index.sqlite")) { transaction throws(Failure) in
            try transaction.setting("root.identifier")
        }
        guard let known else { throw Failure(.corrupted, "the index has no root folder") }
        return ItemIdentifier(known)
    }

    /// Where a storage knows places only, an item has a name of its own here, and is what the
    /// storage has at its place: `paths`.
    static func renamings(
        _ agreed: [ProviderChange.AgreedItem], root: ItemIdentifier,
        _ items: [ItemIdentifier: MigratedItem], _ paths: [[FileName]: ItemIdentifier]?
    ) -> [ProviderChange.Renaming] {
        var places = AgreedPlaces(agreed, root: root)
        return agreed.compactMap { item in
            let old =
                if let paths {
                    places.path(of: item.identifier).flatMap { paths[$0] }
                } else {
                    Optional(item.identifier)
                }
            guard let old, let brought = items[old] else { return nil }
            return ProviderChange.Renaming(
                old: item.identifier, new: brought.new, version: brought.version,
                newVersion: brought.newVersion,
                target: brought.kind == .link ? brought.target : nil)
        }
    }

    func removeWorkFolder() {
        _ = try? unlink(logPath, label: "migration.log.remove")
        _ = try? unlink(workFolder, isFolder: true, label: "migration.folder.remove")
    }

    /// What a run that was cut off behind the switch left.
    private func finished(_ name: String) -> Report {
        removeWorkFolder()
        return Report(
            from: name, to: name, isMoved: false, progress: Migration.Progress(), itemCount: 0,
            limitations: [], troubles: [])
    }

    static func status(of problem: ProviderError) -> Int32 {
        switch problem.code {
        case .offline, .retry, .retryAfter, .cancelled: 4
        case .authenticate, .refused: 5
        case .conflict: 6
        default: 1
        }
    }
}

/// Where items were when they were agreed on, from the root.
private struct AgreedPlaces {
    private var items: [ItemIdentifier: ProviderChange.AgreedItem] = [:]
    private var known: [ItemIdentifier: [FileName]]

    init(_ agreed: [ProviderChange.AgreedItem], root: ItemIdentifier) {
        known = [root: []]
        for item in agreed { items[item.identifier] = item }
    }

    mutating func path(of identifier: ItemIdentifier) -> [FileName]? {
        var names: [FileName] = []
        var current = identifier
        // No real path is this deep.
        for _ in 0..<4096 {
            if let above = known[current] {
                let path = above + names.reversed()
                known[identifier] = path
                return path
            }
            guard let item = items[current], let parent = item.parent else { return nil }
            names.append(item.name)
            current = parent
        }
        return nil
    }
}
