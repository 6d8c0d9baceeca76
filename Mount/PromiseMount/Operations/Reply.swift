import CFuse
import CFuseTransport
import PromiseCore
import PromiseFilesystem
import Synchronization

/// The right and the duty to answer one request, once. A second answer traps; one that is dropped traps in debug builds and
/// answers EIO in release builds.
///
/// Unchecked because libfuse's request is a pointer: it is valid until it is answered, which `state` allows once, and the
/// only other use, announcing the interruption, happens under the lock of `state`.
final class Reply: @unchecked Sendable {
    private enum State {
        case open
        case parked(ticket: UInt)
        case answered
    }

    private let request: OpaquePointer
    private let operation: FuseOperation
    private let node: NodeID
    private let state = Mutex(State.open)
    /// The kernel's number of the request.
    let unique: UInt64
    let context: MountContext
    private let traced: TracedRequest?

    /// On the thread that serves the request.
    init(_ request: OpaquePointer, _ operation: FuseOperation, _ node: NodeID) {
        self.request = request
        self.operation = operation
        self.node = node
        unique = ct_current_request().unique
        context = MountContext.of(request)
        traced = TracedRequest(request, context)
        context.unanswered.wrappingAdd(1, ordering: .relaxed)
    }

    deinit {
        if case .answered = state.withLock({ $0 }) { return }
        assertionFailure("a \(operation.rawValue) request was never answered")
        fail(Failure(.inputOutput, "the \(operation.rawValue) request was dropped without an answer"))
    }

    var filesystem: any FileSystemOperations { context.filesystem }

    /// Answers with a value, sent by `send`, or with the errno of the failure.
    ///
    /// What libfuse returns of sending is not looked at: the caller may be gone, or the mount, and both are in order.
    func finish<Value>(_ result: Result<Value, Failure>, send: (OpaquePointer, Value) -> CInt) {
        claim()
        var number: CInt = 0
        switch result {
        case .success(let value): _ = send(request, value)
        case .failure(let failure):
            number = context.errorNumber(of: failure, operation, node: node)
            _ = fuse_reply_err(request, number)
        }
        traced?.end(operation, node, errorNumber: number, context)
        context.unanswered.wrappingSubtract(1, ordering: .releasing)
    }

    func fail(_ failure: Failure) { finish(Result<Void, Failure>.failure(failure)) { _, _ in 0 } }

    /// Answers with success or failure and nothing else.
    func finish(_ result: Result<Void, Failure>) { finish(result) { request, _ in fuse_reply_err(request, 0) } }

    /// Announces that the file system answers later: an interruption is passed on to it from now on. Nil: it has answered.
    func park(_ parked: ParkedRequest?) {
        guard let parked else { return }
        context.latency?.parked()
        let isInterrupted = state.withLock { state in
            // Another thread may have answered in the meantime; then libfuse's request is gone.
            guard case .open = state else { return false }
            let ticket = context.parked.enter()
            state = .parked(ticket: ticket)
            fuse_req_interrupt_func(request, requestInterrupted, UnsafeMutableRawPointer(bitPattern: ticket))
            return !context.parked.wait(ticket, parked)
        }
        if isInterrupted { filesystem.interrupt(parked) }
    }

    private func claim() {
        state.withLock { state in
            switch state {
            case .open: break
            case .parked(let ticket): context.parked.leave(ticket)
            case .answered: preconditionFailure("a \(operation.rawValue) request was answered twice")
            }
            state = .answered
        }
    }
}

/// libfuse calls it once at most for a request, with the ticket, on a thread that serves or parks.
private func requestInterrupted(_ request: OpaquePointer?, _ ticket: UnsafeMutableRawPointer?) {
    let context = MountContext.of(request!)
    guard let parked = context.parked.interrupt(UInt(bitPattern: ticket)) else { return }
    context.filesystem.interrupt(parked)
}

/// Answers a request at once, without a `Reply`: for operations that never wait.
func answer<Value>(
    _ request: OpaquePointer, _ operation: FuseOperation, _ node: NodeID,
    _ body: (any FileSystemOperations) throws(Failure) -> Value, send: (OpaquePointer, Value) -> CInt
) {
    let context = MountContext.of(request)
    let traced = TracedRequest(request, context)
    var number: CInt = 0
    do throws(Failure) {
        _ = send(request, try body(context.filesystem))
    } catch {
        number = context.errorNumber(of: error, operation, node: node)
        _ = fuse_reply_err(request, number)
    }
    traced?.end(operation, node, errorNumber: number, context)
}
