package import FoundationEssentials
package import PromiseHTTP

/// An answer of an S3 server: a root element with values in it, and rows, which are elements with values in them. What is
/// nested deeper is of no use here.
package final class S3Document: XMLVisitor {
    package struct Row: Equatable {
        package var name: String
        package var values: [String: String] = [:]
    }

    /// Of the root element.
    package private(set) var name = ""
    package private(set) var values: [String: String] = [:]
    package private(set) var rows: [Row] = []

    /// No answer that was asked for has as many: what a server invents is not kept without end.
    private static let (rowCountMax, valueCountMax) = (20_000, 100)
    private var isTooLarge = false

    private var depth = 0
    private var row = Row(name: "")
    private var isWhole = false

    /// Nil when the document is cut off, no XML, or has more in it than can have been asked for. Blocking.
    package static func parse(_ data: Data) -> S3Document? {
        let document = S3Document()
        return XMLReader.read(data, for: document) && document.isWhole && !document.isTooLarge ? document : nil
    }

    package func began(_ name: XMLBytes) {
        depth += 1
        if depth == 1 { self.name = S3Document.localName(name) }
        if depth == 2 { row = Row(name: S3Document.localName(name)) }
    }

    package func ended(_ name: XMLBytes, text: XMLBytes) {
        switch depth {
        case 1: isWhole = true
        case 2 where row.values.isEmpty: keep(text, as: row.name, in: &values)
        case 2 where rows.count < S3Document.rowCountMax: rows.append(row)
        case 2: isTooLarge = true
        case 3: keep(text, as: S3Document.localName(name), in: &row.values)
        default: break
        }
        depth -= 1
    }

    private func keep(_ text: XMLBytes, as name: String, in values: inout [String: String]) {
        if values.count < S3Document.valueCountMax || values[name] != nil {
            values[name] = String(decoding: text, as: UTF8.self)
        } else {
            isTooLarge = true
        }
    }

    /// Servers disagree about the name space.
    private static func localName(_ name: XMLBytes) -> String {
        let start = name.lastIndex(of: UInt8(ascii: " ")).map { $0 + 1 } ?? 0
        return String(decoding: name[start...], as: UTF8.self)
    }
}
