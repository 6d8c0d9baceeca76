import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseSystem

/// Pieces of a file have become all of it. What fetches had brought that is no piece of it goes from its holes, which
/// read as zeros: it may be of another version.
struct HollowContent {
    var node: NodeID
    /// When it became so.
    var edits: UInt64

    /// When nothing that is fetched lands any more. Not while somebody writes, or when somebody has written since: perhaps
    /// there. What stays because of that, or of the disk, is sent to nobody.
    func empty(in index: Index, _ content: ContentStore) {
        // Under the index's lock, so that nobody begins to write meanwhile.
        try? index.read { transaction throws(Failure) in
            guard let now = try transaction.node(node), now.content == .whole, now.edits == edits, !now.isOpenForWriting
            else { return }
            let holes = try transaction.holes(of: node)
            if holes.isEmpty { return }
            let file = try content.open(node, now.generation)
            for hole in holes.ranges { _ = try? punchHole(file.number, hole, label: "content.sparse.empty") }
            // It tells of writes.
            _ = try? setTimes(file.number, access: nil, modification: now.modificationTime, label: "content.sparse.emptied")
        }
    }
}
