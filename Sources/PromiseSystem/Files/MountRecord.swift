import CPromiseSystem
import Glibc
package import PromiseCore
import Synchronization

/// What a successor of this daemon must know of the mount beyond the index: which handles and backing files the kernel has,
/// and which requests were carried out and perhaps not answered. Memory of the holder's: it survives a kill, not a power cut.
///
/// Thread-safe. Unchecked because of the pointer: it is constant, and all use of what is behind it is under `free`'s lock, but
/// for the number of handles, which is atomic, and the transport's page, which one session uses.
package final class MountRecord: @unchecked Sendable {
    /// A handle, or with handle 0 a backing file that is registered with the kernel; writable: that may be mapped so.
    package struct Open: Sendable, Equatable {
        package var handle: UInt64
        package var node: NodeID
        package var generation: Generation
        /// The kernel's number of the request that opened it.
        package var request: UInt64
        package var backing: BackingID?
        package var isWritable: Bool

        package init(
            handle: UInt64, node: NodeID, generation: Generation, request: UInt64 = 0, backing: BackingID?, isWritable: Bool
        ) {
            self.handle = handle
            self.node = node
            self.generation = generation
            self.request = request
            self.backing = backing
            self.isWritable = isWritable
        }
    }

    /// Where something open is noted; nil where there was no room, and a successor will not know of it.
    package typealias Position = UInt32

    private let memory: OpaquePointer
    /// Positions below the end that are not in use.
    private let free = Mutex<[Position]>([])

    /// What the last daemon noted and did not take back.
    package let inherited: [(position: Position, open: Open)]
    private let inheritedRequests: [UInt64: UInt64]

    /// Maps what the holder keeps. What it does not understand, or is told not to take over, begins empty.
    package init(descriptor: CInt, takesOver: Bool) throws(SystemError) {
        guard let memory = cps_record_map(descriptor) else { throw SystemError(errno: errno, label: "record.map") }
        self.memory = memory
        guard takesOver, cps_record_is_known(memory) else {
            cps_record_reset(memory)
            inherited = []
            inheritedRequests = [:]
            return
        }
        (inherited, inheritedRequests) = MountRecord.read(memory)
        let used = Set(inherited.map(\.position))
        let end = cps_record_open_end(memory)
        free.withLock { $0 = (0..<end).filter { !used.contains($0) } }
    }

    private static func read(_ memory: OpaquePointer) -> ([(Position, Open)], [UInt64: UInt64]) {
        var opens: [(Position, Open)] = []
        var found = cps_open()
        for position in 0..<cps_record_open_end(memory) where cps_record_open_at(memory, position, &found) {
            let open = Open(
                handle: found.handle, node: NodeID(found.node), generation: Generation(found.generation), request: found.request,
                backing: found.backing > 0 ? BackingID(rawValue: found.backing) : nil, isWritable: found.is_writable != 0)
            opens.append((position, open))
        }
        var requests: [UInt64: UInt64] = [:]
        var request: UInt64 = 0
        var body: UInt64 = 0
        for position in 0..<UInt32(CPS_RECORD_CARRIED_MAX) where cps_record_carried_at(memory, position, &request, &body) {
            requests[request] = body
        }
        return (opens, requests)
    }

    /// A page that the transport keeps what it has settled with the kernel in. Zeros when there is nothing to take over.
    package var session: UnsafeMutableRawPointer { UnsafeMutableRawPointer(cps_record_session(memory)) }

    // MARK: Open files

    /// A number that no handle of this mount had before.
    package func nextHandle() -> UInt64 { cps_record_next_handle(memory) }

    package func note(_ open: Open) -> Position? {
        free.withLock { free in
            let position = free.popLast() ?? cps_record_open_end(memory)
            guard position < CPS_RECORD_OPEN_MAX else { return nil }
            var value = cps_open(
                handle: open.handle, node: open.node.rawValue, generation: open.generation.rawValue, request: open.request,
                backing: open.backing?.rawValue ?? 0, is_writable: open.isWritable ? 1 : 0)
            cps_record_set_open(memory, position, &value)
            return position
        }
    }

    package func clear(_ position: Position) {
        free.withLock { free in
            cps_record_clear_open(memory, position)
            free.append(position)
        }
    }

    // MARK: Requests

    /// Inside the index's transaction: the request is carried out if the index keeps the body with this number.
    package func carry(_ request: UInt64, body: UInt64) { free.withLock { _ in cps_record_carry(memory, request, body) } }

    /// The transaction came to nothing.
    package func withdraw(_ request: UInt64) { free.withLock { _ in cps_record_withdraw(memory, request) } }

    /// Requests that the last daemon carried out: the index, as it was opened, ends with the body `lastBody`. Forgets the
    /// others: the next body gets the number of the one that was lost.
    package func carriedOut(lastBody: UInt64) -> Set<UInt64> {
        for (request, body) in inheritedRequests where body > lastBody { withdraw(request) }
        return Set(inheritedRequests.filter { $0.value <= lastBody }.keys)
    }
}
