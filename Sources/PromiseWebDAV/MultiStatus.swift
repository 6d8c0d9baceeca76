package import Foundation
package import FoundationXML

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
    /// Of a lock that holds it.
    package var lockToken: String?
    package var lockOwner: String?
    package var syncToken: String?
    /// Of properties that are not there, or that the server refuses to tell or to change.
    package var refusals: Set<Int> = []
}

/// Reads a multi-status reply.
///
/// Not streamed: the parser of Foundation wants the whole document. A reply of 100,000 resources is 60 MB, for a moment.
package final class MultiStatusParser: NSObject, XMLParserDelegate {
    /// The name space of what this program keeps with a resource.
    static let ownSpace = "urn:promisefs"

    private var resources: [ResourceStatus] = []
    private var current: ResourceStatus?
    /// Of the `propstat` being read; applied when it ends with a status of success.
    private var properties = ResourceStatus()
    private var propertiesStatus: Int?
    private var elements: [String] = []
    private var text = ""
    private var isWhole = false

    /// Nil when the document is cut off or no multi-status. Blocking: seconds for a large one.
    package static func parse(_ document: Data) -> [ResourceStatus]? {
        let reader = MultiStatusParser()
        let parser = XMLParser(data: document)
        parser.shouldProcessNamespaces = true
        parser.delegate = reader
        // The parser is content with a document that ends in the middle.
        guard parser.parse(), reader.isWhole, reader.elements.isEmpty else { return nil }
        return reader.resources
    }

    package func parser(
        _ parser: XMLParser, didStartElement name: String, namespaceURI: String?, qualifiedName: String?,
        attributes: [String: String]
    ) {
        let element = (namespaceURI ?? "") + " " + name
        elements.append(element)
        text = ""
        switch element {
        case "DAV: response": current = ResourceStatus()
        case "DAV: propstat":
            properties = ResourceStatus()
            propertiesStatus = nil
        case "DAV: collection" where parent == "DAV: resourcetype": properties.isCollection = true
        default: break
        }
    }

    package func parser(_ parser: XMLParser, foundCharacters string: String) { text += string }

    package func parser(_ parser: XMLParser, foundCDATA block: Data) { text += String(decoding: block, as: UTF8.self) }

    package func parser(_ parser: XMLParser, didEndElement name: String, namespaceURI: String?, qualifiedName: String?) {
        let element = (namespaceURI ?? "") + " " + name
        if elements.last == element { elements.removeLast() }
        defer { text = "" }
        let value = text.trimmingCharacters(in: .whitespacesAndNewlines)
        switch element {
        case "DAV: href":
            switch elements.last {
            case "DAV: response": if current?.reference.isEmpty == true { current?.reference = value }
            case "DAV: locktoken": properties.lockToken = value
            // An owner may be an address.
            case "DAV: owner": properties.lockOwner = value
            default: break
            }
        case "DAV: status":
            let status = value.split(separator: " ").dropFirst().first.flatMap { Int($0) }
            if elements.last == "DAV: propstat" { propertiesStatus = status } else { current?.status = status }
        case "DAV: multistatus": isWhole = true
        case "DAV: propstat": applyProperties()
        case "DAV: response":
            if let current { resources.append(current) }
            current = nil
        default: noteProperty(element, value)
        }
    }

    private var parent: String { elements.dropLast().last ?? "" }

    private func noteProperty(_ element: String, _ value: String) {
        guard !value.isEmpty else { return }
        switch element {
        case "DAV: getetag": properties.entityTag = value
        case "DAV: getcontentlength": properties.contentLength = UInt64(value)
        case "DAV: getlastmodified": properties.lastModified = value
        case "DAV: quota-available-bytes": properties.quotaAvailable = UInt64(value)
        case "DAV: quota-used-bytes": properties.quotaUsed = UInt64(value)
        case "DAV: owner" where properties.lockOwner == nil: properties.lockOwner = value
        case "DAV: sync-token": properties.syncToken = value
        case "\(MultiStatusParser.ownSpace) state": properties.keptState = value
        default: break
        }
    }

    private func applyProperties() {
        guard let old = current else { return }
        if let propertiesStatus, !(200..<300).contains(propertiesStatus) {
            current?.refusals.insert(propertiesStatus)
            return
        }
        var new = properties
        new.refusals = old.refusals
        new.reference = old.reference
        new.status = old.status
        new.isCollection = old.isCollection || new.isCollection
        new.entityTag = new.entityTag ?? old.entityTag
        new.contentLength = new.contentLength ?? old.contentLength
        new.lastModified = new.lastModified ?? old.lastModified
        new.quotaAvailable = new.quotaAvailable ?? old.quotaAvailable
        new.quotaUsed = new.quotaUsed ?? old.quotaUsed
        new.keptState = new.keptState ?? old.keptState
        new.lockToken = new.lockToken ?? old.lockToken
        new.lockOwner = new.lockOwner ?? old.lockOwner
        new.syncToken = new.syncToken ?? old.syncToken
        current = new
    }
}
