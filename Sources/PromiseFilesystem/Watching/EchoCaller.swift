package import PromiseCore
package import PromiseSystem

/// A name, for a call on the mount.
package struct EchoPlace: Sendable, Hashable {
    package var parent: NodeID
    /// Of `parent`, from the root.
    package var path: [FileName]
    package var name: FileName

    package init(parent: NodeID, path: [FileName], name: FileName) {
        self.parent = parent
        self.path = path
        self.name = name
    }
}

/// A call on the mount that makes the kernel raise the events of a change.
package enum EchoCall: Sendable, Hashable {
    case make(EchoPlace, kind: NodeKind, permissions: UInt32, target: [UInt8])
    case remove(EchoPlace, isFolder: Bool)
    case move(EchoPlace, to: EchoPlace)
    /// The modification time, which is IN_MODIFY, or both times (IN_ATTRIB).
    case setTimes(EchoPlace, to: Timestamp, both: Bool)
    case openAndClose(EchoPlace)
}

/// Makes calls on the mount by a process of its own, and knows who watches the mount. For one thread, which the process is bound
/// to: it ends when that thread does.
package protocol EchoCaller: AnyObject, Sendable {
    /// Starts the process where there is none. False when it cannot be started, or one that was given up has not ended yet.
    func start() -> Bool
    /// The process, until it has ended: its number is nobody else's. 0: there is none.
    var process: Int32 { get }
    /// Blocks, for two seconds at most; returns an errno, or 0. After ETIMEDOUT the process is gone.
    func call(_ call: EchoCall) -> Int32
    /// Of the mount; nil: it is gone.
    var deviceNumber: DeviceNumber? { get }
    /// Which nodes are watched. Some milliseconds.
    func watchedNodes() -> WatchedNodes
    func stop()
}
