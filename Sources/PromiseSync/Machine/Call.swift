package import PromiseCore
import PromiseProvider

/// What the provider is asked. Its outcome comes back as an event.
enum Call {
    /// All that a folder holds, page by page.
    case list(number: Int, ItemReference, isFirst: Bool)
    /// Where a single item is: the places are tried in order, until it is at one of them.
    case find(ItemIdentifier, at: [Whereabouts], operationCount: Int)
    /// The first page of a folder that was removed here.
    case lookInto(ItemReference, operationCount: Int)
    /// Where a folder is that is gone.
    case survey(FolderSurvey, operationCount: Int)
    case tell(Operation)
    /// Whether it can be reached, and which storage it is.
    case root(number: Int)
    case currentAnchor(feed: Int)
    /// The next changes; `isWaiting`: when the provider has some.
    case changes(feed: Int, since: Anchor, isWaiting: Bool)
    /// What may have changed, at once, for somebody who waits.
    case news(since: Anchor)
}

/// Where an item may be, and the folder that this is in where it is not the one that the item was
/// in.
struct Whereabouts {
    var reference: ItemReference
    var parent: ItemIdentifier?
}

/// What was found of an item, and the folder that it was found in where that is not the one that it
/// was in.
package struct FoundItem {
    var item: Item
    var parent: ItemIdentifier?

    package init(item: Item, parent: ItemIdentifier? = nil) {
        (self.item, self.parent) = (item, parent)
    }
}
