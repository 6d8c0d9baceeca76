import NIOCore
import PromiseWire

/// One version of a document, as NSFileVersion.
public struct FileVersion: Sendable, Hashable, Identifiable {
    public enum Kind: String, Sendable {
        /// What the document's name shows.
        case current
        /// What the provider has, where that is another one.
        case provider
        /// The other side of a conflict, which is a file beside the document until somebody deals with it.
        case conflict
        /// What the document was before, as the provider has kept it.
        case earlier
    }

    /// The same as long as the version is there, also for another process and after a restart.
    public let id: String
    public let kind: Kind
    /// Bytes from the root of the domain; that of a `conflict` can be read there, and is fetched then.
    public let path: [UInt8]
    /// The provider's name of the content; nil before the provider has it.
    public let contentVersion: String?
    /// In bytes.
    public let size: UInt64
    /// RFC 3339, in UTC.
    public let modificationTime: String
    /// The content is on this machine.
    public let hasLocalContents: Bool
    /// Another one after every write; nil for what has no name here.
    public let state: String?

    public var isConflict: Bool { kind == .conflict }

    init?(_ document: VersionDocument) {
        guard let kind = Kind(rawValue: document.kind), let path = PercentCoding.decode(document.pathBytes) else { return nil }
        id = document.identifier
        self.kind = kind
        self.path = Array(path.drop { $0 == 0x2F })
        contentVersion = document.version
        size = document.size
        modificationTime = document.modificationTime
        hasLocalContents = document.isLocal
        state = document.state
    }
}

/// The versions of documents, and what is done with those that conflicts have left. Paths are bytes from the root of the domain.
///
///     let versions = FileVersions(client)
///     for version in try await versions.unresolved(of: path) where isOlder(version) {
///         try await versions.remove(version, of: path)
///     }
///
/// What changes something waits for claims and asks presenters, and throws `PromiseError`: of status 4 when somebody does not let
/// go, of status 6 when what would go was written since it was listed, `notFound` when the version is no unresolved one any
/// more. Presenters of the document are told of what was done.
public struct FileVersions: Sendable {
    public let client: PromiseClient
    /// Claims and presenters of this purpose are neither waited for nor asked. By default
    /// `FileCoordinator.inheritedPurpose`.
    public let purpose: String?

    public init(_ client: PromiseClient, purpose: String? = nil) {
        self.client = client
        self.purpose = FileCoordinator.said(purpose) ?? FileCoordinator.inheritedPurpose
    }

    /// The current version first. Nothing is fetched.
    public func all(of path: [UInt8]) async throws(PromiseError) -> [FileVersion] {
        try await client.versions(of: path).versions.compactMap { FileVersion($0) }
    }

    /// What the document was before, the newest first, as far as the provider has kept it; the provider is asked.
    public func earlier(of path: [UInt8]) async throws(PromiseError) -> [FileVersion] {
        try await client.versionsAndEarlier(of: path).versions.compactMap { FileVersion($0) }.filter { $0.kind == .earlier }
    }

    /// The bytes of an `earlier` version, given to `take` as they come.
    public func contents(
        of version: FileVersion, take: @Sendable ([UInt8]) throws -> Void
    ) async throws(PromiseError) {
        try await client.contents(ofEarlier: version.id, of: version.path, take: take)
    }

    public func unresolved(of path: [UInt8]) async throws(PromiseError) -> [FileVersion] {
        try await all(of: path).filter(\.isConflict)
    }

    /// The version's content becomes the document's, which stays the same item; the version, and what the document was, go.
    /// `listed`: what this was decided on, the current version among them; nil: as they are now.
    public func replaceItem(
        at path: [UInt8], with version: FileVersion, of listed: [FileVersion]? = nil
    ) async throws(PromiseError) {
        try await act("replace", version.id, path, listed)
    }

    /// The version goes; nil: all unresolved ones, those of `listed`, or as they are now.
    public func remove(
        _ version: FileVersion? = nil, of path: [UInt8], listed: [FileVersion]? = nil
    ) async throws(PromiseError) {
        try await act("remove", version?.id, path, listed ?? version.map { [$0] })
    }

    /// The version stays, as a document of its own; nil: all unresolved ones.
    public func markResolved(_ version: FileVersion? = nil, of path: [UInt8]) async throws(PromiseError) {
        try await act("markResolved", version?.id, path, nil)
    }

    private func act(
        _ action: String, _ version: String?, _ path: [UInt8], _ listed: [FileVersion]?
    ) async throws(PromiseError) {
        let request = VersionsRequest(
            path: "/" + PercentCoding.encode(path), action: action, version: version, purpose: purpose,
            states: listed?.compactMap(\.state))
        // A version that replaces is fetched first.
        let _: VersionsDocument = try await client.reply("POST", "items/versions", request, deadline: .hours(24))
    }
}
