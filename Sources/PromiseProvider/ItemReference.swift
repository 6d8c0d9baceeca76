package import PromiseCore

/// How the engine names an item to a provider: by its identifier, and by the path where the provider last had it,
/// from the root, for stores that can only be asked by path. When the two disagree the identifier is right.
package struct ItemReference: Hashable, Sendable {
    package var identifier: ItemIdentifier
    /// Empty for the root.
    package var path: [FileName]

    package init(identifier: ItemIdentifier, path: [FileName]) {
        self.identifier = identifier
        self.path = path
    }
}

extension ItemIdentifier {
    /// Of a store that is asked by place and yet has numbers for its items: what is called so is this item, wherever it is.
    package init(number: String) { self.init("#" + number) }

    package var isNumber: Bool { rawValue.hasPrefix("#") }
}

/// What a new item is to be.
package struct NewItem: Hashable, Sendable {
    package var name: FileName
    package var kind: NodeKind
    package var metadata: Metadata
    package var target: [UInt8]?

    package init(name: FileName, kind: NodeKind, metadata: Metadata, target: [UInt8]? = nil) {
        self.name = name
        self.kind = kind
        self.metadata = metadata
        self.target = target
    }
}

/// What is to change of an item; nil leaves a thing as it is.
package struct ItemChanges: Hashable, Sendable {
    /// A new place: the folder and the name in it.
    package var place: (parent: ItemReference, name: FileName)? {
        get { parent.flatMap { parent in name.map { (parent, $0) } } }
        set { (parent, name) = (newValue?.parent, newValue?.name) }
    }
    private var parent: ItemReference?
    private var name: FileName?
    package var metadata: Metadata?
    /// Of the metadata only the time is meant. Mode, owner and group are as they were known to be,
    /// and others may have given others since: what is there stays.
    package var keepsRights = false
    /// A link's new target.
    package var target: [UInt8]?

    /// What an item is to have that has `present` now; nil: that. `isContentNew`: bits that let a
    /// program run as its owner were given to other content, and do not pass to this (inode(7)).
    package func metadata(over present: Metadata, isContentNew: Bool = false) -> Metadata? {
        guard let metadata, keepsRights else { return metadata }
        var result = present
        result.modificationTime = metadata.modificationTime
        if isContentNew { result.mode = Metadata.mode(present.mode, passedToContentOf: metadata.mode) }
        return result
    }

    package init(place: (parent: ItemReference, name: FileName)? = nil, metadata: Metadata? = nil, target: [UInt8]? = nil) {
        self.metadata = metadata
        self.target = target
        self.place = place
    }
}

package struct ItemPage: Sendable {
    package var items: [Item]
    /// Where the next page begins; nil after the last.
    package var next: PageToken?

    package init(items: [Item], next: PageToken? = nil) {
        self.items = items
        self.next = next
    }
}

package struct PageToken: RawRepresentable, Hashable, Sendable {
    package let rawValue: String
    package init(rawValue: String) { self.rawValue = rawValue }
}

/// An opaque cursor into a provider's change feed.
package struct Anchor: RawRepresentable, Hashable, Sendable {
    package let rawValue: String
    package init(rawValue: String) { self.rawValue = rawValue }
}

/// What changed after an anchor. A provider that knows only *where* something changed names the folders to list again.
package struct ChangePage: Sendable {
    package var updated: [Item]
    package var deleted: [ItemIdentifier]
    package var foldersToList: Set<ItemIdentifier>
    /// Nobody knows whether anything has changed in those folders: they are all that were listed.
    package var isGuess = false
    package var anchor: Anchor
    package var isLast: Bool

    package init(
        updated: [Item] = [], deleted: [ItemIdentifier] = [], foldersToList: Set<ItemIdentifier> = [],
        isGuess: Bool = false, anchor: Anchor, isLast: Bool = true
    ) {
        self.isGuess = isGuess
        self.updated = updated
        self.deleted = deleted
        self.foldersToList = foldersToList
        self.anchor = anchor
        self.isLast = isLast
    }

    /// It names nothing.
    package var isEmpty: Bool { updated.isEmpty && deleted.isEmpty && foldersToList.isEmpty }
}

/// Room at the provider, in bytes.
package struct Quota: Hashable, Sendable {
    package var total: UInt64
    package var available: UInt64
    package init(total: UInt64, available: UInt64) {
        self.total = total
        self.available = available
    }
}

/// What a provider can do; the engine makes up for what is missing.
package struct Capabilities: OptionSet, Sendable {
    package let rawValue: UInt32
    package init(rawValue: UInt32) { self.rawValue = rawValue }

    /// Identifiers survive renames and moves.
    package static let stableIdentifiers = Capabilities(rawValue: 1 << 0)
    /// A rename or move is one step that happens wholly or not at all.
    package static let atomicRename = Capabilities(rawValue: 1 << 1)
    /// `baseVersion` is honoured without a gap between check and write.
    package static let conditionalWrite = Capabilities(rawValue: 1 << 2)
    /// `changes(since:)` tells what happened; without it the engine lists again.
    package static let changeFeed = Capabilities(rawValue: 1 << 3)
    /// `waitForChanges(since:)` returns soon after something happened; without it the engine polls.
    package static let changePush = Capabilities(rawValue: 1 << 4)
    /// Parts of a content can be fetched.
    package static let ranges = Capabilities(rawValue: 1 << 5)
    package static let resumableUpload = Capabilities(rawValue: 1 << 6)
    /// Modes and modification times are kept.
    package static let metadata = Capabilities(rawValue: 1 << 7)
    package static let versions = Capabilities(rawValue: 1 << 8)
    package static let quota = Capabilities(rawValue: 1 << 9)
    package static let serverSideCopy = Capabilities(rawValue: 1 << 10)
    /// Links are kept.
    package static let links = Capabilities(rawValue: 1 << 11)

    /// Identifiers say where an item is: a move changes them. The engine gives items identifiers of its own then.
    package static let placeIdentifiers = Capabilities(rawValue: 1 << 12)

    /// Pictures of items are kept, for other machines.
    package static let thumbnails = Capabilities(rawValue: 1 << 13)

    /// Small hidden objects are kept, and written by compare and swap: see `PrivateObjects`.
    package static let privateObjects = Capabilities(rawValue: 1 << 14)

    /// A page of the provider's own, in which a person picks: see `pickerPage`.
    package static let pickerPages = Capabilities(rawValue: 1 << 20)

    /// Items have names that last longer than their identifiers: see `persistentIdentifier(of:)`.
    package static let persistentIdentifiers = Capabilities(rawValue: 1 << 21)

    /// Wants to know what is not kept here any more: see `contentsReleased`.
    package static let release = Capabilities(rawValue: 1 << 22)

    /// Anybody can be given a link to an item: see `SharingLinks`.
    package static let sharingLinks = Capabilities(rawValue: 1 << 23)

    /// What was removed there is kept, and can come back: see `ProviderBin`.
    package static let removedItems = Capabilities(rawValue: 1 << 24)

    package static let names: [(Capabilities, String)] = [
        (.stableIdentifiers, "stable-identifiers"), (.atomicRename, "atomic-rename"),
        (.conditionalWrite, "conditional-write"), (.changeFeed, "change-feed"), (.changePush, "change-push"),
        (.ranges, "ranges"), (.resumableUpload, "resumable-upload"), (.metadata, "metadata"), (.versions, "versions"),
        (.quota, "quota"), (.serverSideCopy, "server-side-copy"), (.links, "links"),
        (.placeIdentifiers, "place-identifiers"), (.thumbnails, "thumbnails"),
        (.privateObjects, "private-objects"), (.pickerPages, "picker-pages"),
        (.persistentIdentifiers, "persistent-identifiers"), (.release, "release"), (.sharingLinks, "sharing-links"),
        (.removedItems, "removed-items"),
    ]

    /// For people and for reports, in a fixed order.
    package var nameList: [String] { Capabilities.names.filter { contains($0.0) }.map { $0.1 } }
}
