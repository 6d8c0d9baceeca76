import Glibc
package import PromiseCore
package import PromiseSystem

/// Requests that wait for the provider: each is answered once, by whoever comes first of its outcome, its deadline and
/// its caller's interrupt. So the number of serving threads never limits the number of slow files.
package final class Parking: Sendable {
    package struct Parked: Sendable {
        var deadline: Duration
        /// Whose content is waited for.
        var node: NodeID?
        /// Who waits; 0 when unknown.
        var process: Int32
        var fail: @Sendable (Failure) -> Void
        /// Tells whoever works for the request that nobody waits any more.
        var abandon: (@Sendable () -> Void)?
    }

    private struct State {
        var parked: [UInt64: Parked] = [:]
        /// Requests that are being carried out and may be parked again; whether they were interrupted meanwhile.
        var goingOn: [ParkedRequest: Bool] = [:]
        /// Requests that went on as others.
        var successors: [ParkedRequest: ParkedRequest] = [:]
        var next: UInt64 = 1
        /// When deadlines are looked at again; nil: when something is parked.
        var nextLook: Duration?
        /// Content that was waited for in vain, and when.
        var late: [NodeID: Duration] = [:]
        /// The mount is ending: nobody looks after what would be parked.
        var isEnded = false

        /// True when they are to be looked at earlier.
        mutating func park(_ request: Parked, _ number: UInt64) -> Bool {
            parked[number] = request
            if let nextLook, nextLook <= request.deadline { return false }
            nextLook = request.deadline
            return true
        }
    }

    private let state = RankedMutex(.leaf, State())
    private let clock: any TimeSource
    private let limit: Duration
    private let lookout: Lookout

    /// `limit`: how long a request may be parked. `lookout`: what watches that; nil: a thread.
    package init(clock: any TimeSource, limit: Duration, lookout: Lookout? = nil) {
        self.clock = clock
        self.limit = limit
        self.lookout = lookout ?? Lookout(name: "deadlines", clock: clock)
        self.lookout.begin { [self] in lookAtDeadlines() }
    }

    /// Enters a request; `fail` answers it when it is not claimed in time.
    /// `node`: whose content is waited for. The kernel asks for a page again and again, at once, when it could not be read, and
    /// whoever touched it waits for all of that: when the time is over for the first request it is for the others.
    package func enter(
        process: Int32 = 0, node: NodeID? = nil, fail: @escaping @Sendable (Failure) -> Void
    ) -> ParkedRequest {
        let now = clock.uptime()
        let (number, wakes, failure): (UInt64, Bool, Failure?) = state.withLock { state in
            defer { state.next += 1 }
            if state.isEnded { return (state.next, false, Parking.ended) }
            let late = node.flatMap { state.late[$0] }
            if let late, now - late < Parking.lateTime { return (state.next, false, Parking.late) }
            let parked = Parked(
                deadline: now + limit, node: node, process: process, fail: fail, abandon: nil)
            return (state.next, state.park(parked, state.next), nil)
        }
        if let failure { fail(failure) }
        // Mostly it looks again for an earlier request, answered or not.
        if wakes { lookout.wake(at: now + limit) }
        return ParkedRequest(number)
    }

    /// Sets what to do when the request is given up; done at once when it was given up already. Of
    /// one that is being carried out whoever does that cleans up.
    package func onAbandon(_ request: ParkedRequest, _ body: @escaping @Sendable () -> Void) {
        let isGivenUp = state.withLock { state in
            state.parked[request.rawValue]?.abandon = body
            return state.parked[request.rawValue] == nil && state.goingOn[request] == nil
        }
        if isGivenUp { body() }
    }

    /// Something has been done for the request: it may be parked for as long again.
    package func extend(_ request: ParkedRequest) {
        let deadline = clock.uptime() + limit
        state.withLock { $0.parked[request.rawValue]?.deadline = deadline }
    }

    /// Like `claim`, for a request that may be parked again when it is carried out; `follow` says how that went.
    package func claimToGoOn(_ request: ParkedRequest) -> Bool {
        state.withLock { state in
            guard state.parked.removeValue(forKey: request.rawValue) != nil else { return false }
            state.goingOn[request] = false
            return true
        }
    }

    /// A request that was claimed is parked again under another number: an interrupt of the first one is meant for that.
    package func follow(_ request: ParkedRequest, _ successor: ParkedRequest?) {
        let isInterrupted = state.withLock { state in
            let isInterrupted = state.goingOn.removeValue(forKey: request) ?? false
            // Those that have been answered meanwhile are forgotten here, so there are never more than are parked, and one.
            state.successors = state.successors.filter { state.parked[$0.value.rawValue] != nil }
            if let successor, state.parked[successor.rawValue] != nil {
                state.successors[request] = successor
            }
            return isInterrupted
        }
        if isInterrupted { interrupt(request) }
    }

    /// True for the one who may answer.
    package func claim(_ request: ParkedRequest) -> Bool { remove(request) != nil }

    package func interrupt(_ request: ParkedRequest) {
        let successor = state.withLock { state in
            if state.goingOn[request] != nil { state.goingOn[request] = true }
            return state.successors.removeValue(forKey: request)
        }
        if let successor { return interrupt(successor) }
        guard let parked = remove(request) else { return }
        parked.abandon?()
        parked.fail(Parking.interrupted)
    }

    /// Read-ahead goes on when its reader has died, and keeps the file open in the kernel: answers what nobody waits for.
    package func abandonOrphans() {
        let orphans = state.withLock { state in
            state.parked.filter { $0.value.process > 0 && kill($0.value.process, 0) == -1 }.map {
                ParkedRequest($0.key)
            }
        }
        orphans.forEach(interrupt)
    }

    package var count: Int { state.withLock { $0.parked.count } }

    /// Answers everything that is parked and ends the thread.
    package func end() {
        let rest = state.withLock { state in
            defer { state.parked = [:] }
            state.isEnded = true
            return Array(state.parked.values)
        }
        for parked in rest {
            parked.abandon?()
            parked.fail(Parking.ended)
        }
        lookout.end()
    }

    private func remove(_ request: ParkedRequest) -> Parked? {
        state.withLock { $0.parked.removeValue(forKey: request.rawValue) }
    }

    /// Like `claim`, for somebody who may have to put it back. Ends with `putBack` or `answered`.
    package func take(_ request: ParkedRequest) -> Parked? {
        state.withLock { state in
            let parked = state.parked.removeValue(forKey: request.rawValue)
            if parked != nil { state.goingOn[request] = false }
            return parked
        }
    }

    /// It will not be put back: an interrupt that came meanwhile has come too late.
    package func answered(_ request: ParkedRequest) {
        state.withLock { $0.goingOn[request] = nil }
    }

    /// Parks a request again, with the deadline it had. Throws when it was interrupted since it was
    /// taken, or the mount has ended: then it is to be answered so.
    package func putBack(_ request: ParkedRequest, _ parked: Parked) throws(Failure) {
        let outcome: Result<Bool, Failure> = state.withLock { state in
            let isInterrupted = state.goingOn.removeValue(forKey: request) ?? false
            if state.isEnded { return .failure(Parking.ended) }
            if isInterrupted { return .failure(Parking.interrupted) }
            return .success(state.park(parked, request.rawValue))
        }
        if try outcome.get() { lookout.wake(at: parked.deadline) }
    }

    private static let interrupted = Failure(.interrupted, "the caller was interrupted")
    private static let ended = Failure(.interrupted, "the file system was unmounted")
    private static let lateTime = Duration.milliseconds(200)
    private static let late = Failure(.timedOut, "the provider did not answer in time")

    /// Answers those whose time is over; returns when it is for the next.
    private func lookAtDeadlines() -> Duration? {
        let now = clock.uptime()
        let (late, next) = state.withLock { state in
            let late = state.parked.filter { $0.value.deadline <= now }
            late.keys.forEach { state.parked[$0] = nil }
            state.late = state.late.filter { now - $0.value < Parking.lateTime }
            for node in late.values.compactMap(\.node) { state.late[node] = now }
            state.nextLook = state.parked.values.map(\.deadline).min()
            return (Array(late.values), state.nextLook)
        }
        for parked in late {
            parked.abandon?()
            parked.fail(Parking.late)
        }
        return next
    }
}
