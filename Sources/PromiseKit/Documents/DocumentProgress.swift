import Synchronization

/// How far a document has been opened or saved.
public struct DocumentProgress: Sendable, Equatable {
    public enum Stage: Sendable, Equatable {
        /// Somebody else reads or writes it.
        case waiting
        /// The file's bytes come, from the provider where they are not here.
        case reading
        case writing
    }

    public var stage: Stage
    /// Bytes; of a file package, of all its files.
    public var completed: Int
    /// Zero while it is not known.
    public var total: Int
    /// 0 to 1.
    public var fraction: Double { total == 0 ? 0 : min(Double(completed) / Double(total), 1) }
}

/// What is under way now, and who watches it. Thread-safe: files are read on threads of their own.
final class ProgressKeeper: Sendable {
    let steps: AsyncStream<DocumentProgress?>
    private let continuation: AsyncStream<DocumentProgress?>.Continuation
    private let state = Mutex<DocumentProgress?>(nil)

    init() { (steps, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(256)) }

    var now: DocumentProgress? { state.withLock { $0 } }

    func set(_ progress: DocumentProgress?) {
        state.withLock { $0 = progress }
        continuation.yield(progress)
    }

    func finish() { continuation.finish() }

    /// What counts bytes on the thread that moves them.
    func counting(_ stage: DocumentProgress.Stage) -> @Sendable (_ completed: Int, _ total: Int) -> Void {
        { [self] in set(DocumentProgress(stage: stage, completed: $0, total: $1)) }
    }
}
