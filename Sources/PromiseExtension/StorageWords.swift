import PromiseCore

/// What an extension says that people read on a terminal and type again, believing nothing that
/// cannot be.
enum StorageWords {
    private static let addressByteCountMax = 8192
    /// PATH_MAX, each byte written with three.
    private static let pathByteCountMax = 3 * 4096

    /// A name of a link, a version or a removed item: 1 to 1024 visible characters of ASCII.
    static func isWord(_ text: String) -> Bool {
        text != "." && text != ".." && isVisible(text, upTo: ItemReading.identifierByteCountMax)
    }

    /// What a browser opens.
    static func isAddress(_ text: String) -> Bool {
        (text.hasPrefix("https://") || text.hasPrefix("http://"))
            && isVisible(text, upTo: addressByteCountMax)
    }

    private static func isVisible(_ text: String, upTo limit: Int) -> Bool {
        !text.isEmpty && text.utf8.count <= limit
            && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }

    /// From the root: names that are percent-encoded each, after a slash each. Nil for what is
    /// none.
    static func path(_ text: String) -> [FileName]? {
        // By bytes: a slash before a combining mark is a slash.
        let slash = UInt8(ascii: "/")
        guard text.utf8.first == slash, text.utf8.count <= pathByteCountMax else { return nil }
        var names: [FileName] = []
        for part in text.utf8.split(separator: slash) {
            guard let name = PercentText.decoded(Substring(part)).flatMap({ FileName($0) }) else {
                return nil
            }
            names.append(name)
        }
        return names
    }
}
