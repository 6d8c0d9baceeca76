import PromiseCore
import PromiseMigration
import PromiseProvider
import PromiseSystem

extension DomainMigration {
    /// What there was to be given up.
    package enum Abandonment: Hashable, Sendable {
        case nothing
        case begun
        /// The old storage said already that the domain is at the new one, and does so no more. A
        /// machine that has followed meanwhile is there.
        case told(from: String, to: String)
        /// Nothing: the domain is at the new storage.
        case moved(to: String)
    }

    /// Gives up a migration that was begun. What the new storage has of it stays there. The old
    /// storage is asked only where it may tell other machines of it; throws a sentence when it is
    /// away then, and nothing is given up.
    package func abandon() async throws(Domain.StartFailure) -> Abandonment {
        let state = try await locked()
        defer { withExtendedLifetime(state) {} }
        guard (try? FileStatus.of(logPath, label: "migration.log.look")) != nil else {
            return .nothing
        }
        var result = Abandonment.begun
        // One that cannot be read is given up all the same.
        if let log = try? MigrationLog(path: logPath), let heading = log.heading {
            if try knownProvider() == heading.to {
                result = .moved(to: heading.to)
            } else if log.isTold {
                try await takeBack(heading)
                result = .told(from: heading.from, to: heading.to)
            }
        }
        removeWorkFolder()
        return result
    }

    private func takeBack(_ heading: MigrationLog.Heading) async throws(Domain.StartFailure) {
        let old = try make(heading.from, stateFolder, oldLogin)
        do throws(ProviderError) {
            try await withDeadline(
                DomainMigration.connectionPatience, "'\(old.name)' did not answer"
            ) { () throws(ProviderError) in try await old.connect() }
            guard let objects = old.privateObjects,
                let record = try await MovedRecord.read(objects), record.leads(to: heading.to)
            else { return }
            try await MovedRecord.remove(from: objects)
        } catch {
            throw Domain.StartFailure(
                "'\(heading.from)' may say already that the domain is at '\(heading.to)', and cannot "
                    + "be made to say so no more: \(error.message)",
                exitStatus: DomainMigration.status(of: error))
        }
    }
}
