import CFuse
import CFuseTransport
import Logging
import PromiseCore
package import PromiseFilesystem
import Synchronization

/// What every operation of one session needs, reached through libfuse's user data. Lives from before the mount until no
/// thread and no reply can refer to the session any more.
final class MountContext: Sendable {
    let filesystem: any FileSystemOperations
    let trace: RequestTrace
    let logger: Logger
    let parked = ParkingLot()
    /// Nil: processors sleep as they like.
    let latency: ProcessorLatency?
    /// Requests whose `Reply` has not been sent.
    let unanswered = Atomic<Int>(0)
    private let failures = Mutex<[Failure.Code: UInt64]>([:])

    init(
        filesystem: any FileSystemOperations, trace: RequestTrace = RequestTrace(), latency: ProcessorLatency? = nil,
        logger: Logger
    ) {
        self.filesystem = filesystem
        self.trace = trace
        self.latency = latency
        self.logger = logger
    }

    /// The context of the session that a request came in by.
    static func of(_ request: OpaquePointer) -> MountContext {
        // Unretained: the session holds a reference until after its last request has been freed.
        Unmanaged<MountContext>.fromOpaque(ct_owner(transport(of: request))).takeUnretainedValue()
    }

    /// The transport that a request came in by: libfuse's user data.
    static func transport(of request: OpaquePointer) -> OpaquePointer { OpaquePointer(fuse_req_userdata(request)!) }

    /// The one exit of failures: counts, logs once, and gives the errno to reply with.
    func errorNumber(of failure: Failure, _ operation: FuseOperation, node: NodeID) -> CInt {
        let number = failure.code.errorNumber
        failures.withLock { $0[failure.code, default: 0] += 1 }
        logger.log(
            level: failure.code.logLevel, "request failed",
            metadata: ["op": "\(operation.rawValue)", "node": "\(node)", "errno": "\(number)", "reason": "\(failure.message)"])
        return number
    }

    /// How often requests have failed, by code.
    var failureCounts: [Failure.Code: UInt64] { failures.withLock { $0 } }
}

/// The parked requests that can be interrupted, by a ticket that libfuse hands back. Thread-safe.
///
/// A ticket is `entering` while libfuse is told of it, which may already bring the interruption; then `waiting`.
package final class ParkingLot: Sendable {
    private enum Place {
        case entering
        case interrupted
        case waiting(ParkedRequest)
    }

    private struct State {
        var next: UInt = 1
        var places: [UInt: Place] = [:]
    }

    // Below every `Reply`'s lock; nothing is called while it is held.
    private let state = Mutex(State())

    package init() {}

    package func enter() -> UInt {
        state.withLock { state in
            let ticket = state.next
            state.next += 1
            state.places[ticket] = .entering
            return ticket
        }
    }

    /// Completes `enter`; false when the interruption has come meanwhile.
    package func wait(_ ticket: UInt, _ request: ParkedRequest) -> Bool {
        state.withLock { state in
            if case .interrupted = state.places[ticket] {
                state.places[ticket] = nil
                return false
            }
            state.places[ticket] = .waiting(request)
            return true
        }
    }

    package func leave(_ ticket: UInt) { state.withLock { $0.places[ticket] = nil } }

    /// Which request to interrupt; nil when it was answered, interrupted before, or is only entering.
    package func interrupt(_ ticket: UInt) -> ParkedRequest? {
        state.withLock { state in
            switch state.places[ticket] {
            case .waiting(let request):
                state.places[ticket] = nil
                return request
            case .entering, .interrupted:
                state.places[ticket] = .interrupted
                return nil
            case nil: return nil
            }
        }
    }

    /// Takes out everybody who waits, at the end of the session.
    package func interruptAll() -> [ParkedRequest] {
        state.withLock { state in
            var requests: [ParkedRequest] = []
            for (ticket, place) in state.places {
                guard case .waiting(let request) = place else { continue }
                requests.append(request)
                state.places[ticket] = nil
            }
            return requests
        }
    }

    package var count: Int { state.withLock { $0.places.count } }
}
