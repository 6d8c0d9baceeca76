import PromiseAccess
import PromiseCore
import PromiseIndex
import PromiseKeyValue
import PromiseMigration
import PromiseProvider

// What a storage says of itself: how references elsewhere call it, what its items were called
// before its domain was moved there, and where that has gone.

extension RecordVerification {
    func checkStorage(_ objects: any PrivateObjects) async throws(Failure) -> RecordFindings {
        var found = RecordFindings()
        let known = try index.read { transaction throws(Failure) in
            try transaction.setting(StorageIdentity.setting)
        }
        do throws(ProviderError) {
            let names = try await objects.list(.storage).sorted { $0.name < $1.name }
            for name in names {
                guard let object = try await read(name, objects, &found) else { continue }
                if name == StorageIdentity.place {
                    try await checkIdentity(object, known, objects, &found)
                } else if let loss = StoredRecord(name)?.loss(of: object.bytes) {
                    let problem = "\(name) at the provider cannot be used: \(loss)"
                    try await mend(object, name, problem, by: nil, objects, &found)
                }
            }
            if let known, !names.contains(StorageIdentity.place) {
                try await restore(known, objects, &found)
            }
        } catch {
            throw error.failure
        }
        return found
    }

    private func checkIdentity(
        _ object: PrivateObject, _ known: String?, _ objects: any PrivateObjects,
        _ found: inout RecordFindings
    ) async throws(ProviderError) {
        guard let identifier = StorageIdentity.identifier(in: object.bytes) else {
            let problem =
                "the storage's name at the provider, \(StorageIdentity.place), cannot be used"
                + (known == nil ? ": add the references from other domains again" : "")
            return try await mend(
                object, StorageIdentity.place, problem, by: known.map(StorageIdentity.record),
                objects, &found)
        }
        guard let known, known != identifier else { return }
        found.note(
            "the index knows the storage by another name than it has, \(StorageIdentity.place)",
            isRepairing: isRepairing
        ) { () throws(Failure) in
            try index.write { transaction throws(Failure) in
                try transaction.setSetting(StorageIdentity.setting, identifier)
            }
            return "the one that it has takes its place, from the next mount on"
        }
    }

    /// Somebody removed it behind the back of every machine.
    private func restore(
        _ known: String, _ objects: any PrivateObjects, _ found: inout RecordFindings
    ) async throws(ProviderError) {
        let problem = "the storage's name, \(StorageIdentity.place), is missing at the provider"
        guard isRepairing else { return found.problems.append(problem) }
        do throws(ProviderError) {
            _ = try await objects.write(
                StorageIdentity.record(of: known), to: StorageIdentity.place, base: nil)
            found.repaired.append(problem + "; it was written again")
        } catch {
            guard error.code == .conflict else { throw error }
            found.problems.append(problem + ", and somebody else writes it just now: try again")
        }
    }
}

/// A record that only the machine of a migration could write again. Those of later versions, with
/// names of their own, are left alone.
private enum StoredRecord {
    case former
    case moved(PrivateName)

    init?(_ name: PrivateName) {
        if name.name.hasPrefix(FormerNames.prefix) {
            self = .former
        } else if MovedRecord.isOne(name) {
            self = .moved(name)
        } else {
            return nil
        }
    }

    /// What is lost with it; nil when it can be used.
    func loss(of bytes: [UInt8]) -> String? {
        switch self {
        case .former:
            FormerNames.isUsable(piece: bytes)
                ? nil : "references from before a migration find their documents by their paths alone"
        case .moved(let name):
            MovedRecord.isUsable(bytes, name)
                ? nil : "machines that have this storage mounted cannot follow the domain"
        }
    }
}

extension PrivateName.Kind {
    /// What is kept under the name of an application.
    func record(of application: Key) -> String {
        switch self {
        case .values: "the values of \(application)"
        case .containers: "the container's record of \(application)"
        case .attributes: "the attributes of items"
        case .moves: "the notes of what was moved"
        case .storage, .pictures, .checks: "the record \(application)"
        }
    }
}
