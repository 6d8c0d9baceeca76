package import PromiseCore

// Locks of fcntl(2) and flock(2) in views. The main mount's kernel keeps its own; a view's kernel asks
// for each, and they are taken on the main mount by a process beside the daemon, so that one kernel
// decides between all.

/// A lock as a program asks for it.
package struct FileLock: Sendable, Hashable {
    package enum Kind: Sendable, Hashable {
        /// fcntl(2)'s: of a process, or of an open file description.
        case ranges
        /// flock(2)'s, of an open file description.
        case whole
    }

    package enum Mode: Sendable, Hashable { case shared, exclusive, none }

    package var kind: Kind
    package var mode: Mode
    /// Of `ranges`, both inclusive; `Int64.max` is the end, wherever it is.
    package var start: Int64
    package var end: Int64
    /// 0: nobody's whom the program could know.
    package var process: Int32

    package init(kind: Kind, mode: Mode, start: Int64 = 0, end: Int64 = .max, process: Int32 = 0) {
        self.kind = kind
        self.mode = mode
        self.start = start
        self.end = end
        self.process = process
    }

    var isOfAll: Bool { start == 0 && end == .max }
}

/// Whose locks, on which file: `number` is the kernel's of a process or an open file, in its view.
package struct LockOwner: Sendable, Hashable {
    package var view: UInt16
    package var node: NodeID
    package var kind: FileLock.Kind
    package var number: UInt64

    package init(view: UInt16, node: NodeID, kind: FileLock.Kind, number: UInt64) {
        self.view = view
        self.node = node
        self.kind = kind
        self.number = number
    }
}

/// A place of a file on the main mount. Without a path it has no name any more.
package struct LockPlace: Sendable, Hashable {
    package var path: [FileName]?
    package var isWritable: Bool

    package init(path: [FileName]?, isWritable: Bool) {
        self.path = path
        self.isWritable = isWritable
    }
}

package enum LockCall: Sendable, Hashable {
    case set(FileLock, waits: Bool, at: LockPlace)
    /// Which lock is in the way of this one.
    case test(FileLock, at: LockPlace)
    case drop
}

package struct LockAnswer: Sendable, Hashable {
    /// An errno, or 0.
    package var problem: Int32
    /// What is in the way, when that was asked.
    package var found: FileLock?

    package init(problem: Int32, found: FileLock? = nil) {
        self.problem = problem
        self.found = found
    }
}

/// Takes locks on the main mount. Thread-safe; nothing here waits.
package protocol LockKeeper: Sendable {
    /// `answer` is called once, on another thread or before this returns. The result is the call's
    /// number, which no other has.
    func ask(
        _ call: LockCall, for owner: LockOwner, answer: @escaping @Sendable (LockAnswer) -> Void
    ) -> UInt64
    /// A call that waits is answered with EINTR, unless it has its lock.
    func cancel(_ call: UInt64)
    /// Everything that a view has is dropped.
    func end(view: UInt16)
    /// The process that opens files for this, and reads and writes nothing; 0: there is none.
    var process: Int32 { get }
    func stop()
}

/// Whose kernel does not keep locks itself.
package protocol LockingOperations: Sendable {
    var locks: any LockOperations { get }
}

/// What a mount's kernel asks where it does not keep locks itself.
package protocol LockOperations: Sendable {
    /// Else the kernel is to keep its own, for programs of that mount.
    var isServed: Bool { get }
    typealias LockReply = @Sendable (Result<LockAnswer, Failure>) -> Void

    func testLock(
        _ lock: FileLock, of node: NodeID, handle: HandleID, owner: UInt64,
        reply: @escaping LockReply) -> ParkedRequest?
    func setLock(
        _ lock: FileLock, waits: Bool, of node: NodeID, handle: HandleID, owner: UInt64,
        reply: @escaping LockReply) -> ParkedRequest?
    /// A descriptor was closed: what its process has locked with fcntl(2) is free when that is
    /// answered. Comes once for each close(2).
    func flush(
        _ node: NodeID, handle: HandleID, owner: UInt64, reply: @escaping LockReply
    ) -> ParkedRequest?
}
