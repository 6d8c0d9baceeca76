package import PromiseCore

// What somebody asks for when he wants to read or write items without being disturbed.

package struct ClaimID: RawRepresentable, Hashable, Comparable, Sendable, CustomStringConvertible {
    package let rawValue: UInt64
    package init(rawValue: UInt64) { self.rawValue = rawValue }
    package static func < (left: ClaimID, right: ClaimID) -> Bool { left.rawValue < right.rawValue }
    package var description: String { "\(rawValue)" }
}

package struct PresenterID: RawRepresentable, Hashable, Comparable, Sendable, CustomStringConvertible {
    package let rawValue: UInt64
    package init(rawValue: UInt64) { self.rawValue = rawValue }
    package static func < (left: PresenterID, right: PresenterID) -> Bool { left.rawValue < right.rawValue }
    package var description: String { "\(rawValue)" }
}

/// Who shares this never waits for one another: a program with its own presenter, or a claim within a claim.
package struct Purpose: RawRepresentable, Hashable, Sendable {
    package let rawValue: String
    package init(rawValue: String) { self.rawValue = rawValue }

    /// Nil of no text and of an empty one: who says no purpose shares none with others who do not.
    package init?(said text: String?) {
        guard let text, !text.isEmpty else { return nil }
        rawValue = text
    }
}

/// NSFileCoordinator.ReadingOptions.
package struct ReadingOptions: OptionSet, Hashable, Sendable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Presenters are not asked to save what they have not saved yet.
    package static let withoutChanges = ReadingOptions(rawValue: 1)
    /// A link stands for what it leads to. Resolved before a claim is made.
    package static let resolvesSymbolicLink = ReadingOptions(rawValue: 2)
    /// Only what is known without content: nobody is asked, nothing is fetched, and writers of content are not waited for.
    package static let immediatelyAvailableMetadataOnly = ReadingOptions(rawValue: 4)
    /// A snapshot is made, and whoever writes goes on as soon as it is made.
    package static let forUploading = ReadingOptions(rawValue: 8)
}

/// NSFileCoordinator.WritingOptions.
package struct WritingOptions: OptionSet, Hashable, Sendable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Presenters of the item and of what is below it are asked to prepare for its end.
    package static let forDeleting = WritingOptions(rawValue: 1)
    package static let forMoving = WritingOptions(rawValue: 2)
    /// Presenters are asked to save first, as what they have is going to be part of the result.
    package static let forMerging = WritingOptions(rawValue: 4)
    /// What is there goes: as `forDeleting`, and something else takes its place.
    package static let forReplacing = WritingOptions(rawValue: 8)
    /// Nothing that depends on the content: readers of the content are not disturbed, and presenters not asked.
    package static let contentIndependentMetadataOnly = WritingOptions(rawValue: 16)
    /// The local copy of the content goes, and the item stays: the daemon's own, to make room.
    package static let forEvicting = WritingOptions(rawValue: 32)
}

package enum Access: Hashable, Sendable {
    case read(ReadingOptions)
    case write(WritingOptions)

    package var isWriting: Bool { if case .write = self { true } else { false } }

    /// Only what is known without the content.
    package var isAboutMetadata: Bool {
        switch self {
        case .read(let options): options.contains(.immediatelyAvailableMetadataOnly)
        case .write(let options): options.contains(.contentIndependentMetadataOnly)
        }
    }

    /// Whether the two can be inside at once. Metadata and content do not disturb each other, unless the item itself is to go
    /// or to move.
    package func conflicts(with other: Access) -> Bool {
        guard isWriting || other.isWriting else { return false }
        if isAboutMetadata == other.isAboutMetadata { return true }
        return changesName || other.changesName
    }

    /// Something else is to be at the place.
    var isReplacing: Bool { if case .write(let options) = self { options.contains(.forReplacing) } else { false } }

    private var changesName: Bool {
        guard case .write(let options) = self else { return false }
        return !options.isDisjoint(with: [.forDeleting, .forMoving, .forReplacing])
    }
}

/// One item of a claim. By node: so the claim stays with the item wherever it is moved.
package struct Intent: Hashable, Sendable {
    package var node: NodeID
    /// The folders that hold it, nearest first, up to the root.
    package var folders: [NodeID]
    package var access: Access
    /// The vacancy that the item's name would leave: whoever has a claim on that is in the way. With `node` itself
    /// a vacancy the claim is about the place, and nothing was there when it was made.
    package var place: NodeID?
    /// Other names of the item, which stay when this one goes.
    package var stayingNames: Set<EntryID>
    /// The claim was about the place, at which nothing was when it was made.
    var wasVacant = false

    package init(
        node: NodeID, folders: [NodeID], access: Access, place: NodeID? = nil, stayingNames: Set<EntryID> = []
    ) {
        self.node = node
        self.folders = folders
        self.access = access
        self.place = place
        self.stayingNames = stayingNames
    }

    /// What of it the index knows: the item, or the folder in which nothing has the name.
    package var settled: Intent {
        guard node.isVacancy, let folder = folders.first else { return self }
        return Intent(node: folder, folders: Array(folders.dropFirst()), access: access)
    }

    /// What it is told by: the item, and the place that it was claimed at.
    var keys: [NodeID] { place.map { $0 == node ? [node] : [node, $0] } ?? [node] }
}

extension NodeID {
    /// Nothing was there.
    package var isVacancy: Bool { rawValue >> 62 == 1 }

    /// Stands for a name that nothing has: the same for everybody who means it, and no item's number.
    package static func vacancy(_ name: FileName, in folder: NodeID) -> NodeID {
        // FNV-1a. Two places of one number would only wait for each other.
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for shift in stride(from: 0, to: 64, by: 8) { hash = (hash ^ folder.rawValue >> shift & 0xFF) &* 0x100_0000_01B3 }
        for byte in name.bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return NodeID(1 << 62 | hash & (1 << 62 - 1))
    }
}

/// What a presenter is asked before somebody else gets at its item.
package enum Question: String, Hashable, Sendable {
    /// Somebody is about to read: stop writing.
    case relinquishToReader
    /// Somebody is about to write: stop reading and writing.
    case relinquishToWriter
    case saveChanges
    /// The item is about to go: close it.
    case accommodateDeletion
    /// As before, of something below the presented folder.
    case accommodateSubitemDeletion
    /// The local copy of the content is about to go: stop using it, or fetch it again.
    case accommodateEviction
}

/// What a presenter is told.
package enum Notice: Hashable, Sendable {
    /// What it relinquished is its own again.
    case reacquire
    case didChange
    case didMove
    case didDelete
    /// Of something in the presented folder, at any depth. `named`: by which of its names.
    case subitemDidAppear(NodeID, named: EntryID? = nil)
    case subitemDidChange(NodeID, named: EntryID? = nil)
    case subitemDidMove(NodeID, named: EntryID? = nil, from: OldPlace? = nil)
    case subitemDidDelete(NodeID, from: OldPlace? = nil)
    /// An unresolved version of the item, by its name, which is a file beside the item.
    case version(VersionChange, FileName)
    /// As before, of a document in the presented folder.
    case subitemVersion(VersionChange, FileName, NodeID)
}

/// Where something was before it moved or went: a name in a folder.
package struct OldPlace: Hashable, Sendable {
    package var parent: NodeID
    package var name: FileName

    package init(parent: NodeID, name: FileName) {
        self.parent = parent
        self.name = name
    }
}

/// What becomes of the other side of a conflict.
package enum VersionChange: Hashable, Sendable {
    case gained, lost
    /// Somebody has dealt with it; what is left is a document of its own.
    case resolved
}
