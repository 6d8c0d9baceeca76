import PromiseAccess
package import PromiseCore
import PromiseHTTP
import PromiseIndex
import PromiseQuery

/// What is known of one name of an item: the answer to every key a predicate may ask for.
struct ItemAttributes: AttributeSource {
    /// What costs a look beyond the row of the item.
    struct Needs: OptionSet {
        let rawValue: UInt8
        static let path = Needs(rawValue: 1)
        static let state = Needs(rawValue: 2)
        static let progress = Needs(rawValue: 4)
        static let tags = Needs(rawValue: 8)
        static let all: Needs = [.path, .state, .progress, .tags]

        init(rawValue: UInt8) { self.rawValue = rawValue }

        init(_ keys: Set<AttributeKey>) {
            self = []
            for key in keys {
                switch key {
                case .path, .pathBytes, .locationInContainer: insert(.path)
                case .state, .isUploaded, .isUploading, .percentUploaded, .hasUnresolvedConflicts, .uploadingError: insert(.state)
                case .percentDownloaded, .isDownloading, .downloadingError: insert(.progress)
                case .userTags: insert(.tags)
                default: break
                }
            }
        }
    }

    let item: IndexedItem
    let domainName: String
    var path: [FileName]?
    var state: ItemState?
    var isPending = false
    var error: String?
    /// 0 to 1 while content is on its way here.
    var progress: Double?
    /// While content is being sent.
    var uploadProgress: Double?
    /// Why content did not come.
    var downloadingError: String?
    /// The extended attribute `user.xdg.tags` (freedesktop.org, CommonExtendedAttributes): words with commas between them.
    var tags: [UInt8]?

    func value(of key: AttributeKey) -> QueryValue {
        let node = item.node
        switch key {
        case .name, .displayName: return .text(item.entry.name.utf8)
        case .path: return path.map { .text($0.flatMap { [UInt8(ascii: "/")] + $0.utf8 }) } ?? .null
        case .nameBytes: return .text(Array(PercentEncoding.encoded(item.entry.name.bytes).utf8))
        case .pathBytes:
            let names = path?.map { "/" + PercentEncoding.encoded($0.bytes) }
            return names.map { .text(Array($0.joined().utf8)) } ?? .null
        case .size: return node.kind == .file || node.kind == .link ? .integer(Int64(clamping: node.size)) : .null
        case .contentChangeDate, .contentModificationDate: return .time(node.modificationTime.rawValue)
        case .creationDate, .contentCreationDate: return .time(node.birthTime.rawValue)
        case .attributeChangeDate: return .time(node.changeTime.rawValue)
        case .lastUsedDate: return .time(max(node.lastUse, node.accessTime).rawValue)
        case .contentType: return .text(ContentType.of(item.entry.name, node.kind).identifier)
        case .contentTypeTree: return .list(ContentType.of(item.entry.name, node.kind).tree.map { .text($0) })
        case .owner: return .integer(Int64(node.owner))
        case .group: return .integer(Int64(node.group))
        case .isInvisible: return .truth(item.entry.name.bytes.first == UInt8(ascii: "."))
        case .nodeNumber: return .integer(Int64(clamping: node.id.rawValue))
        case .kind: return .text(node.kind.wireName)
        case .pin: return .text(node.pin.name)
        case .identifier: return item.entry.identifier.map { .text($0.rawValue) } ?? .null
        case .version: return node.version.map { .text($0.rawValue) } ?? .null
        case .localBytes: return .integer(Int64(clamping: node.localBytes))
        case .mode: return .integer(Int64(node.mode & 0o7777))
        case .links: return .integer(Int64(node.linkCount))
        // Of a reference, where its document was when it was made.
        case .linkTarget:
            if let reference { return .text(Array(ItemKey.text(reference.key.path).utf8)) }
            return node.target.map { .text(Array(escapedForDisplay($0).utf8)) } ?? .null
        case .userTags:
            return tags.map { tags in
                .list(tags.split(separator: UInt8(ascii: ",")).map { .text(Array(String(decoding: $0, as: UTF8.self).utf8)) })
            } ?? .null
        case .state: return state.map { .text($0.rawValue) } ?? .null
        case .isUbiquitous, .downloadingStatus, .isDownloading, .isUploaded, .isUploading, .hasUnresolvedConflicts,
            .percentDownloaded, .percentUploaded, .downloadingError, .uploadingError, .isExternalDocument, .containerDisplayName,
            .locationInContainer:
            return ubiquity(key)
        }
    }

    /// NSMetadata's keys of items in iCloud, for items that have a provider.
    private func ubiquity(_ key: AttributeKey) -> QueryValue {
        let isUbiquitous = !item.entry.isExcluded && item.node.kind.isStorable
        if key == .isUbiquitous { return .truth(isUbiquitous) }
        guard isUbiquitous else { return .null }
        switch key {
        case .downloadingStatus:
            return .text("NSMetadataUbiquitousItemDownloadingStatus\(hasContent ? "Current" : "NotDownloaded")")
        case .isDownloading: return .truth(progress != nil)
        case .percentDownloaded: return .real(hasContent ? 100 : (progress ?? 0) * 100)
        case .isUploaded: return .truth(isUploaded)
        case .percentUploaded: return .real(isUploaded ? 100 : (uploadProgress ?? 0) * 100)
        case .isUploading: return .truth(state == .uploading)
        case .hasUnresolvedConflicts: return .truth(item.entry.conflictsWith != nil)
        case .downloadingError: return downloadingError.map { .text(Array($0.utf8)) } ?? .null
        // An item's container is its domain. What a reference stands for has a second place: that of the reference.
        case .isExternalDocument: return .truth(reference != nil)
        case .containerDisplayName:
            // As the other domain was called where the reference was made.
            return .text(Array((reference?.storage?.domain ?? domainName).utf8))
        case .locationInContainer: return reference == nil ? .null : value(of: .path)
        case .uploadingError: return error.map { .text($0) } ?? .null
        default: return .null
        }
    }

    private var reference: ReferenceRecord? { item.node.target.flatMap { ReferenceRecord(target: $0) } }

    private var isUploaded: Bool { item.entry.identifier != nil && !isPending && !item.node.isOpenForWriting }

    private var hasContent: Bool {
        switch item.node.kind {
        case .file: item.node.content == .whole
        case .folder: item.node.isPopulated
        default: true
        }
    }
}

extension FileName {
    /// As people are shown it: what is no UTF-8 is escaped.
    fileprivate var utf8: [UInt8] {
        bytes.allSatisfy { $0 >= 0x20 && $0 < 0x7F } ? bytes : Array(display.utf8)
    }
}

extension NodeKind {
    /// As the control API and `promisefs.kind` spell it.
    package var wireName: String {
        switch self {
        case .file: "file"
        case .folder: "folder"
        case .link: "link"
        case .fifo: "fifo"
        case .socket: "socket"
        case .characterDevice: "characterDevice"
        case .blockDevice: "blockDevice"
        }
    }
}
