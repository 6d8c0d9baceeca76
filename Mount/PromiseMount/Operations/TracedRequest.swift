import CFuse
import PromiseCore
import PromiseFilesystem
import PromiseSystem

/// When a request began and who made it, while somebody listens; it must be taken before the request is answered.
struct TracedRequest {
    private let process: Int32
    private let recording: [UInt8]?
    private let start: Duration

    /// Nil while nobody listens.
    init?(_ request: OpaquePointer, _ context: MountContext) {
        guard context.trace.isWanted else { return nil }
        process = fuse_req_ctx(request).pointee.pid
        recording = context.trace.recording(of: process)
        start = SystemClock().uptime()
    }

    func end(_ operation: FuseOperation, _ node: NodeID, errorNumber: CInt, _ context: MountContext) {
        context.trace.tell(
            RequestTrace.Event(
                operation: operation.rawValue, node: node, process: process, duration: SystemClock().uptime() - start,
                errorNumber: errorNumber, recording: recording))
    }
}
