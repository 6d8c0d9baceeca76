import PromiseCore
import PromiseIndex
import Synchronization

/// How far fsync reaches in a folder and below: the attribute `user.promisefs.fsync` of the nearest folder that has it.
/// Thread-safe.
final class FsyncReach: Sendable {
    enum Reach: String {
        /// The disk of this machine.
        case local
        /// The provider has what was synced.
        case provider
    }

    static let name = Array("user.promisefs.fsync".utf8)
    private static let setting = "fsync.reach"

    /// Nil until somebody asked the index. Most domains have none, and no folder is searched.
    private let areThere = Mutex<Bool?>(nil)

    /// It is the disk everywhere, as far as is known without asking.
    var isLocalEverywhere: Bool { areThere.withLock { $0 == false } }

    static func isName(_ name: [UInt8]) -> Bool { name == FsyncReach.name }

    /// Of a node by its first name; what has no name reaches the disk alone.
    func reach(of id: NodeID, _ transaction: borrowing Transaction) throws(Failure) -> Reach {
        guard try isAnySet(transaction) else { return .local }
        var node = id
        while true {
            if let value = try transaction.attribute(FsyncReach.name, of: node) {
                return Reach(rawValue: String(decoding: value, as: UTF8.self)) ?? .local
            }
            guard node != .root, let entry = try transaction.entries(of: node).first else { return .local }
            node = entry.parent
        }
    }

    /// Before the attribute is stored. If that is not committed, every look costs a little.
    func note(_ value: [UInt8], of node: Node, _ transaction: borrowing Transaction) throws(Failure) {
        guard node.kind == .folder else { throw Failure(.invalid, "what fsync means is said of a folder") }
        guard Reach(rawValue: String(decoding: value, as: UTF8.self)) != nil else {
            throw Failure(.invalid, "fsync means 'local' or 'provider'")
        }
        areThere.withLock { $0 = true }
        if try transaction.setting(FsyncReach.setting) == nil {
            try transaction.setSetting(FsyncReach.setting, "yes")
        }
    }

    private func isAnySet(_ transaction: borrowing Transaction) throws(Failure) -> Bool {
        if let known = areThere.withLock({ $0 }) { return known }
        let found = try transaction.setting(FsyncReach.setting) != nil
        // One that was set meanwhile stays known.
        areThere.withLock { if $0 == nil { $0 = found } }
        return found
    }
}
