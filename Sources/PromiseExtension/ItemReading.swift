import Glibc
package import PromiseCore
package import PromiseWire

/// Makes an item of what an extension says, believing nothing that cannot be.
package enum ItemReading {
    /// What is no item as the protocol has it, e.g. without a name, harms no other.
    static func unreadable(_ count: Int) -> String {
        "describes \(count) of the items of one answer in a way that is none; they are left out"
    }

    package static let identifierByteCountMax = 1024
    /// PATH_MAX without its NUL: what the kernel takes (symlink(2)).
    private static let targetByteCountMax = 4095

    /// What is wrong with it: the end of a sentence that begins with the extension's name.
    package struct Nonsense: Error, Hashable, Sendable {
        package var sentence: String
        init(_ sentence: String) { self.sentence = sentence }
    }

    /// `now`: how old a file is of which the extension tells no time. `isRoot`: the item is the
    /// root, whose name and parent mean nothing.
    package static func item(
        _ document: ExtensionItemDocument, now: Timestamp, isRoot: Bool = false
    ) throws(Nonsense) -> Item {
        let shown = shown(document)
        let identifier = try self.identifier(document.identifier ?? "")
        if isRoot {
            let name = FileName(trusted: Array("root".utf8))
            return try item(document, identifier, parent: nil, named: name, now)
        }
        let name = try self.name(document)
        let parent = try document.parent.map { parent throws(Nonsense) in try self.identifier(parent) }
        guard let parent, parent != identifier else { throw Nonsense("says of \(shown) no folder that holds it") }
        return try item(document, identifier, parent: parent, named: name, now)
    }

    /// The item of a place: whatever the document calls it and its folder.
    package static func item(
        _ document: ExtensionItemDocument, now: Timestamp,
        as place: (identifier: ItemIdentifier, parent: ItemIdentifier)
    ) throws(Nonsense) -> Item {
        try item(document, place.identifier, parent: place.parent, named: try name(document), now)
    }

    package static func name(_ document: ExtensionItemDocument) throws(Nonsense) -> FileName {
        guard let name = PercentText.decoded(document.name).flatMap({ FileName($0) }) else {
            throw Nonsense("names an item \(shown(document)), which cannot be a file name")
        }
        return name
    }

    private static func shown(_ document: ExtensionItemDocument) -> String {
        "'\(escapedForDisplay(Array(document.name.utf8.prefix(300))))'"
    }

    private static func item(
        _ document: ExtensionItemDocument, _ identifier: ItemIdentifier, parent: ItemIdentifier?,
        named name: FileName, _ now: Timestamp
    ) throws(Nonsense) -> Item {
        let shown = shown(document)
        guard let kind = kinds[document.kind] else { throw Nonsense("gives \(shown) a kind that there is not") }
        let target = try self.target(document, kind, shown)
        let size: UInt64
        switch kind {
        case .file:
            guard let stated = document.size.flatMap({ UInt64(exactly: $0) }), stated <= ItemSize.max else {
                throw Nonsense("says no size of \(shown) that can be") }
            size = stated
        case .link: size = UInt64(target?.count ?? 0)
        default: size = 0
        }
        var item = Item(
            identifier: identifier, parent: parent, name: name, kind: kind, size: size,
            metadata: try metadata(document, kind, shown, now),
            version: try version(document, kind, shown), target: target)
        item.isGuess = document.modified == nil && kind != .folder
        return item
    }

    package static func identifier(_ text: String) throws(Nonsense) -> ItemIdentifier {
        guard isPlain(text) else {
            throw Nonsense("gives an identifier that is empty, has control characters or is over 1024 bytes")
        }
        return ItemIdentifier(text)
    }

    /// Of identifiers, versions, anchors and page tokens alike.
    package static func isPlain(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= identifierByteCountMax && !text.utf8.contains { $0 < 0x20 || $0 == 0x7F }
    }

    private static let kinds: [String: NodeKind] = ["file": .file, "folder": .folder, "link": .link]

    static func kind(_ word: String) -> NodeKind? { kinds[word] }

    static func word(_ kind: NodeKind) -> String { kinds.first { $0.value == kind }?.key ?? "file" }

    private static func target(
        _ document: ExtensionItemDocument, _ kind: NodeKind, _ shown: String
    ) throws(Nonsense) -> [UInt8]? {
        guard kind == .link else { return nil }
        guard let target = document.target.flatMap({ PercentText.decoded($0) }), !target.isEmpty, !target.contains(0),
            target.count <= targetByteCountMax
        else { throw Nonsense("says of the link \(shown) no target that can be") }
        return target
    }

    private static func version(
        _ document: ExtensionItemDocument, _ kind: NodeKind, _ shown: String
    ) throws(Nonsense) -> ContentVersion {
        if kind == .folder { return ContentVersion("folder") }
        guard let version = document.version, isPlain(version) else { throw Nonsense("says no version of \(shown)") }
        return ContentVersion(version)
    }

    private static func metadata(
        _ document: ExtensionItemDocument, _ kind: NodeKind, _ shown: String, _ now: Timestamp
    ) throws(Nonsense) -> Metadata {
        let mode = document.mode ?? (kind == .folder ? 0o755 : kind == .link ? 0o777 : 0o644)
        guard mode <= 0o7777 else { throw Nonsense("gives \(shown) a mode with more than permission bits") }
        return Metadata(
            mode: mode, owner: document.owner ?? geteuid(), group: document.group ?? getegid(),
            modificationTime: document.modified.map { Timestamp(nanoseconds: $0) }
                ?? (kind == .folder ? .zero : now))
    }
}
