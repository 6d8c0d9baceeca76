import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider

extension Expectation {
    /// Of a PUT, where the server honours them.
    func conditions(_ traits: ServerTraits) -> HTTPHeaders {
        guard traits.honoursConditionsOnPut else { return [:] }
        return switch self {
        case .nothing: ["If-None-Match": "*"]
        case .version(let version): ["If-Match": "\"\(version.rawValue)\""]
        case .anything: [:]
        }
    }
}

/// The right to write to a place, while a body runs.
struct WriteTurn: Sendable {
    /// Of the place.
    var url: String
    var token: String?
    /// For a server without locks.
    var conditions: HTTPHeaders = [:]
    /// The lock made an empty file of a free name.
    var hasMadeFile = false
    /// What has the place, where it was looked at.
    var found: ResourceStatus?

    /// What is to be kept with new content: mode and owners are those of what has the place, if they
    /// are to stay.
    func kept(
        _ metadata: Metadata?, keepsRights: Bool, _ path: [FileName], _ items: WebDAVItems
    ) throws(ProviderError) -> Metadata? {
        guard keepsRights, var found else { return metadata }
        // Its size is not what is kept.
        if found.contentLength == nil { found.contentLength = 0 }
        var changes = ItemChanges(metadata: metadata)
        changes.keepsRights = true
        let present = try items.item(found, path: path, parent: nil).metadata
        return changes.metadata(over: present, isContentNew: true)
    }

    /// For a request to the place itself.
    var headers: HTTPHeaders {
        var headers = conditions
        if let token { headers.add(name: "If", value: WriteTurn.condition(url, token)) }
        return headers
    }

    /// Of a request that failed. Apache answers 400, too, where it has lost the lock; a
    /// multi-status tells of another one.
    static func status(of reply: HTTPReply, isLocked: Bool) -> Int {
        switch reply.status {
        case 207: 423
        case 400 where isLocked: 412
        default: reply.status
        }
    }

    /// Tagged with the place that is locked: untagged it would have to hold for the folder, too.
    static func condition(_ url: String, _ token: String) -> String { "<\(url)> (<\(token)>)" }

    /// The place must have this version (RFC 4918, section 10.4).
    static func condition(_ url: String, has version: ContentVersion) -> String {
        "<\(url)> ([\"\(version.rawValue)\"])"
    }
}
