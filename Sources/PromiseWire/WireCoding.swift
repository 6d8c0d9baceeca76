import FoundationEssentials

/// JSON as both ends write and read it: keys sorted, so that equal documents are equal text.
public enum WireCoding {
    /// The version in every path: `/v1/…`. Fields may be added within a version; none changes its meaning.
    public static let version = "v1"

    /// One line. Traps when a document cannot be encoded: they hold nothing but text, numbers and truth values.
    public static func text(_ document: some Encodable) -> String {
        String(decoding: bytes(document), as: UTF8.self)
    }

    public static func bytes(_ document: some Encodable) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        do {
            return Array(try encoder.encode(document))
        } catch {
            preconditionFailure("a wire document can always be encoded: \(error)")
        }
    }

    /// Nil when the bytes are not such a document.
    public static func decode<Document: Decodable>(_ type: Document.Type, from bytes: some Collection<UInt8>) -> Document? {
        try? JSONDecoder().decode(type, from: Data(bytes))
    }
}
