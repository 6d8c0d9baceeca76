import CExpat
package import FoundationEssentials
import Glibc

/// The bytes of a name or of a text; they last as long as the call that gets them.
package typealias XMLBytes = UnsafeBufferPointer<UInt8>

/// Is told of the elements of a document, in order.
package protocol XMLVisitor: AnyObject {
    /// A name is its name space and, after a space, the local name.
    func began(_ name: XMLBytes)
    /// `text` is what was between the tag before and this one.
    func ended(_ name: XMLBytes, text: XMLBytes)
}

/// Reads a document with expat (expat.h), which makes no objects of it: a listing has a million elements.
package enum XMLReader {
    /// False when the document is cut off or no XML. Blocking.
    package static func read(_ document: Data, for visitor: any XMLVisitor) -> Bool {
        guard let stream = XMLStream(for: visitor) else { return false }
        return document.withUnsafeBytes { stream.read($0, isLast: true) }
    }
}

/// Reads a document as it comes, piece by piece.
package final class XMLStream {
    private let parser: XML_Parser
    /// What the parser has a pointer to.
    private let telling: Telling
    private var byteCount = 0

    /// Nil when there is no memory for it.
    package init?(for visitor: any XMLVisitor) {
        guard let parser = XML_ParserCreateNS(nil, XML_Char(UInt8(ascii: " "))) else { return nil }
        self.parser = parser
        telling = Telling(visitor, parser)
        XML_SetUserData(parser, Unmanaged.passUnretained(telling).toOpaque())
        XML_SetElementHandler(parser, began, ended)
        XML_SetCharacterDataHandler(parser, characters)
        XML_SetEntityDeclHandler(parser, declared)
    }

    deinit { XML_ParserFree(parser) }

    /// False when this is no XML, the last piece and the document is cut off, or it is beyond all measure. Blocking.
    package func read(_ bytes: UnsafeRawBufferPointer, isLast: Bool = false) -> Bool {
        var rest = bytes
        repeat {
            let piece = UnsafeRawBufferPointer(rebasing: rest.prefix(XMLLimits.pieceByteCount))
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(piece.count))
            let start = piece.baseAddress?.assumingMemoryBound(to: CChar.self)
            let isEnd = isLast && rest.isEmpty
            guard XML_Parse(parser, start, Int32(piece.count), isEnd ? 1 : 0) == XML_STATUS_OK else { return false }
            byteCount += piece.count
            // expat keeps a tag, or whatever else is one thing, until it has come to its end.
            guard isEnd || byteCount - Int(XML_GetCurrentByteIndex(parser)) <= XMLLimits.tokenByteCountMax else { return false }
        } while !rest.isEmpty
        return true
    }
}

/// What no server's answer has, and what only takes memory: 5 MiB of open tags are 400 MiB in the parser.
private enum XMLLimits {
    static let depthMax = 64
    static let attributesMax = 64
    static let textByteCountMax = 1 << 20
    static let tokenByteCountMax = 1 << 20
    static let pieceByteCount = 256 << 10
}

/// Gathers the text, which comes in pieces.
private final class Telling {
    let visitor: any XMLVisitor
    private let parser: XML_Parser
    var text: [UInt8] = []
    var depth = 0

    init(_ visitor: any XMLVisitor, _ parser: XML_Parser) { (self.visitor, self.parser) = (visitor, parser) }

    /// `XML_Parse` says that it failed.
    func stop() { XML_StopParser(parser, 0) }

    static func of(_ context: UnsafeMutableRawPointer?) -> Telling? {
        context.map { Unmanaged<Telling>.fromOpaque($0).takeUnretainedValue() }
    }
}

private func bytes(_ name: UnsafePointer<XML_Char>) -> XMLBytes {
    let start = UnsafeRawPointer(name).assumingMemoryBound(to: UInt8.self)
    var count = 0
    while start[count] != 0 { count += 1 }
    return XMLBytes(start: start, count: count)
}

private func began(
    _ context: UnsafeMutableRawPointer?, _ name: UnsafePointer<XML_Char>?,
    _ attributes: UnsafeMutablePointer<UnsafePointer<XML_Char>?>?
) {
    guard let telling = Telling.of(context), let name else { return }
    telling.depth += 1
    var count = 0
    while let attributes, attributes[2 * count] != nil, count <= XMLLimits.attributesMax { count += 1 }
    guard telling.depth <= XMLLimits.depthMax, count <= XMLLimits.attributesMax else { return telling.stop() }
    telling.text.removeAll(keepingCapacity: true)
    telling.visitor.began(bytes(name))
}

/// Nobody's answer declares what `&name;` stands for.
private func declared(
    _ context: UnsafeMutableRawPointer?, _ name: UnsafePointer<XML_Char>?, _ isParameter: Int32,
    _ value: UnsafePointer<XML_Char>?, _ count: Int32, _ base: UnsafePointer<XML_Char>?,
    _ system: UnsafePointer<XML_Char>?, _ publicName: UnsafePointer<XML_Char>?, _ notation: UnsafePointer<XML_Char>?
) {
    Telling.of(context)?.stop()
}

private func ended(_ context: UnsafeMutableRawPointer?, _ name: UnsafePointer<XML_Char>?) {
    guard let telling = Telling.of(context), let name else { return }
    telling.depth -= 1
    telling.text.withUnsafeBufferPointer { telling.visitor.ended(bytes(name), text: $0) }
    telling.text.removeAll(keepingCapacity: true)
}

private func characters(_ context: UnsafeMutableRawPointer?, _ text: UnsafePointer<XML_Char>?, _ count: Int32) {
    guard let telling = Telling.of(context), let text else { return }
    let start = UnsafeRawPointer(text).assumingMemoryBound(to: UInt8.self)
    guard telling.text.count + Int(count) <= XMLLimits.textByteCountMax else { return telling.stop() }
    telling.text.append(contentsOf: XMLBytes(start: start, count: Int(count)))
}

/// Tells the names that somebody knows without making a string of each that comes.
package struct XMLNames<Name: RawRepresentable<String> & CaseIterable & Sendable>: Sendable {
    private let names = Array(Name.allCases)
    private let table = NameTable(names: Name.allCases.map { Array($0.rawValue.utf8) })

    package init() {}

    /// Nil for all others.
    package func name(_ bytes: XMLBytes) -> Name? { table.index(of: bytes).map { names[$0] } }
}

/// Not generic, so that it is as fast for other modules.
private struct NameTable: Sendable {
    private let names: [[UInt8]]
    /// Of the names of so many bytes: a document's other names mostly have another length.
    private let places: [[Int]]

    init(names: [[UInt8]]) {
        self.names = names
        var places: [[Int]] = Array(repeating: [], count: 1 + (names.map(\.count).max() ?? 0))
        for (place, name) in names.enumerated() { places[name.count].append(place) }
        self.places = places
    }

    /// No name is empty.
    func index(of bytes: XMLBytes) -> Int? {
        guard let start = bytes.baseAddress, bytes.count < places.count else { return nil }
        return places[bytes.count].first { place in
            names[place].withUnsafeBufferPointer { memcmp($0.baseAddress!, start, bytes.count) == 0 }
        }
    }
}

extension XMLBytes {
    /// Without white space at both ends.
    package var trimmed: XMLBytes {
        var (start, end) = (startIndex, endIndex)
        while start < end, self[start] <= UInt8(ascii: " ") { start += 1 }
        while start < end, self[end - 1] <= UInt8(ascii: " ") { end -= 1 }
        return XMLBytes(rebasing: self[start..<end])
    }

    package var trimmedText: String { String(decoding: trimmed, as: UTF8.self) }
}
