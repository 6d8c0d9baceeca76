import Glibc
package import PromiseCore
import PromiseSystem

/// Pictures of documents, beside the content: `FOLDER/12ab.picture` is of node 0x12ab. It begins with a line that says of which
/// content (`PictureKey`): a document that has changed has no picture. Evicting content leaves it.
///
/// One that was not told to the provider yet has `12ab.unsent` beside it. `12ab.kept` says what the provider's copy is called,
/// also when the document has gone, until that was removed.
///
/// Pictures can be made again, so nothing here is synced. Thread-safe; replaced by renaming.
package struct ThumbnailStore: Sendable {
    package static let byteCountMax = 8 << 20
    private static let lineCountMax = 4_096

    private let folder: [UInt8]

    package init(folder: [UInt8]) { self.folder = folder }

    /// PNG; nil when there is none of the document as it is.
    package func picture(of node: NodeID, _ key: PictureKey) -> [UInt8]? {
        guard let bytes = readSmallFile(path(node), countMax: ThumbnailStore.byteCountMax + ThumbnailStore.lineCountMax),
            let end = keyEnd(bytes, key)
        else { return nil }
        return Array(bytes[end...])
    }

    package func has(_ node: NodeID, _ key: PictureKey) -> Bool {
        guard let start = readSmallFile(path(node), countMax: ThumbnailStore.lineCountMax) else { return false }
        return keyEnd(start, key) != nil
    }

    /// Where the picture begins; nil when it is of other content.
    private func keyEnd(_ bytes: [UInt8], _ key: PictureKey) -> Int? {
        guard let newline = bytes.prefix(ThumbnailStore.lineCountMax).firstIndex(of: 0x0A),
            let found = PictureKey(line: bytes[..<newline]), found.isSameContent(as: key)
        else { return nil }
        return newline + 1
    }

    /// Replaces the one there was. `isUnsent`: the provider is to be told of it.
    package func keep(
        _ picture: [UInt8], of node: NodeID, _ key: PictureKey, isUnsent: Bool
    ) throws(Failure) {
        // Two may be kept at once.
        let draft = path(node) + Array(".new-\(UInt64.random(in: 0 ... .max))".utf8)
        do throws(SystemError) {
            try makeFolders(folder, label: "thumbnail.folder")
            if isUnsent {
                _ = try Descriptor.open(
                    mark(node), flags: O_WRONLY | O_CREAT, mode: 0o600, label: "thumbnail.mark")
            }
            let file = try Descriptor.open(
                draft, flags: O_WRONLY | O_CREAT | O_TRUNC, mode: 0o600, label: "thumbnail.create")
            let line = key.text
            try writeFully(file.number, line, at: 0, label: "thumbnail.line")
            try writeFully(file.number, picture, at: UInt64(line.count), label: "thumbnail.write")
            try rename(draft, to: path(node), label: "thumbnail.rename")
        } catch {
            throw Failure(error)
        }
    }

    /// The same content is called otherwise now.
    package func renew(_ picture: [UInt8], of node: NodeID, _ key: PictureKey) throws(Failure) {
        if let start = readSmallFile(path(node), countMax: ThumbnailStore.lineCountMax), start.starts(with: key.text) { return }
        try keep(picture, of: node, key, isUnsent: true)
    }

    /// Removes the pictures of nodes that have gone. Returns how many.
    package func sweep(isThere: (NodeID) -> Bool) -> Int {
        var count = 0
        for name in names() {
            // What the provider keeps of one that has gone is known until it was removed there.
            if let (node, suffix) = parts(of: name), suffix == "kept" || ["picture", "unsent"].contains(suffix) && isThere(node) {
                continue
            }
            if (try? unlink(folder + [0x2F] + name, label: "thumbnail.sweep.remove")) != nil { count += 1 }
        }
        return count
    }

    /// Nodes whose pictures the provider was not told of.
    package func unsent() -> Set<NodeID> {
        Set(names().compactMap { name in parts(of: name).flatMap { $0.suffix == "unsent" ? $0.node : nil } })
    }

    /// The provider has it, or is not to have it any more.
    package func markSent(_ node: NodeID) { try? unlink(mark(node), label: "thumbnail.sent") }

    package func markUnsent(_ node: NodeID) {
        _ = try? Descriptor.open(mark(node), flags: O_WRONLY | O_CREAT, mode: 0o600, label: "thumbnail.mark.again")
    }

    /// What is noted of pictures that the provider keeps, whether their documents are there or not.
    package func kept() -> [NodeID: String] {
        var notes: [NodeID: String] = [:]
        for name in names() {
            guard let (node, suffix) = parts(of: name), suffix == "kept",
                let bytes = readSmallFile(place(node, "kept"), countMax: ThumbnailStore.lineCountMax)
            else { continue }
            notes[node] = String(decoding: bytes, as: UTF8.self)
        }
        return notes
    }

    /// Nil: it keeps none any more.
    package func noteKept(_ note: String?, of node: NodeID) {
        if let note {
            try? makeFolders(folder, label: "thumbnail.kept.folder")
            try? replaceSmallFile(place(node, "kept"), with: Array(note.utf8))
        } else {
            try? unlink(place(node, "kept"), label: "thumbnail.kept.remove")
        }
    }

    /// Another storage takes the provider's place: it has none of these, as far as is known.
    package func forgetProvider() {
        for node in Set(names().compactMap { name in parts(of: name).flatMap { $0.suffix == "picture" ? $0.node : nil } }) {
            markUnsent(node)
        }
        for node in kept().keys { noteKept(nil, of: node) }
    }

    private func names() -> [[UInt8]] {
        guard let open = try? Descriptor.open(folder, flags: O_RDONLY | O_DIRECTORY, label: "thumbnail.sweep.open"),
            let names = try? listFolder(open, label: "thumbnail.sweep.list")
        else { return [] }
        return names.map(\.name)
    }

    private func parts(of name: [UInt8]) -> (node: NodeID, suffix: Substring)? {
        let parts = String(decoding: name, as: UTF8.self).split(separator: ".")
        guard parts.count == 2, let number = UInt64(parts[0], radix: 16) else { return nil }
        return (NodeID(number), parts[1])
    }

    private func path(_ node: NodeID) -> [UInt8] { place(node, "picture") }
    private func mark(_ node: NodeID) -> [UInt8] { place(node, "unsent") }

    private func place(_ node: NodeID, _ suffix: String) -> [UInt8] {
        folder + Array("/\(String(node.rawValue, radix: 16)).\(suffix)".utf8)
    }
}
