/// `GET /v1/items/children`: a part of a folder's listing.
public struct FolderWindowDocument: Codable, Sendable, Equatable {
    /// Of all the listing, as far as it is known.
    public var total: Int
    /// Folders first. `attributes` has the type, the tags and how much of the content is here.
    public var items: [FoundItemDocument]
    /// Why something may be missing.
    public var reason: String?

    public init(total: Int, items: [FoundItemDocument], reason: String?) {
        self.total = total
        self.items = items
        self.reason = reason
    }
}
