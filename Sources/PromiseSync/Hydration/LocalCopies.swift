import Glibc
import PromiseContent
package import PromiseCore
import PromiseProvider
package import PromiseSystem
import Synchronization

/// Files outside of the mount that are what an item is at the provider, by size and time: content
/// is taken from them instead of being fetched.
///
/// **Threads.** Any; `state` is a leaf.
package final class LocalCopies: Sendable {
    private struct Offer {
        var path: [UInt8]
        var status: FileStatus
        var pool: BlockingPool
    }

    private let content: ContentStore
    private let state = Mutex<[NodeID: Offer]>([:])

    init(content: ContentStore) { self.content = content }

    /// Until it is withdrawn. `pool`: where it is read.
    package func offer(_ path: [UInt8], _ status: FileStatus, for node: NodeID, pool: BlockingPool) {
        state.withLock { $0[node] = Offer(path: path, status: status, pool: pool) }
    }

    package func withdraw(_ node: NodeID) { state.withLock { $0[node] = nil } }

    /// False when there is none, or when it is not any more what was offered: nothing was taken
    /// then.
    func bring(_ range: ByteRange, of node: NodeID, into sink: HydrationSink) async -> Bool {
        guard let offer = state.withLock({ $0[node] }) else { return false }
        return await offer.pool.run { () throws(Never) in self.bring(range, from: offer, into: sink) }
    }

    /// Through a file of our own: what changes meanwhile is seen before any of it counts.
    private func bring(_ range: ByteRange, from offer: Offer, into sink: HydrationSink) -> Bool {
        do {
            let source = try Descriptor.open(
                offer.path, flags: O_RDONLY | O_NOFOLLOW | O_NONBLOCK, label: "adopt.open")
            guard try isAsOffered(source, offer) else { return false }
            let copy = try content.scratch()
            let done = try copyBytes(
                from: source.number, at: range.lower, to: copy.number, at: 0, count: range.count,
                label: "adopt.copy")
            guard done == range.count, try isAsOffered(source, offer) else { return false }
            return try sink.uncounted.copy(from: copy.number, at: 0, to: range.lower, count: done) == done
        } catch {
            return false
        }
    }

    private func isAsOffered(
        _ file: borrowing Descriptor, _ offer: Offer
    ) throws(SystemError) -> Bool {
        let status = try FileStatus.of(descriptor: file.number, label: "adopt.look")
        return status.kind == .file && status.size == offer.status.size
            && status.modificationTime == offer.status.modificationTime
            && status.changeTime == offer.status.changeTime && status.inode == offer.status.inode
    }
}
