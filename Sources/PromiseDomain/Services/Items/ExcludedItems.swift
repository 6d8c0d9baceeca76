import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem

extension PendingWork {
    /// What stays on this machine, for people who look for it at the provider.
    static func excluded(
        below scope: NodeID?, limit: Int, _ transaction: borrowing Transaction
    ) throws(Failure) -> [PendingWork] {
        let prefix = try scope.flatMap { scope throws(Failure) in try transaction.path(of: scope) } ?? []
        var result: [PendingWork] = []
        for entry in try transaction.excludedEntries(limit: limit) {
            guard let node = try transaction.node(entry.node), let folder = try transaction.path(of: entry.parent)
            else { continue }
            let path = folder + [entry.name]
            guard path.starts(with: prefix) else { continue }
            result.append(
                PendingWork(
                    kind: .excluded, node: node.id, path: path, isRunning: false, size: node.size, progress: nil,
                    since: node.changeTime, attempts: 0, error: nil))
        }
        return result
    }
}

extension PendingWork {
    package var isToBeSent: Bool { kind != .download && kind != .list }

    /// Folders that the provider did not show: what is in them is not known, and nothing of it is followed.
    static func unlisted(by engine: SyncEngine, _ index: Index) throws(Failure) -> [PendingWork] {
        let troubles = engine.folderTroubles.folders
        if troubles.isEmpty { return [] }
        return try index.read { transaction throws(Failure) in
            var result: [PendingWork] = []
            for (folder, trouble) in troubles.sorted(by: { $0.key < $1.key }) {
                guard let path = try transaction.path(of: folder) else { continue }
                result.append(
                    PendingWork(
                        kind: .list, node: folder, path: path, isRunning: false, size: 0, progress: nil,
                        since: trouble.since, attempts: trouble.attempts, error: trouble.failure.message))
            }
            return result
        }
    }
}

extension DomainStatus {
    /// What nobody works on: items that stay here, and documents whose conflicts wait for somebody to decide; folders that
    /// could not be listed; and how much room is left for all that.
    mutating func countApart(in index: Index, _ engine: SyncEngine) {
        engine.noteStatusAsked()
        let counts = try? index.read { transaction throws(Failure) in try transaction.countsApart() }
        if let counts { (excluded, conflicts) = counts }
        unlisted = engine.folderTroubles.folders.count
        diskAvailable = roomLeft(at: stateFolder)
    }
}
