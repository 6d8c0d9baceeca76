package import PromiseCore
import Synchronization

/// Where whoever uses a provider knows its items to be, for a provider whose items say themselves who they are: not
/// everything that says so is believed.
package final class KnownPlaces: Sendable {
    package typealias Asking =
        @Sendable (_ item: ItemIdentifier, _ parent: ItemIdentifier, _ name: FileName) -> [FileName]?

    private struct Asked { var body: Asking }
    private let asked = Mutex<Asked?>(nil)

    package init() {}

    /// `body` returns an item's path; nil when it is not known, or the item is known under that name in that folder. It may
    /// block, as providers' own calls may.
    package func know(_ body: @escaping Asking) { asked.withLock { $0 = Asked(body: body) } }

    package func path(of item: ItemIdentifier, unlessIn parent: ItemIdentifier, as name: FileName) -> [FileName]? {
        asked.withLock { $0 }?.body(item, parent, name)
    }
}
