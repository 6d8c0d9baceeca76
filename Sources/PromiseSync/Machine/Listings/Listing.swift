package import PromiseCore
import PromiseIndex

/// One listing of a folder under way.
struct Listing {
    /// Tells it from another one of the same folder. 0: it begins when what the folder is in has
    /// been moved.
    var number: Int
    var folder: NodeID
    var identifier: ItemIdentifier
    var isFirst: Bool
    /// Our operations finished after this count are newer than the listing.
    var operationCount: Int
    /// Of the change feed, when it began.
    var lastChange: Int64
    /// Uptime.
    var started: Duration
    /// Uptime of its last part; of its beginning before that.
    var heard: Duration
    var waiters: [Waiter] = []
    /// Those who can go on when there is more, too.
    var readers: [Waiter] = []
    /// The page that came last has names that are new here.
    var hasNews = false
    /// Unless it is the first: everything it showed.
    var seen = SeenItems()
    /// How many were what was agreed on.
    var unchangedCount = 0
    var pageCount = 0
    /// Something that it showed was not compared, as an operation of ours is newer, and may be what an
    /// earlier one has left without an answer.
    var hasLeftOut = false
    /// If it is the first: one before it broke off, and what that showed may be gone.
    var followsAnother = false
    /// If it is the first: names of conflict versions, whose documents it may show later.
    var versions: [FileName] = []
}

extension Listing {
    /// Part of what it showed is stored.
    mutating func take(_ found: ListedItems) {
        for identifier in found.seen { seen.insert(identifier) }
        unchangedCount += found.unchangedCount
        versions += found.versions
    }
}

/// Part of a page of a listing.
package struct ListedPart {
    /// The listing's.
    var number: Int
    var items: [Item]
    /// Nothing more comes with this page.
    var isPageEnd: Bool
    /// Nothing more comes.
    var isLast: Bool

    package init(number: Int, items: [Item], isPageEnd: Bool, isLast: Bool) {
        (self.number, self.items) = (number, items)
        (self.isPageEnd, self.isLast) = (isPageEnd, isLast)
    }
}

/// What a part of a listing showed.
struct ListedItems {
    /// In a folder that was known before.
    var seen: [ItemIdentifier] = []
    /// How many of them were what was agreed on.
    var unchangedCount = 0
    /// Names are new here.
    var hasNews = false
    /// Names of conflict versions.
    var versions: [FileName] = []
}

/// The items that a listing showed, of which there may be a million: by a number that is made of
/// the identifier, 16 bytes each at most. Two identifiers of one number, which is less likely than
/// a broken disk, would keep the second from being missed.
struct SeenItems {
    private var numbers: Set<Int> = []

    var count: Int { numbers.count }
    mutating func insert(_ identifier: ItemIdentifier) { numbers.insert(identifier.hashValue) }
    func contains(_ identifier: ItemIdentifier) -> Bool { numbers.contains(identifier.hashValue) }
}
