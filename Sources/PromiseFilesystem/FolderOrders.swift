import PromiseCore
import PromiseIndex
import Synchronization

/// The numbers of the entries of folders that are being listed, so that not every page of a large folder goes through all
/// of it. Only that: a reader whose folder was dropped here goes on where it was, after the numbers were read again.
final class FolderOrders: Sendable {
    fileprivate struct State {
        var orders: [NodeID: [EntryID]] = [:]
        /// Oldest first.
        var queue: [NodeID] = []
        var count = 0
    }

    private static let folderCountMax = 256
    /// 16 MiB. A folder that is larger by itself is kept alone.
    private static let entryCountMax = 2_000_000

    private let state = Mutex(State())

    func order(of folder: NodeID) -> [EntryID]? { state.withLock { $0.orders[folder] } }

    func keep(_ order: [EntryID], of folder: NodeID) {
        state.withLock { state in
            state.drop(folder)
            while state.orders.count >= Self.folderCountMax || state.count + order.count > Self.entryCountMax {
                guard let oldest = state.queue.first else { break }
                state.drop(oldest)
            }
            state.orders[folder] = order
            state.queue.append(folder)
            state.count += order.count
        }
    }

    /// A reader is at the end.
    func drop(_ folder: NodeID) { state.withLock { $0.drop(folder) } }
}

extension FolderOrders.State {
    fileprivate mutating func drop(_ folder: NodeID) {
        guard let order = orders.removeValue(forKey: folder) else { return }
        count -= order.count
        queue.removeAll { $0 == folder }
    }
}
