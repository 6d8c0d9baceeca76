package import PromiseCore
package import PromiseIndex

/// Work that waits for a folder to be made at the provider.
///
/// It is looked at again every few seconds and comes here again each time: what has not come for long
/// waits no more, as that of a folder that was removed before it was made.
package struct BlockedWork {
    private static let goneAfter = Duration.seconds(60)

    private struct Waiting {
        var subjects: Set<Pending.Subject> = []
        var last: Duration
    }

    private var folders: [NodeID: Waiting] = [:]
    private var trimmed = Duration.zero

    package init() {}

    /// Something waits for a folder to be made.
    static func note(_ subject: Pending.Subject, on folder: NodeID, _ turn: inout Turn) {
        let now = turn.now.uptime
        turn.remember { $0.operations.blocked.add(subject, on: folder, at: now) }
    }

    /// The folder or one above it that was removed and made anew, where the answer to that is on its way: what
    /// was made in the new one meanwhile is not lost with the one before.
    static func folderBeingMade(
        _ folder: NodeID, _ transaction: borrowing Transaction
    ) throws(Failure) -> NodeID? {
        var current = folder
        // No real path is this deep.
        for _ in 0..<4096 where current != .root {
            guard let entry = try transaction.entries(of: current).first else { return nil }
            if entry.identifier == nil {
                return try transaction.creationsSent(for: entry.id).isEmpty ? nil : current
            }
            current = entry.parent
        }
        return nil
    }

    package var count: Int { folders.count }

    package mutating func add(_ subject: Pending.Subject, on folder: NodeID, at now: Duration) {
        if now - trimmed >= BlockedWork.goneAfter {
            trimmed = now
            folders = folders.filter { now - $0.value.last < BlockedWork.goneAfter }
        }
        folders[folder, default: Waiting(last: now)].subjects.insert(subject)
        folders[folder]?.last = now
    }

    /// What waits for the folder.
    package func subjects(of folder: NodeID) -> Set<Pending.Subject> {
        folders[folder]?.subjects ?? []
    }

    /// It has been made.
    package mutating func remove(_ folder: NodeID) { folders[folder] = nil }
}
