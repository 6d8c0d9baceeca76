package import FoundationEssentials
import PromiseCore
package import PromiseHTTP

/// One `response` of a multi-status reply (RFC 4918, section 14.24): what a server says of one resource.
package struct ResourceStatus: Equatable, Sendable {
    /// As it came, percent-encoded.
    package var reference = ""
    /// Of the resource as a whole, when the server gives one instead of properties.
    package var status: Int?
    package var isCollection = false
    package var entityTag: String?
    package var contentLength: UInt64?
    package var lastModified: String?
    package var quotaAvailable: UInt64?
    package var quotaUsed: UInt64?
    /// What this program keeps with the resource: see `KeptState`.
    package var keptState: String?
    /// Of a folder: something may be kept with what is in it.
    package var keeps = false
    /// Of a lock that holds it.
    package var lockToken: String?
    package var lockOwner: String?
    package var syncToken: String?
    /// What the server calls it wherever it is (ownCloud, Nextcloud).
    package var number: String?
    /// Of what was removed: see `NextcloudBin`.
    package var trash: Trash?
    /// Of properties that are not there, or that the server refuses to tell or to change.
    package var refusals: Set<Int> = []

    package struct Trash: Equatable, Sendable {
        /// Where it was, from the user's root.
        package var place: String?
        /// When it was removed, in seconds.
        package var time: String?
    }
}

/// Reads a multi-status reply.
package final class MultiStatusParser: XMLVisitor {
    /// The name space of what this program keeps with a resource.
    static let ownSpace = "urn:promisefs"

    fileprivate enum Element: String, CaseIterable {
        case multistatus = "DAV: multistatus"
        case response = "DAV: response"
        case reference = "DAV: href"
        case status = "DAV: status"
        case properties = "DAV: propstat"
        case kind = "DAV: resourcetype"
        case collection = "DAV: collection"
        case entityTag = "DAV: getetag"
        case contentLength = "DAV: getcontentlength"
        case lastModified = "DAV: getlastmodified"
        case quotaAvailable = "DAV: quota-available-bytes"
        case quotaUsed = "DAV: quota-used-bytes"
        case lockToken = "DAV: locktoken"
        case owner = "DAV: owner"
        case syncToken = "DAV: sync-token"
        case number = "http://owncloud.org/ns fileid"
        case trashPlace = "http://nextcloud.org/ns trashbin-original-location"
        case trashTime = "http://nextcloud.org/ns trashbin-deletion-time"
        case otherTrashPlace = "http://owncloud.org/ns trashbin-original-location"
        case otherTrashTime = "http://owncloud.org/ns trashbin-delete-timestamp"
        case keptState = "urn:promisefs state"
        case keeps = "urn:promisefs keeps"
    }

    private static let names = XMLNames<Element>()

    private var reading = Reading()

    package init() {}

    /// As many as fit into the longest answer that is held as a whole, from a server that means no
    /// harm; an empty one costs 25 times what it takes in the answer.
    package static let rowCountMax = 150_000

    /// Nil when the document is cut off, no multi-status, or has more rows than can be. Blocking.
    package static func parse(_ document: Data) -> [ResourceStatus]? {
        let parser = MultiStatusParser()
        parser.reading.rowCountMax = rowCountMax
        guard XMLReader.read(document, for: parser), parser.isWhole, !parser.reading.hasTooMany
        else { return nil }
        return parser.takeResources()
    }

    /// The end has been read.
    var isWhole: Bool { reading.isWhole }

    /// Those that were read since the last call.
    func takeResources() -> [ResourceStatus] {
        defer { reading.resources.removeAll(keepingCapacity: true) }
        return reading.resources
    }

    package func began(_ name: XMLBytes) { reading.began(MultiStatusParser.names.name(name)) }
    package func ended(_ name: XMLBytes, text: XMLBytes) { reading.ended(text) }
}

/// How far a multi-status reply has been read.
private struct Reading {
    typealias Element = MultiStatusParser.Element

    var resources: [ResourceStatus] = []
    /// Of those that nobody has taken.
    var rowCountMax = Int.max
    private(set) var hasTooMany = false
    private(set) var isWhole = false
    private var current: ResourceStatus?
    /// As it was before the `propstat` being read, whose status comes last: what was refused says nothing.
    private var before = ResourceStatus()
    private var propertiesStatus: Int?
    /// Those that are open; nil for one that nobody asked for.
    private var elements: [Element?] = []

    mutating func began(_ element: Element?) {
        let parent = elements.last ?? nil
        elements.append(element)
        switch element {
        case .response: current = ResourceStatus()
        case .properties:
            before = current ?? ResourceStatus()
            propertiesStatus = nil
        case .collection where parent == .kind: current?.isCollection = true
        default: break
        }
    }

    mutating func ended(_ text: XMLBytes) {
        guard let element = elements.removeLast() else { return }
        let parent = elements.last ?? nil
        switch element {
        case .multistatus: isWhole = true
        case .kind, .collection: break
        case .properties:
            guard let propertiesStatus, !(200..<300).contains(propertiesStatus) else { break }
            before.refusals.insert(propertiesStatus)
            current = before
        case .response:
            if resources.count >= rowCountMax {
                hasTooMany = true
            } else if let current {
                resources.append(current)
            }
            current = nil
        case .reference:
            switch parent {
            case .response: if current?.reference.isEmpty == true { current?.reference = text.trimmedText }
            case .lockToken: current?.lockToken = text.trimmedText
            // An owner may be an address.
            case .owner: current?.lockOwner = text.trimmedText
            default: break
            }
        case .status: if parent == .properties { propertiesStatus = text.statusCode } else { current?.status = text.statusCode }
        // A path, and names may begin and end with spaces.
        case .trashPlace, .otherTrashPlace:
            noteProperty(element, String(decoding: text, as: UTF8.self))
        default: noteProperty(element, text.trimmedText)
        }
    }

    private mutating func noteProperty(_ element: Element, _ value: String) {
        guard !value.isEmpty else { return }
        switch element {
        case .entityTag: current?.entityTag = value
        case .contentLength: current?.contentLength = ItemSize.read(value)
        case .lastModified: current?.lastModified = value
        case .quotaAvailable: current?.quotaAvailable = UInt64(value)
        case .quotaUsed: current?.quotaUsed = UInt64(value)
        case .owner where current?.lockOwner == before.lockOwner: current?.lockOwner = value
        case .syncToken: current?.syncToken = value
        case .number: current?.number = value
        case .trashPlace, .otherTrashPlace: noteTrash { $0.place = value }
        case .trashTime, .otherTrashTime: noteTrash { $0.time = value }
        case .keptState: current?.keptState = value
        case .keeps: current?.keeps = true
        default: break
        }
    }

    private mutating func noteTrash(_ note: (inout ResourceStatus.Trash) -> Void) {
        var trash = current?.trash ?? ResourceStatus.Trash()
        note(&trash)
        current?.trash = trash
    }
}

extension XMLBytes {
    /// Of a status line, `HTTP/1.1 200 OK`: three digits (RFC 9112, section 4).
    fileprivate var statusCode: Int? {
        let words = trimmed.drop { $0 != UInt8(ascii: " ") }.drop { $0 == UInt8(ascii: " ") }
        let digits = words.prefix { $0 > UInt8(ascii: " ") }
        guard digits.count == 3 else { return nil }
        return Int(String(decoding: digits, as: UTF8.self))
    }
}
