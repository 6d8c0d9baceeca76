import PromiseCore
import PromiseIndex
import PromiseSystem

/// The numbers of the entries of folders that are being listed, so that not every page of a large folder goes through all
/// of it. Only that: a reader whose folder was dropped here goes on where it was, after the numbers were read again.
final class FolderOrders: Sendable {
    fileprivate struct State {
        var orders: [NodeID: (numbers: [EntryID], isWhole: Bool)] = [:]
        /// Oldest first.
        var queue: [NodeID] = []
        var count = 0
    }

    private static let folderCountMax = 256
    /// 16 MiB. A folder that is larger by itself is kept alone.
    private static let entryCountMax = 2_000_000

    private let state = RankedMutex(.leaf, State())

    /// `isWhole`: all of the folder was known when its numbers were read.
    func order(of folder: NodeID) -> (numbers: [EntryID], isWhole: Bool)? { state.withLock { $0.orders[folder] } }

    func keep(_ order: [EntryID], isWhole: Bool, of folder: NodeID) {
        state.withLock { state in
            state.drop(folder)
            while state.orders.count >= Self.folderCountMax || state.count + order.count > Self.entryCountMax {
                guard let oldest = state.queue.first else { break }
                state.drop(oldest)
            }
            state.orders[folder] = (order, isWhole)
            state.queue.append(folder)
            state.count += order.count
        }
    }

    /// More has become known of a folder, all of which comes after what was known. Nothing of it is kept twice.
    func append(_ more: [EntryID], to folder: NodeID) {
        state.withLock { state in
            guard let last = state.orders[folder]?.numbers.last else { return }
            let news = more.drop { $0.rawValue <= last.rawValue }
            state.orders[folder]?.numbers.append(contentsOf: news)
            state.count += news.count
        }
    }

    /// A reader is at the end.
    func drop(_ folder: NodeID) { state.withLock { $0.drop(folder) } }
}

extension FolderOrders.State {
    fileprivate mutating func drop(_ folder: NodeID) {
        guard let order = orders.removeValue(forKey: folder) else { return }
        count -= order.numbers.count
        queue.removeAll { $0 == folder }
    }
}
