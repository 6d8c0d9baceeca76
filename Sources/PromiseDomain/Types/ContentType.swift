import PromiseCore

/// What an item's content is, told from its name: a Uniform Type Identifier and what it is a kind of. Content is never
/// looked at.
struct ContentType {
    let identifier: String
    /// The identifier itself first.
    let tree: [String]

    private init(_ identifier: String, _ parents: [String]) {
        self.identifier = identifier
        tree = [identifier] + parents
    }

    private static let folder = ContentType("public.folder", ["public.directory", "public.item"])
    private static let link = ContentType("public.symlink", ["public.resolvable", "public.item"])
    private static let data = ContentType("public.data", ["public.item"])

    static func of(_ name: FileName, _ kind: NodeKind) -> ContentType {
        switch kind {
        case .folder: folder
        case .link: link
        case .file: fileExtension(name).flatMap { byExtension[$0] } ?? data
        case .fifo, .socket, .characterDevice, .blockDevice: ContentType("public.item", [])
        }
    }

    /// In lower case; nil for a name without one, or that begins with its only dot.
    private static func fileExtension(_ name: FileName) -> String? {
        guard let dot = name.bytes.lastIndex(of: UInt8(ascii: ".")), dot > 0, name.bytes.count - dot <= 10 else { return nil }
        return String(decoding: name.bytes[(dot + 1)...].map { $0 &- 0x41 < 26 ? $0 | 0x20 : $0 }, as: UTF8.self)
    }

    /// The published list, with what it lacks.
    private static let byExtension: [String: ContentType] = {
        var result: [String: ContentType] = [:]
        var parents: [String] = []
        var isReading = false
        for line in (UniformTypes.table + "\n" + missing).split(separator: "\n") {
            let words = line.split(separator: " ").map(String.init)
            if words.first == "<" {
                parents = (isReading ? parents : []) + words.dropFirst()
                isReading = true
                continue
            }
            isReading = false
            for word in words {
                let parts = word.split(separator: "=")
                guard parts.count == 2 else { continue }
                let type = ContentType(String(parts[0]), parents)
                for suffix in parts[1].split(separator: ",") { result[String(suffix)] = type }
            }
        }
        return result
    }()

    private static let missing = """
        < public.plain-text public.text public.data public.item public.content
        net.daringfireball.markdown=markdown
        < public.movie public.audiovisual-content public.data public.item public.content
        org.matroska.mkv=mkv
        """
}
