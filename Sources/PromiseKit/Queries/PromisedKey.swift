/// What can be asked of an item without its content, as NSURLResourceKey; types and units are in docs/QUERIES.md.
///
///     let values = try await client.promisedValues([.size, .isUploaded], of: [Array("report.pdf".utf8)])
public struct PromisedKey: RawRepresentable, Hashable, Sendable {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }

    public static let name = PromisedKey(rawValue: "kMDItemFSName")
    public static let displayName = PromisedKey(rawValue: "kMDItemDisplayName")
    public static let path = PromisedKey(rawValue: "kMDItemPath")
    public static let size = PromisedKey(rawValue: "kMDItemFSSize")
    public static let contentChangeDate = PromisedKey(rawValue: "kMDItemFSContentChangeDate")
    public static let creationDate = PromisedKey(rawValue: "kMDItemFSCreationDate")
    public static let contentModificationDate = PromisedKey(rawValue: "kMDItemContentModificationDate")
    public static let contentCreationDate = PromisedKey(rawValue: "kMDItemContentCreationDate")
    public static let attributeChangeDate = PromisedKey(rawValue: "kMDItemAttributeChangeDate")
    public static let lastUsedDate = PromisedKey(rawValue: "kMDItemLastUsedDate")
    public static let contentType = PromisedKey(rawValue: "kMDItemContentType")
    public static let contentTypeTree = PromisedKey(rawValue: "kMDItemContentTypeTree")
    public static let owner = PromisedKey(rawValue: "kMDItemFSOwnerUserID")
    public static let group = PromisedKey(rawValue: "kMDItemFSOwnerGroupID")
    public static let isInvisible = PromisedKey(rawValue: "kMDItemFSInvisible")
    public static let nodeNumber = PromisedKey(rawValue: "kMDItemFSNodeID")
    public static let userTags = PromisedKey(rawValue: "kMDItemUserTags")
    public static let isUbiquitous = PromisedKey(rawValue: "NSMetadataItemIsUbiquitousKey")
    public static let downloadingStatus = PromisedKey(rawValue: "NSMetadataUbiquitousItemDownloadingStatusKey")
    public static let isDownloading = PromisedKey(rawValue: "NSMetadataUbiquitousItemIsDownloadingKey")
    public static let percentDownloaded = PromisedKey(rawValue: "NSMetadataUbiquitousItemPercentDownloadedKey")
    public static let isUploaded = PromisedKey(rawValue: "NSMetadataUbiquitousItemIsUploadedKey")
    public static let isUploading = PromisedKey(rawValue: "NSMetadataUbiquitousItemIsUploadingKey")
    public static let percentUploaded = PromisedKey(rawValue: "NSMetadataUbiquitousItemPercentUploadedKey")
    public static let downloadingError = PromisedKey(rawValue: "NSMetadataUbiquitousItemDownloadingErrorKey")
    public static let uploadingError = PromisedKey(rawValue: "NSMetadataUbiquitousItemUploadingErrorKey")
    public static let hasUnresolvedConflicts = PromisedKey(rawValue: "NSMetadataUbiquitousItemHasUnresolvedConflictsKey")
    public static let isExternalDocument = PromisedKey(rawValue: "NSMetadataUbiquitousItemIsExternalDocumentKey")
    public static let containerDisplayName = PromisedKey(rawValue: "NSMetadataUbiquitousItemContainerDisplayNameKey")
    public static let locationInContainer = PromisedKey(rawValue: "NSMetadataUbiquitousItemURLInLocalContainerKey")
    public static let nameBytes = PromisedKey(rawValue: "promisefs.nameBytes")
    public static let pathBytes = PromisedKey(rawValue: "promisefs.pathBytes")
    public static let kind = PromisedKey(rawValue: "promisefs.kind")
    public static let state = PromisedKey(rawValue: "promisefs.state")
    public static let pin = PromisedKey(rawValue: "promisefs.pin")
    public static let identifier = PromisedKey(rawValue: "promisefs.identifier")
    public static let version = PromisedKey(rawValue: "promisefs.version")
    public static let localBytes = PromisedKey(rawValue: "promisefs.localBytes")
    public static let mode = PromisedKey(rawValue: "promisefs.mode")
    public static let links = PromisedKey(rawValue: "promisefs.links")
    public static let linkTarget = PromisedKey(rawValue: "promisefs.linkTarget")

    public static let all: [PromisedKey] = [
        .name, .displayName, .path, .size, .contentChangeDate, .creationDate, .contentModificationDate,
        .contentCreationDate, .attributeChangeDate, .lastUsedDate, .contentType, .contentTypeTree, .owner, .group,
        .isInvisible, .nodeNumber, .userTags, .isUbiquitous, .downloadingStatus, .isDownloading, .percentDownloaded,
        .isUploaded, .isUploading, .percentUploaded, .downloadingError, .uploadingError, .hasUnresolvedConflicts,
        .isExternalDocument, .containerDisplayName, .locationInContainer, .nameBytes, .pathBytes, .kind,
        .state, .pin, .identifier, .version,
        .localBytes, .mode, .links, .linkTarget,
    ]
}
