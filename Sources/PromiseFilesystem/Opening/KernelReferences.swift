import PromiseCore
import PromiseIndex

/// Memory of what the kernel holds.
struct KernelReferences {
    var lookups: [NodeID: UInt64] = [:]
    /// Removed nodes that the kernel still names: they answer `stat` until it forgets them.
    var ghosts: [NodeID: Node] = [:]
}
