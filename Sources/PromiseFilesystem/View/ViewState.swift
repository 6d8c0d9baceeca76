import PromiseCore
import PromiseIndex
import PromiseSync

/// What one view remembers. None of it outlives the view.
struct ViewState {
    /// What the kernel knows of a node, and what it was reached by: it may have no name any more.
    struct Known {
        var lookups: UInt64 = 0
        var reach = Reach()
    }

    struct OpenFile {
        /// The tree's number.
        var node: NodeID
        var isWritable: Bool
    }

    var known: [NodeID: Known] = [:]
    var files: [HandleID: OpenFile] = [:]
    var locks = ViewLocks()
    /// Granted documents that a program inside has renamed or removed, as it does to save.
    var hidden: Set<FileName> = []
    /// Documents that were saved anew a moment ago, of which the policy is being told.
    var followed: [EntryID: ViewRoot] = [:]
    /// Where they were when they were last seen, by which a removal there is theirs.
    var places: [FileName: TreePlace] = [:]
    /// Names in `granted` that documents have, or had until their grants ended.
    var given: Set<FileName> = []
}
