/// The body of `POST /v1/links`.
public struct LinkRequest: Codable, Sendable, Hashable {
    /// From the root of the mount, percent-encoded bytes.
    public var path: String
    /// When it ends, as RFC 3339 has it, or a date; missing: as late as the provider lets it.
    public var until: String?

    public init(path: String, until: String? = nil) { (self.path, self.until) = (path, until) }
}

/// A link by which anybody reaches an item at the provider.
public struct LinkDocument: Codable, Sendable, Hashable {
    /// What it is revoked by; missing: it cannot be.
    public var id: String?
    public var url: String
    /// From the root of the mount, for people; missing: it is not known.
    public var path: String?
    /// The same, percent-encoded bytes.
    public var pathBytes: String?
    /// When it ends; missing: when it is revoked.
    public var until: String?

    public init(id: String?, url: String, path: String?, pathBytes: String?, until: String?) {
        (self.id, self.url, self.path, self.pathBytes, self.until) = (id, url, path, pathBytes, until)
    }
}

/// The answer to `GET /v1/links`.
public struct LinksDocument: Codable, Sendable, Hashable {
    public var links: [LinkDocument]

    public init(links: [LinkDocument]) { self.links = links }
}
