import Synchronization

/// The line between a provider and its storage, where a check lets something go wrong: with one request, the one that comes after
/// some others. Whatever sends requests asks `take` before each. Without a plan, as ever outside of checks, nothing happens.
package final class FaultLine: Sendable {
    package enum Fault: Hashable, Sendable {
        /// The request is sent so much later.
        case delay(Duration)
        /// It is answered with this status in the storage's place, which never sees it.
        case status(Int)
        /// It is carried out, and the answer does not come.
        case lostAnswer
        /// The answer ends in its middle as if it were whole.
        case shortReply
        /// The connection is reset in the middle of the answer.
        case brokenReply
        /// The answer names another version of the content than it has.
        case otherVersion
        /// A listing names everything twice.
        case repeatedRows
    }

    private struct State {
        var fault: Fault?
        /// Requests that are let through before.
        var skippedCount = 0
        var isReached = false
        var isDone = false
    }

    private let state = Mutex(State())

    package init() {}

    /// What is planned for the request that is about to be sent.
    package func take() -> Fault? {
        state.withLock { state in
            guard let fault = state.fault, !state.isReached else { return nil }
            guard state.skippedCount == 0 else {
                state.skippedCount -= 1
                return nil
            }
            state.isReached = true
            state.isDone = true
            return fault
        }
    }

    /// What was taken cannot be done to this request, e.g. an answer of nothing has no middle.
    package func giveUp() { state.withLock { $0.isDone = false } }

    func plan(_ fault: Fault, after count: Int) {
        state.withLock { $0 = State(fault: fault, skippedCount: count) }
    }

    /// Ends the plan. Whether so many requests were sent at all, and whether the fault was done to one.
    func end() -> (isReached: Bool, isDone: Bool) {
        state.withLock { state in
            defer { state = State() }
            return (state.isReached, state.isDone)
        }
    }
}
