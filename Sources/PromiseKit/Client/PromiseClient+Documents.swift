import Foundation
import NIOCore
public import PromiseWire

// What an application keeps in a domain besides values.

extension PromiseClient {
    /// The containers that may be seen, and whether the domain can be used now; that waits for
    /// nobody.
    public func containers() async throws(PromiseError) -> ContainersDocument {
        try await reply("GET", "containers", deadline: .minutes(1))
    }

    /// An application's own folder: that which it has on any machine, or a new one. `name` is what
    /// people call it.
    public func addContainer(
        for application: String, name: String? = nil, isPublic: Bool? = nil, icon: [UInt8]? = nil
    ) async throws(PromiseError) -> ContainerDocument {
        let request = ContainerRequest(
            application: application, name: name, isPublic: isPublic,
            icon: icon.map { Data($0).base64EncodedString() })
        return try await reply("POST", "containers", request, deadline: .minutes(1))
    }

    /// The PNG that was given as `icon`. Throws `.refused` with the code `notFound` when there is
    /// none.
    public func containerIcon(of application: String) async throws(PromiseError) -> [UInt8] {
        let query = PercentCoding.encode(Array(application.utf8)).replacingSlashes()
        return try await picture("containers/icon?application=\(query)")
    }

    /// Events `availability`, each with an `AvailabilityDocument`: how it is now, and then whenever
    /// the domain becomes reachable or not, or somebody else's.
    public func availabilityEvents() async throws(PromiseError) -> ServerEvents {
        try await stream("GET", "availability/events")
    }

    /// The folder stays, and is an ordinary one. Returns what it was.
    @discardableResult
    public func removeContainer(
        of application: String
    ) async throws(PromiseError) -> ContainerDocument {
        let query = PercentCoding.encode(Array(application.utf8)).replacingSlashes()
        return try await reply("DELETE", "containers?application=\(query)", deadline: .minutes(1))
    }

    /// A view of the domain for one launch of an application, for `promisefs-view` to come for.
    /// `isForSession`: one that holds nobody up who unmounts the domain. `isOfCaller`: this process
    /// becomes `promisefs-view`, and nobody is waited for when it has ended before.
    public func openView(
        for application: String, isForSession: Bool = false, isOfCaller: Bool = false
    ) async throws(PromiseError) -> ViewDocument {
        let request = ViewRequest(application: application, isForSession: isForSession, isOfCaller: isOfCaller)
        return try await reply("POST", "views", request, deadline: .minutes(1))
    }

    // MARK: References

    /// Makes a link that stands for a document of the domain and follows it: at `place`, or in it
    /// where that is a folder. Paths are from the root of the domain.
    public func addReference(
        to document: [UInt8], at place: [UInt8]
    ) async throws(PromiseError) -> ReferenceDocument {
        let request = ReferenceRequest(
            target: PercentCoding.encode(document), path: PercentCoding.encode(place))
        return try await reply("POST", "references", request, deadline: .minutes(5))
    }

    /// The same for a document of another domain, which is asked what to say of it.
    public func addReference(
        to document: [UInt8], of other: PromiseClient, at place: [UInt8]
    ) async throws(PromiseError) -> ReferenceDocument {
        let card: ReferenceCardDocument = try await other.reply(
            "GET", "references/card?path=\(PercentCoding.encode(document))", deadline: .minutes(5))
        let request = ReferenceRequest(path: PercentCoding.encode(place), record: card.record)
        return try await reply("POST", "references", request, deadline: .minutes(5))
    }

    /// Where the document of this domain is that a reference in another one, whose link says `record`,
    /// stands for. The daemon asks nobody.
    public func lead(
        of record: String, bound: String?, within limit: Duration = .seconds(1)
    ) async throws(PromiseError) -> ReferenceLeadDocument {
        let request = ReferenceLeadRequest(record: record, bound: bound)
        let (seconds, rest) = limit.components
        let milliseconds = seconds * 1_000 + rest / 1_000_000_000_000_000
        return try await reply(
            "POST", "references/lead", request, deadline: .milliseconds(milliseconds))
    }

    /// Below a folder, as far as it is known on this machine, with why those that lead nowhere do.
    public func references(below folder: [UInt8] = []) async throws(PromiseError)
        -> [ReferenceDocument]
    {
        let document: ReferencesDocument = try await reply(
            "GET", "references?path=\(PercentCoding.encode(folder))", deadline: .minutes(5))
        return document.references
    }

    /// The document stays.
    @discardableResult
    public func removeReference(at place: [UInt8]) async throws(PromiseError) -> ReferenceDocument {
        try await reply(
            "DELETE", "references?path=\(PercentCoding.encode(place))", deadline: .minutes(1))
    }

    // MARK: Adopting

    /// Gives the domain the content of files that it has without content: those of `folder`, an absolute path outside of
    /// the mount, at the same paths below `place`, where they are the same by size and time. Nothing is fetched or sent.
    public func adopt(
        _ files: [[UInt8]], of folder: [UInt8], below place: [UInt8] = []
    ) async throws(PromiseError) -> AdoptionDocument {
        let request = AdoptionRequest(
            folder: PercentCoding.encode(folder), path: PercentCoding.encode(place),
            files: files.map { PercentCoding.encode($0) })
        return try await reply("POST", "adopt", request, deadline: .hours(24))
    }

    // MARK: Bookmarks

    /// One line that finds an item again on this machine, whatever it is called then. It is of use
    /// to that application alone; nil: to the owner. `attributes` are kept in it, nil: name, type,
    /// size, date and path.
    public func bookmark(
        of path: [UInt8], for application: String?, isReadOnly: Bool = false,
        attributes: [PromisedKey]? = nil
    ) async throws(PromiseError) -> String {
        let request = BookmarkRequest(
            path: PercentCoding.encode(path), application: application, isReadOnly: isReadOnly,
            attributes: attributes?.map(\.rawValue))
        let document: BookmarkDocument = try await reply(
            "POST", "bookmarks", request, deadline: .minutes(1))
        return document.bookmark
    }

    /// What it leads to, or why nowhere, with the attributes that it carries and, where it is
    /// stale, the renewed one.
    public func resolve(
        bookmark: String, for application: String?
    ) async throws(PromiseError) -> ResolvedBookmarkDocument {
        let request = BookmarkResolution(bookmark: bookmark, application: application)
        return try await reply("POST", "bookmarks/resolve", request, deadline: .minutes(2))
    }
}

extension PromiseClient {
    // MARK: Grants

    /// What applications were given, or one of them; an application sees its own.
    public func grants(of application: String? = nil) async throws(PromiseError) -> GrantsDocument {
        let query = application.map { "?application=\(PromiseClient.field($0))" } ?? ""
        return try await reply("GET", "grants\(query)", deadline: .minutes(1))
    }

    public func grant(_ id: Int64) async throws(PromiseError) -> GrantDocument {
        try await reply("GET", "grants/\(id)", deadline: .minutes(1))
    }

    /// Gives an application an item, and what is below it where that is a folder. `until`: a date, as
    /// RFC 3339 has it; nil: until it is revoked, or with `launch` until that ends. Only the owner may.
    public func give(
        _ path: [UInt8], to application: String, isReadOnly: Bool = false, until: String? = nil,
        launch: String? = nil
    ) async throws(PromiseError) -> GrantDocument {
        let request = GrantRequest(
            path: "/" + PercentCoding.encode(path), application: application,
            rights: isReadOnly ? "read" : "read-write", until: until, launch: launch)
        return try await reply("POST", "grants", request, deadline: .minutes(1))
    }

    /// Hands a grant on to another application: never more of it, and for no longer.
    public func passOn(
        _ id: Int64, to application: String, isReadOnly: Bool = true, until: String? = nil
    ) async throws(PromiseError) -> GrantDocument {
        let request = GrantPassing(
            application: application, rights: isReadOnly ? "read" : "read-write", until: until)
        return try await reply("POST", "grants/\(id)/pass", request, deadline: .minutes(1))
    }

    /// With all that was made from it; returns what went.
    @discardableResult
    public func revoke(_ id: Int64) async throws(PromiseError) -> [GrantDocument] {
        let document: GrantsDocument = try await reply(
            "DELETE", "grants/\(id)", deadline: .minutes(1))
        return document.grants
    }

    @discardableResult
    public func revokeAll(of application: String) async throws(PromiseError) -> [GrantDocument] {
        let document: GrantsDocument = try await reply(
            "DELETE", "grants?application=\(PromiseClient.field(application))",
            deadline: .minutes(1))
        return document.grants
    }

    /// The newest lines of the audit log, oldest first. Only the owner may.
    public func audit(
        of application: String? = nil, limit: Int = 1_000
    ) async throws(PromiseError) -> [AuditLineDocument] {
        let about = application.map { "&application=\(PromiseClient.field($0))" } ?? ""
        let document: AuditDocument = try await reply(
            "GET", "grants/audit?limit=\(limit)\(about)", deadline: .minutes(1))
        return document.lines
    }

    /// Ends one access that resolving a bookmark has started; returns how many are left.
    @discardableResult
    public func stopScope(_ scope: Int64) async throws(PromiseError) -> Int {
        let document: ScopeDocument = try await reply(
            "POST", "scopes/\(scope)/stop", deadline: .seconds(30))
        return document.remaining
    }

    private static func field(_ text: String) -> String {
        PercentCoding.encode(Array(text.utf8)).replacingSlashes()
    }
}
