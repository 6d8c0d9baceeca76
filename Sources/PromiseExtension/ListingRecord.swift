package import PromiseCore

/// What the pages of listings under way have shown so far, so that an extension can neither show a name twice nor go on for
/// ever. Pure; at most `listingsMax` listings are remembered, and the oldest one is forgotten.
///
/// Texts are remembered by numbers that are made of them, eight bytes each: an extension chooses how long they are. Two of
/// one number, which is less likely than a broken disk, would be taken for the same.
package struct ListingRecord: Sendable {
    package static let listingsMax = 64
    /// Of all listings under way; more than any folder holds.
    package static let itemsMax = 10_000_000

    package enum Verdict: Hashable, Sendable {
        case new
        case nameTaken
        case itemTaken
    }

    private struct Listing {
        var names: Set<Int> = []
        var identifiers: Set<Int> = []
        var tokens: Set<Int> = []
        var itemCount = 0
    }

    private var listings: [Int: Listing] = [:]
    private var lastNumber = 0

    package init() {}

    package mutating func begin() -> Int {
        lastNumber += 1
        listings[lastNumber] = Listing()
        if listings.count > ListingRecord.listingsMax, let oldest = listings.keys.min() { listings[oldest] = nil }
        return lastNumber
    }

    package func isKnown(_ number: Int) -> Bool { listings[number] != nil }

    package mutating func note(_ item: Item, in number: Int) -> Verdict {
        guard listings[number] != nil else { return .new }
        guard listings[number]!.names.insert(item.name.hashValue).inserted else { return .nameTaken }
        return listings[number]!.identifiers.insert(item.identifier.hashValue).inserted ? .new : .itemTaken
    }

    /// False when the listing has been at this page before, or more items were shown than there can be. `itemCount`: how many
    /// the page held that ends here, wrong ones too.
    package mutating func turn(to token: String, after itemCount: Int, in number: Int) -> Bool {
        // A page without items counts, too: its token is remembered.
        let count = listings.values.reduce(max(itemCount, 1)) { $0 + $1.itemCount }
        guard listings[number] != nil, count <= ListingRecord.itemsMax else { return false }
        listings[number]!.itemCount += max(itemCount, 1)
        return listings[number]!.tokens.insert(token.hashValue).inserted
    }

    package mutating func end(_ number: Int) { listings[number] = nil }
}
