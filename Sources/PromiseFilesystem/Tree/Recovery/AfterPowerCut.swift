package import PromiseCore
package import PromiseIndex

/// What is to be done about a file's content after a power cut.
///
/// The disk has what was synchronized. Of the rest it has any part, as ext4(5) and xfs(5) are mounted
/// usually: a name without content, a size of later than the bytes, blocks that read as zeros. What is not
/// certain never replaces the provider's version: that would make one loss of two.
package enum AfterPowerCut: Equatable {
    /// It is what the index says.
    case keep
    /// The provider has it, and what is here may be a part of it.
    case fetchAgain
    /// Nothing is left of it: the provider's version, or an empty file where there is none.
    case giveUp
    /// What is here was written, and is an edit as it is.
    case takeAsEdit
    /// What is here may be a part of an edit: it is kept beside the provider's version.
    case doubt

    /// `isAgreed`: by the index, the provider has this content; `hasAgreed`: it has some version of it.
    /// `found`: of the content file, nil when there is none. `isComplete`: no part of it was never written.
    package static func judge(
        _ node: Node, isAgreed: Bool, hasAgreed: Bool, found: (size: UInt64, modificationTime: Timestamp)?,
        isComplete: () -> Bool
    ) -> AfterPowerCut {
        guard let found else { return .giveUp }
        // The time of partial content is the time of what was fetched last.
        let isPartial = node.content == .partial
        let isSame = found.size == node.size && (isPartial || found.modificationTime == node.modificationTime)
        // Of partial content only what was edited here is on the disk for certain.
        if isAgreed, isPartial || !node.durability.isWhole {
            return node.isOpenForWriting && !isSame && !isPartial ? .doubt : .fetchAgain
        }
        if node.durability.hasBase || !hasAgreed { return isSame ? .keep : .takeAsEdit }
        if found.size == 0, node.size > 0 { return .giveUp }
        return isSame && !isPartial && isComplete() ? .keep : .doubt
    }
}
