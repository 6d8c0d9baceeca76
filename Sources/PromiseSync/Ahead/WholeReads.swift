package import PromiseCore

/// Whether a program reads files that are not small to their end, one after the other in one
/// folder.
package struct WholeReads: Sendable {
    /// Opened last, and not fetched ahead: those are whole whatever was read of them.
    private var files: [NodeID] = []
    private var place: NodeID?
    private var isWhole = false

    package init() {}

    /// Where files are read whole.
    package var folder: NodeID? { isWhole ? place : nil }

    /// The files whose content tells, once it is here, that it was read whole.
    package func earlier(in folder: NodeID) -> [NodeID] { folder == place ? files : [] }

    /// `isWhole`: the content of one of the earlier ones is.
    package mutating func opened(
        _ file: NodeID, in folder: NodeID, isFetchedAhead: Bool, isWhole: Bool
    ) {
        if folder != place {
            self = WholeReads()
            place = folder
        }
        guard !isFetchedAhead else { return }
        self.isWhole = isWhole
        files = (files + [file]).suffix(2)
    }
}
