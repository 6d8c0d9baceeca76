package import FoundationEssentials
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
    /// Of a lock that holds it.
    package var lockToken: String?
    package var lockOwner: String?
    package var syncToken: String?
    /// Of properties that are not there, or that the server refuses to tell or to change.
    package var refusals: Set<Int> = []
}

/// Reads a multi-status reply, which is whole in memory: one of 100,000 resources is 60 MB, for a moment.
package final class MultiStatusParser: XMLVisitor {
    /// The name space of what this program keeps with a resource.
    static let ownSpace = "urn:promisefs"

    private enum Element: String, CaseIterable {
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
        case keptState = "urn:promisefs state"
    }

    private static let names = XMLNames<Element>()

    private var resources: [ResourceStatus] = []
    private var current: ResourceStatus?
    /// Of the `propstat` being read; applied when it ends with a status of success.
    private var properties = ResourceStatus()
    private var propertiesStatus: Int?
    /// Those that are open; nil for one that nobody asked for.
    private var elements: [Element?] = []
    private var isWhole = false

    /// Nil when the document is cut off or no multi-status. Blocking.
    package static func parse(_ document: Data) -> [ResourceStatus]? {
        let reader = MultiStatusParser()
        guard XMLReader.read(document, for: reader), reader.isWhole else { return nil }
        return reader.resources
    }

    package func began(_ name: XMLBytes) {
        let element = MultiStatusParser.names.name(name)
        let parent = elements.last ?? nil
        elements.append(element)
        switch element {
        case .response: current = ResourceStatus()
        case .properties:
            properties = ResourceStatus()
            propertiesStatus = nil
        case .collection where parent == .kind: properties.isCollection = true
        default: break
        }
    }

    package func ended(_ name: XMLBytes, text: XMLBytes) {
        guard let element = elements.removeLast() else { return }
        let parent = elements.last ?? nil
        switch element {
        case .multistatus: isWhole = true
        case .properties: applyProperties()
        case .response:
            if let current { resources.append(current) }
            current = nil
        case .reference:
            let value = text.trimmedText
            switch parent {
            case .response: if current?.reference.isEmpty == true { current?.reference = value }
            case .lockToken: properties.lockToken = value
            // An owner may be an address.
            case .owner: properties.lockOwner = value
            default: break
            }
        case .status:
            let status = text.trimmedText.split(separator: " ").dropFirst().first.flatMap { Int($0) }
            if parent == .properties { propertiesStatus = status } else { current?.status = status }
        default: noteProperty(element, text.trimmedText)
        }
    }

    private func noteProperty(_ element: Element, _ value: String) {
        guard !value.isEmpty else { return }
        switch element {
        case .entityTag: properties.entityTag = value
        case .contentLength: properties.contentLength = UInt64(value)
        case .lastModified: properties.lastModified = value
        case .quotaAvailable: properties.quotaAvailable = UInt64(value)
        case .quotaUsed: properties.quotaUsed = UInt64(value)
        case .owner where properties.lockOwner == nil: properties.lockOwner = value
        case .syncToken: properties.syncToken = value
        case .keptState: properties.keptState = value
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
