import Logging
package import PromiseCore
import PromiseIndex

/// Folders that the provider did not show when they were listed last, and why. Lost with the process: a successor meets them
/// again.
package struct FolderTroubles: Sendable {
    package struct Trouble: Sendable {
        package var failure: Failure
        package var since: Timestamp
        package var attempts: Int
    }

    /// One that was listed before is tried again after this long. Nobody who looks at the provider waits for that.
    static let pause = Duration.seconds(15)
    /// What waits for a look at a folder does not wait for more looks that fail.
    private static let patience = 3
    /// More are not remembered.
    static let countMax = 1_000

    package private(set) var folders: [NodeID: Trouble] = [:]

    /// True when it is news.
    mutating func note(_ folder: NodeID, _ failure: Failure, at now: Timestamp) -> Bool {
        if let known = folders[folder] {
            folders[folder]?.attempts += 1
            folders[folder]?.failure = failure
            return known.failure.message != failure.message
        }
        if folders.count < FolderTroubles.countMax {
            folders[folder] = Trouble(failure: failure, since: now, attempts: 1)
        }
        return true
    }

    mutating func clear(_ folder: NodeID) { folders[folder] = nil }

    /// Why a folder is not looked at in time for whoever waits for that; nil: it may be.
    func hopeless(_ folder: NodeID) -> Failure? {
        guard let trouble = folders[folder], trouble.attempts >= FolderTroubles.patience
        else { return nil }
        return trouble.failure
    }

    /// Of the first of them, for whoever wants to know that all was looked at; nil: there is none.
    fileprivate func failure(in index: Index) throws(Failure) -> Failure? {
        guard let (folder, trouble) = folders.min(by: { $0.key < $1.key }) else { return nil }
        let names = try index.read { transaction throws(Failure) in try transaction.path(of: folder) }
        guard let names else { return nil }
        let path = names.isEmpty ? [UInt8(ascii: "/")] : names.flatMap { [UInt8(ascii: "/")] + $0.bytes }
        let more = folders.count == 1 ? "" : " (and \(folders.count - 1) more, see 'promisefs pending')"
        let message = trouble.failure.message
        let what = "the folder '\(escapedForDisplay(path))' cannot be listed"
        return Failure(
            trouble.failure.code == .timedOut ? .offline : .refused,
            message.contains("cannot be listed") ? message + more : "\(what)\(more): \(message)")
    }
}

extension SyncEngine {
    package func folderFailure() throws(Failure) -> Failure? { try folderTroubles.failure(in: index) }
}

extension Listings {
    static func noteTrouble(_ folder: NodeID, _ failure: Failure, _ turn: inout Turn) {
        var troubles = turn.memory.listings.troubles
        if troubles.note(folder, failure, at: turn.now.time) {
            turn.log(.warning, "a folder cannot be listed", reason: failure.message)
        }
        turn.remember { [troubles] in $0.listings.troubles = troubles }
    }

    static func clearTrouble(_ folder: NodeID, _ turn: inout Turn) {
        guard turn.memory.listings.troubles.folders[folder] != nil else { return }
        turn.remember { $0.listings.troubles.clear(folder) }
    }

    /// Somebody wants to know how it is now. Those that were listed once are tried again by themselves.
    static func tryTroubled(_ turn: inout Turn, _ transaction: borrowing Transaction) throws(Failure) {
        for folder in turn.memory.listings.troubles.folders.keys.sorted() {
            let node = try transaction.node(folder)
            let identifier = try turn.identifier(of: folder, transaction)
            guard let node, node.linkCount > 0, let identifier else {
                clearTrouble(folder, &turn)
                continue
            }
            guard !node.isPopulated, turn.memory.listings.running[folder] == nil else { continue }
            try tryAgain(folder, identifier, &turn, transaction)
        }
    }
}
