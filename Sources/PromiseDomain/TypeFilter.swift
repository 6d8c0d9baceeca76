import PromiseCore

/// Which documents somebody can use: uniform type identifiers and MIME types, of which a document's
/// type is one or a kind of one. Told by the name; content is never looked at.
struct TypeFilter {
    private let types: [String]
    private let mediaTypes: [String]

    init(_ types: [String]) {
        self.types = types.filter { !$0.contains("/") }
        mediaTypes = types.filter { $0.contains("/") }.map { $0.lowercased() }
    }

    /// Folders are always admitted, as one goes through them.
    func admits(_ name: FileName, _ kind: NodeKind) -> Bool {
        if kind == .folder || types.isEmpty && mediaTypes.isEmpty { return true }
        guard kind == .file || kind == .link else { return false }
        let tree = ContentType.of(name, .file).tree
        if types.contains(where: { tree.contains($0) }) { return true }
        guard !mediaTypes.isEmpty else { return false }
        return mediaTypes.contains { MediaTypes.shared.conforms(name, to: $0) }
    }
}
