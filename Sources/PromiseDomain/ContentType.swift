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

    private static let byExtension: [String: ContentType] = {
        let content = ["public.data", "public.item", "public.content"]
        let text = ["public.text"] + content
        var result: [String: ContentType] = [:]
        func add(_ extensions: String, _ identifier: String, _ parents: [String]) {
            for word in extensions.split(separator: " ") { result[String(word)] = ContentType(identifier, parents) }
        }
        add("txt text log", "public.plain-text", text)
        add("md markdown", "net.daringfireball.markdown", ["public.plain-text"] + text)
        add("html htm", "public.html", text)
        add("xml", "public.xml", text)
        add("json", "public.json", text)
        add("csv", "public.comma-separated-values-text", ["public.delimited-values-text", "public.plain-text"] + text)
        add("rtf", "public.rtf", text)
        add("swift", "public.swift-source", ["public.source-code", "public.plain-text"] + text)
        add("c", "public.c-source", ["public.source-code", "public.plain-text"] + text)
        add("h", "public.c-header", ["public.source-code", "public.plain-text"] + text)
        add("py", "public.python-script", ["public.script", "public.source-code", "public.plain-text"] + text)
        add("sh", "public.shell-script", ["public.script", "public.source-code", "public.plain-text"] + text)
        add("pdf", "com.adobe.pdf", ["public.composite-content"] + content)
        add("jpg jpeg", "public.jpeg", ["public.image"] + content)
        add("png", "public.png", ["public.image"] + content)
        add("gif", "com.compuserve.gif", ["public.image"] + content)
        add("tif tiff", "public.tiff", ["public.image"] + content)
        add("webp", "org.webmproject.webp", ["public.image"] + content)
        add("heic", "public.heic", ["public.image"] + content)
        add("svg", "public.svg-image", ["public.image", "public.xml"] + text)
        add("mp3", "public.mp3", ["public.audio", "public.audiovisual-content"] + content)
        add("flac", "org.xiph.flac", ["public.audio", "public.audiovisual-content"] + content)
        add("wav", "com.microsoft.waveform-audio", ["public.audio", "public.audiovisual-content"] + content)
        add("mp4 m4v", "public.mpeg-4", ["public.movie", "public.audiovisual-content"] + content)
        add("mov", "com.apple.quicktime-movie", ["public.movie", "public.audiovisual-content"] + content)
        add("mkv", "org.matroska.mkv", ["public.movie", "public.audiovisual-content"] + content)
        add("zip", "public.zip-archive", ["public.archive", "public.data", "public.item"])
        add("tar", "public.tar-archive", ["public.archive", "public.data", "public.item"])
        add("gz", "org.gnu.gnu-zip-archive", ["public.archive", "public.data", "public.item"])
        add("docx", "org.openxmlformats.wordprocessingml.document", ["public.composite-content"] + content)
        add("xlsx", "org.openxmlformats.spreadsheetml.sheet", ["public.spreadsheet"] + content)
        add("pptx", "org.openxmlformats.presentationml.presentation", ["public.presentation"] + content)
        add("odt", "org.oasis-open.opendocument.text", ["public.composite-content"] + content)
        add("ods", "org.oasis-open.opendocument.spreadsheet", ["public.spreadsheet"] + content)
        return result
    }()
}
