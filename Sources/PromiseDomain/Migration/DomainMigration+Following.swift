import Glibc
import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseMigration
import PromiseProvider
import PromiseSync
import PromiseSystem

// Of several machines one moves the domain, and the others follow: everything is at the new storage
// already, and the old one says what is what there.

extension DomainMigration {
    /// Nil unless another machine has moved the domain to just that storage.
    func recordToFollow(
        _ old: any Provider, _ new: any Provider
    ) async throws(ProviderError) -> MovedRecord? {
        guard try !isBegun(), let objects = old.privateObjects,
            let record = try await MovedRecord.read(objects), record.leads(to: new.name)
        else { return nil }
        return record
    }

    /// Whether anything was brought from here. A call that was refused, as another machine was bringing
    /// everything there at that moment, leaves a log without a word.
    private func isBegun() throws(ProviderError) -> Bool {
        guard (try? FileStatus.of(logPath, label: "migration.log.begun")) != nil else { return false }
        return try checked { () throws(Failure) in
            do throws(SystemError) {
                return try MigrationLog(path: logPath).heading != nil
            } catch {
                throw Failure(error)
            }
        }
    }

    func follow(
        _ record: MovedRecord, _ old: any Provider, _ new: any Provider
    ) async throws(ProviderError) -> Report {
        guard let objects = old.privateObjects else {
            throw ProviderError(.permanent, "'\(old.name)' does not say what was moved")
        }
        let root = try await new.root().identifier
        guard root == record.root else {
            throw ProviderError(
                .conflict, "'\(new.name)' is not the storage that the domain was moved to")
        }
        let brought = try await record.items(objects)
        let items = Dictionary(brought.map { ($0.old, $0) }, uniquingKeysWith: { first, _ in first })
        let byPlace = old.capabilities.contains(.placeIdentifiers)
        let paths = byPlace ? Migration.paths(of: brought, root: record.oldRoot) : nil
        for name in DomainMigration.rememberedFiles {
            _ = try? unlink(file(name), label: "migration.followed")
        }
        let changes = LaterChanges(index: file("index.sqlite"), items: items, paths: paths)
        let suspects = try checked { () throws(Failure) in try changes.suspects() }
        let later = try await LaterChanges.confirmed(suspects, by: old)
        let removals = LaterRemovals(index: file("index.sqlite"), items: items, paths: paths)
        let removed = try checked { () throws(Failure) in try removals.suspects() }
        let gone = try await LaterRemovals.confirmed(removed, by: old)
        ThumbnailStore(folder: file("thumbnails")).forgetProvider()
        let left = try checked { () throws(Failure) in
            let left = try changes.keep(later)
            try removals.keep(gone)
            try keepRecords()
            let grants = try migratedGrants()
            let change = try ProviderChange(path: file("index.sqlite"))
            let known = try knownRoot()
            let renamings = DomainMigration.renamings(
                try change.agreedItems(root: known), root: known, items, paths)
            let constant = ContentVersion("")
            let top = ProviderChange.Renaming(
                old: known, new: root, version: constant, newVersion: constant, target: nil)
            let names = DomainMigration.names(renamings + [top], byPlace ? nil : items)
            try change.apply(
                renamings, to: new.name, root: top, grants: try grants.rows(for: new, new: names),
                forgetsUnanswered: true)
            return left
        }
        removeWorkFolder()
        var report = Report(
            from: old.name, to: new.name, isMoved: true, progress: Migration.Progress(),
            itemCount: brought.count, limitations: new.limitations, troubles: [])
        report.isFollowing = true
        report.limitations += left.map {
            "'\($0)' was changed at '\(old.name)' behind the move, and is only there: copy it from there"
        }
        return report
    }

    /// The old storage says where the domain is, and the new one no more that it left once. Returns a
    /// sentence when other machines cannot be told.
    func tellOthers(
        _ migration: Migration, _ old: any Provider, _ new: any Provider
    ) async -> [String] {
        do throws(ProviderError) {
            if let there = new.privateObjects { try await MovedRecord.remove(from: there) }
            guard let objects = old.privateObjects else {
                return ["other machines are not told of it: '\(old.name)' keeps nothing for them"]
            }
            guard MovedRecord.canName(new.name) else {
                return ["other machines are not told of it: '\(new.name)' is what a program serves here"]
            }
            try await MovedRecord.write(migration, to: objects)
            return []
        } catch {
            return ["other machines are not told of it: \(error.message)"]
        }
    }
}
