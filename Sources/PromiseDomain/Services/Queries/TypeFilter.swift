import PromiseCore

/// Which documents somebody can use: uniform type identifiers and MIME types, of which a document's
/// type is one or a kind of one, and ends of names, as `*.txt`. Told by the name; content is never looked at.
struct TypeFilter {
    private let types: [String]
    private let mediaTypes: [String]
    /// In lower case, with the dot.
    private let suffixes: [[UInt8]]

    init(_ types: [String]) {
        // As a shell has it: whatever there is.
        let types = types.contains { ["*", "*.*"].contains($0) } ? [] : types
        suffixes = types.filter { $0.hasPrefix("*.") }.map { Array($0.dropFirst().lowercased().utf8) }
        self.types = types.filter { !$0.contains("/") && !$0.hasPrefix("*.") }
        mediaTypes = types.filter { $0.contains("/") }.map { $0.lowercased() }
    }

    /// Folders are always admitted, as one goes through them.
    func admits(_ name: FileName, _ kind: NodeKind) -> Bool {
        if kind == .folder || types.isEmpty && mediaTypes.isEmpty && suffixes.isEmpty { return true }
        guard kind == .file || kind == .link else { return false }
        if suffixes.contains(where: { hasSuffix(name, $0) }) { return true }
        let tree = ContentType.of(name, .file).tree
        if types.contains(where: { tree.contains($0) }) { return true }
        guard !mediaTypes.isEmpty else { return false }
        return mediaTypes.contains { MediaTypes.shared.conforms(name, to: $0) }
    }

    private func hasSuffix(_ name: FileName, _ suffix: [UInt8]) -> Bool {
        guard name.bytes.count > suffix.count else { return false }
        return zip(name.bytes.suffix(suffix.count), suffix).allSatisfy { byte, wanted in
            (byte &- 0x41 < 26 ? byte | 0x20 : byte) == wanted
        }
    }
}
