import PromiseCore
import PromiseKit
import PromiseWire

/// What of a domain is kept on this machine.
enum OverviewStorage {
    struct Item: Encodable {
        /// For people.
        var path: String
        var pathBytes: String
        var bytes: UInt64
        var isPinned: Bool
        /// Of a folder: how many of its own documents are counted.
        var count: Int?
    }

    struct Kept: Encodable { var items: [Item] }

    private static let itemCountMax = 100
    /// The largest: what is in folders is added up of these.
    private static let countedMax = 10_000

    /// `order`: `largest`, `oldest` or `folders`.
    static func kept(in mount: MountEntry, _ order: String?) async throws -> Kept {
        let client = try PromiseClient(mount: mount)
        let isByFolder = order == "folders"
        let query = MetadataQuery("promisefs.kind == 'file' AND promisefs.localBytes > 0")
            .sorted(by: order == "oldest" ? "kMDItemLastUsedDate" : "-promisefs.localBytes")
            .limit(isByFolder ? countedMax : itemCountMax)
            .attributes("promisefs.localBytes", "promisefs.pin")
        let items = try await query.results(of: client).map { Item($0) }
        return Kept(items: isByFolder ? folders(of: items) : items)
    }

    /// Each folder with its own documents, the largest first.
    static func folders(of items: [Item]) -> [Item] {
        var folders: [String: Item] = [:]
        for item in items {
            let place = parent(of: item.pathBytes)
            var folder =
                folders[place]
                ?? Item(
                    path: parent(of: item.path), pathBytes: place, bytes: 0, isPinned: true, count: 0)
            folder.bytes += item.bytes
            folder.count = (folder.count ?? 0) + 1
            folder.isPinned = folder.isPinned && item.isPinned
            folders[place] = folder
        }
        let sorted = folders.values.sorted { ($0.bytes, $1.pathBytes) > ($1.bytes, $0.pathBytes) }
        return Array(sorted.prefix(itemCountMax))
    }

    private static func parent(of path: String) -> String {
        let end = path.lastIndex(of: "/") ?? path.startIndex
        return end == path.startIndex ? "/" : String(path[..<end])
    }
}

extension OverviewStorage.Item {
    init(_ found: FoundItemDocument) {
        var bytes: UInt64 = 0
        switch found.attributes?["promisefs.localBytes"] {
        case .integer(let number)?: bytes = UInt64(clamping: number)
        case .real(let number)?: bytes = UInt64(max(0, number))
        default: break
        }
        var isPinned = false
        if case .text("pinned")? = found.attributes?["promisefs.pin"] { isPinned = true }
        self.init(path: found.path, pathBytes: found.pathBytes, bytes: bytes, isPinned: isPinned)
    }
}
