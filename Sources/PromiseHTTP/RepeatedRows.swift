import Foundation

/// What a listing says, with every row a second time behind the last one: as of a storage whose index changes while it is read.
package enum RepeatedRows {
    /// Of a multi-status (RFC 4918) and of a bucket's listing.
    private static let elements: Set<String> = ["response", "Contents", "CommonPrefixes"]
    /// Of a page of an extension's.
    private static let key = "items"

    /// Nil for what is no listing, and one of nothing.
    package static func of(_ document: [UInt8]) -> [UInt8]? { ofJSON(document) ?? ofXML(document) }

    private static func ofJSON(_ document: [UInt8]) -> [UInt8]? {
        guard var page = try? JSONSerialization.jsonObject(with: Data(document)) as? [String: Any],
            let rows = page[key] as? [Any], !rows.isEmpty
        else { return nil }
        page[key] = rows + rows
        return (try? JSONSerialization.data(withJSONObject: page)).map { Array($0) }
    }

    /// Rows are not in one another.
    private static func ofXML(_ document: [UInt8]) -> [UInt8]? {
        var rows: [ArraySlice<UInt8>] = []
        var position = document.startIndex
        while let start = document[position...].firstIndex(of: UInt8(ascii: "<")) {
            position = start + 1
            let name = document[position...].prefix { !" \t\r\n/>".utf8.contains($0) }
            let text = String(decoding: name, as: UTF8.self)
            guard elements.contains(text.split(separator: ":").last.map(String.init) ?? "") else { continue }
            guard let end = document.end(of: Array("</\(text)>".utf8), behind: name.endIndex) else { return nil }
            rows.append(document[start..<end])
            position = end
        }
        guard let last = rows.last else { return nil }
        return Array(document[..<last.endIndex] + rows.joined() + document[last.endIndex...])
    }
}

extension [UInt8] {
    /// Where the first of these bytes behind `position` end.
    fileprivate func end(of bytes: [UInt8], behind position: Int) -> Int? {
        var position = position
        while position + bytes.count <= count {
            if self[position..<position + bytes.count].elementsEqual(bytes) { return position + bytes.count }
            position += 1
        }
        return nil
    }
}
