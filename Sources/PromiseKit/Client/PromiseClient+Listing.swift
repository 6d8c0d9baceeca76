import NIOCore
public import PromiseWire

/// What of a folder is listed, and in which order.
public struct FolderListing: Sendable, Hashable {
    public enum Key: String, Sendable, CaseIterable { case name, date, size, kind, state, tags }

    public enum Scope: Sendable, Hashable {
        /// Bytes from the root of the domain.
        case folder([UInt8])
        /// Every name of the domain that has `text` in it.
        case everywhere
        /// What was used last on this machine, newest first.
        case recent
    }

    public var scope: Scope
    public var key = Key.name
    public var isDescending = false
    /// Only names that have this in them, whatever their case and accents.
    public var text = ""
    /// Uniform type identifiers and MIME types: only documents of one of them, or of a kind of one.
    public var types: [String] = []
    public var showsHidden = false
    public var foldersOnly = false

    public init(_ scope: Scope) { self.scope = scope }
}

extension PromiseClient {
    /// A part of a list, in order. Folders come first. No content is fetched; a folder that was
    /// never listed is asked for.
    public func window(
        of listing: FolderListing, offset: Int = 0, limit: Int = 200
    ) async throws(PromiseError) -> FolderWindowDocument {
        func plain(_ text: String) -> String {
            PercentCoding.encode(Array(text.utf8)).replacingSlashes()
        }
        var fields = ["offset=\(offset)", "limit=\(limit)"]
        switch listing.scope {
        case .folder(let path): fields.append("path=/" + PercentCoding.encode(path))
        case .everywhere: fields.append("scope=everywhere")
        case .recent: fields.append("scope=recent")
        }
        fields.append("sort=\(listing.isDescending ? "-" : "")\(listing.key.rawValue)")
        if !listing.text.isEmpty { fields.append("text=\(plain(listing.text))") }
        if !listing.types.isEmpty {
            fields.append("types=\(plain(listing.types.joined(separator: ",")))")
        }
        if listing.showsHidden { fields.append("hidden=true") }
        if listing.foldersOnly { fields.append("folders=true") }
        return try await reply(
            "GET", "items/children?" + fields.joined(separator: "&"), deadline: .minutes(1))
    }
}
