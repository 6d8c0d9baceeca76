package import Foundation
package import FoundationXML

/// An answer of an S3 server: a root element with values in it, and rows, which are elements with values in them. What is
/// nested deeper is of no use here.
package final class S3Document: NSObject, XMLParserDelegate {
    package struct Row: Equatable {
        package var name: String
        package var values: [String: String] = [:]
    }

    /// Of the root element.
    package private(set) var name = ""
    package private(set) var values: [String: String] = [:]
    package private(set) var rows: [Row] = []

    private var depth = 0
    private var row = Row(name: "")
    private var text = ""
    private var isWhole = false

    /// Nil when the document is cut off or no XML. Blocking.
    package static func parse(_ data: Data) -> S3Document? {
        let document = S3Document()
        let parser = XMLParser(data: data)
        parser.shouldProcessNamespaces = true
        parser.delegate = document
        // The parser is content with a document that ends in the middle.
        return parser.parse() && document.isWhole ? document : nil
    }

    package func parser(
        _ parser: XMLParser, didStartElement element: String, namespaceURI: String?, qualifiedName: String?,
        attributes: [String: String]
    ) {
        depth += 1
        text = ""
        if depth == 1 { name = element }
        if depth == 2 { row = Row(name: element) }
    }

    package func parser(_ parser: XMLParser, foundCharacters string: String) { text += string }

    package func parser(_ parser: XMLParser, foundCDATA block: Data) { text += String(decoding: block, as: UTF8.self) }

    package func parser(_ parser: XMLParser, didEndElement element: String, namespaceURI: String?, qualifiedName: String?) {
        switch depth {
        case 1: isWhole = true
        case 2 where row.values.isEmpty: values[element] = text
        case 2: rows.append(row)
        case 3: row.values[element] = text
        default: break
        }
        depth -= 1
        text = ""
    }
}
