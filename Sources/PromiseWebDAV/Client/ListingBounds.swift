import PromiseCore
import PromiseProvider

/// What one answer of a server's may make this process remember: a listing is read as it comes, and handed on.
struct ListingBounds {
    /// Names are remembered by a number of eight bytes each; the table of so many takes 64 MiB.
    private static let nameCountMax = 4_000_000
    /// Items that cannot be handed on, as the answer has not said yet that the folder is one.
    private static let heldByteCountMax = 48 << 20
    /// Of an item without its texts.
    private static let itemByteCount = 256

    private var names: Set<Int> = []
    private var heldByteCount = 0
    /// A sentence, when it is too much.
    private(set) var excess: String?

    /// False for a name that was taken before, and when there are too many. Two names of one number are less likely than a
    /// broken disk.
    mutating func takes(_ name: FileName) -> Bool {
        guard names.count < ListingBounds.nameCountMax else {
            excess = "it has more than \(ListingBounds.nameCountMax) entries"
            return false
        }
        return names.insert(name.hashValue).inserted
    }

    mutating func holds(_ item: Item) {
        heldByteCount += ListingBounds.itemByteCount + item.name.bytes.count + item.identifier.rawValue.utf8.count
        heldByteCount += item.version.rawValue.utf8.count
        guard heldByteCount > ListingBounds.heldByteCountMax else { return }
        excess = "the server's answer does not begin with the folder, and has too much before that"
    }

    mutating func handedOn() { heldByteCount = 0 }
}
