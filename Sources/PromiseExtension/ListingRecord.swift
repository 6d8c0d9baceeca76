package import PromiseCore

/// What the pages of listings under way have shown so far, so that an extension can neither show a name twice nor go on for
/// ever. Pure; at most `listingsMax` listings are remembered, and the oldest one is forgotten.
package struct ListingRecord: Sendable {
    package static let listingsMax = 64
    /// More than any folder holds.
    package static let itemsMax = 10_000_000

    package enum Verdict: Hashable, Sendable {
        case new
        case nameTaken
        case itemTaken
    }

    private struct Listing {
        var names: Set<FileName> = []
        var identifiers: Set<ItemIdentifier> = []
        var tokens: Set<String> = []
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
        guard listings[number]!.names.insert(item.name).inserted else { return .nameTaken }
        return listings[number]!.identifiers.insert(item.identifier).inserted ? .new : .itemTaken
    }

    /// False when the listing has been at this page before, or has shown more items than there can be. `itemCount`: how many the
    /// page held that ends here, wrong ones too.
    package mutating func turn(to token: String, after itemCount: Int, in number: Int) -> Bool {
        guard let count = listings[number]?.itemCount, count + itemCount <= ListingRecord.itemsMax else { return false }
        listings[number]?.itemCount += itemCount
        return listings[number]?.tokens.insert(token).inserted ?? false
    }

    package mutating func end(_ number: Int) { listings[number] = nil }
}
