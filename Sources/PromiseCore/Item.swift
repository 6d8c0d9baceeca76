/// An item as a provider describes it now.
package struct Item: Hashable, Sendable {
    package var identifier: ItemIdentifier
    /// The folder that holds it; nil for the root.
    package var parent: ItemIdentifier?
    package var name: FileName
    /// `.file`, `.folder` or `.link`.
    package var kind: NodeKind
    /// In bytes; 0 for a folder, the length of the target for a link.
    package var size: UInt64
    package var metadata: Metadata
    /// Changes whenever the content of a file or the target of a link changes; constant for a folder.
    package var version: ContentVersion
    /// Where a link points; nil for everything else.
    package var target: [UInt8]?
    /// Modes, owners and time are not what the store has but a guess, as its listing does not tell; and so is that it is no
    /// link. What was known before of the same version is better. Not kept.
    package var isGuess = false

    package init(
        identifier: ItemIdentifier, parent: ItemIdentifier?, name: FileName, kind: NodeKind, size: UInt64, metadata: Metadata,
        version: ContentVersion, target: [UInt8]? = nil
    ) {
        self.identifier = identifier
        self.parent = parent
        self.name = name
        self.kind = kind
        self.size = size
        self.metadata = metadata
        self.version = version
        self.target = target
    }
}
