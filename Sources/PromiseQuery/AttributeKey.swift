/// What can be asked about an item, by the names that NSMetadata gives it where it has one.
///
/// Raw values are an outside contract. Types and units are in docs/QUERIES.md.
package enum AttributeKey: String, CaseIterable, Hashable, Sendable {
    case name = "kMDItemFSName"
    case displayName = "kMDItemDisplayName"
    case path = "kMDItemPath"
    case size = "kMDItemFSSize"
    case contentChangeDate = "kMDItemFSContentChangeDate"
    case creationDate = "kMDItemFSCreationDate"
    case contentModificationDate = "kMDItemContentModificationDate"
    case contentCreationDate = "kMDItemContentCreationDate"
    case attributeChangeDate = "kMDItemAttributeChangeDate"
    case lastUsedDate = "kMDItemLastUsedDate"
    case contentType = "kMDItemContentType"
    case contentTypeTree = "kMDItemContentTypeTree"
    case owner = "kMDItemFSOwnerUserID"
    case group = "kMDItemFSOwnerGroupID"
    case isInvisible = "kMDItemFSInvisible"
    case nodeNumber = "kMDItemFSNodeID"
    case isUbiquitous = "NSMetadataItemIsUbiquitousKey"
    case downloadingStatus = "NSMetadataUbiquitousItemDownloadingStatusKey"
    case isDownloading = "NSMetadataUbiquitousItemIsDownloadingKey"
    case isUploaded = "NSMetadataUbiquitousItemIsUploadedKey"
    case isUploading = "NSMetadataUbiquitousItemIsUploadingKey"
    case hasUnresolvedConflicts = "NSMetadataUbiquitousItemHasUnresolvedConflictsKey"
    case percentDownloaded = "NSMetadataUbiquitousItemPercentDownloadedKey"
    case percentUploaded = "NSMetadataUbiquitousItemPercentUploadedKey"
    case downloadingError = "NSMetadataUbiquitousItemDownloadingErrorKey"
    case uploadingError = "NSMetadataUbiquitousItemUploadingErrorKey"
    case isExternalDocument = "NSMetadataUbiquitousItemIsExternalDocumentKey"
    case containerDisplayName = "NSMetadataUbiquitousItemContainerDisplayNameKey"
    case locationInContainer = "NSMetadataUbiquitousItemURLInLocalContainerKey"
    case nameBytes = "promisefs.nameBytes"
    case pathBytes = "promisefs.pathBytes"
    case kind = "promisefs.kind"
    case state = "promisefs.state"
    case pin = "promisefs.pin"
    case identifier = "promisefs.identifier"
    case version = "promisefs.version"
    case localBytes = "promisefs.localBytes"
    case userTags = "kMDItemUserTags"
    case mode = "promisefs.mode"
    case links = "promisefs.links"
    case linkTarget = "promisefs.linkTarget"

    package enum Kind: Sendable { case text, number, truth, time, texts }

    package var kind: Kind {
        switch self {
        case .name, .displayName, .path, .contentType, .downloadingStatus, .downloadingError, .uploadingError,
            .containerDisplayName, .locationInContainer, .nameBytes, .pathBytes, .kind,
            .state, .pin, .identifier, .version, .linkTarget:
            .text
        case .size, .owner, .group, .nodeNumber, .percentDownloaded, .percentUploaded, .localBytes, .mode, .links: .number
        case .contentChangeDate, .creationDate, .contentModificationDate, .contentCreationDate, .attributeChangeDate,
            .lastUsedDate:
            .time
        case .isInvisible, .isUbiquitous, .isDownloading, .isUploaded, .isUploading, .hasUnresolvedConflicts,
            .isExternalDocument:
            .truth
        case .contentTypeTree, .userTags: .texts
        }
    }

    /// Also by NSMetadata's own spelling of the file system keys and without `Key` at the end.
    package init?(spelled text: String) {
        if let key = AttributeKey(rawValue: text) ?? AttributeKey(rawValue: text + "Key") {
            self = key
            return
        }
        switch text {
        case "NSMetadataItemFSNameKey": self = .name
        case "NSMetadataItemDisplayNameKey": self = .displayName
        case "NSMetadataItemPathKey": self = .path
        case "NSMetadataItemFSSizeKey": self = .size
        case "NSMetadataItemFSContentChangeDateKey": self = .contentChangeDate
        case "NSMetadataItemFSCreationDateKey": self = .creationDate
        case "NSMetadataItemContentTypeKey": self = .contentType
        case "NSMetadataItemContentTypeTreeKey": self = .contentTypeTree
        default: return nil
        }
    }
}

/// Where a predicate gets an item's attributes from.
package protocol AttributeSource {
    /// `.null` for what is not known.
    func value(of key: AttributeKey) -> QueryValue
}
