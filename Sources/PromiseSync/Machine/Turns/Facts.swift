import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseProvider

/// What is true of a domain whatever happens.
struct Facts {
    var configuration: SyncEngine.Configuration
    var rootIdentifier: ItemIdentifier
    /// For people.
    var providerName: String
    /// A provider that was away at the start may turn out to have others.
    var capabilities: Capabilities
    /// Every decision is printed.
    var isTracing = false

    /// The store knows an item by its place only, and an item keeps the identifier that it has
    /// here.
    var knowsByPlace: Bool { capabilities.contains(.placeIdentifiers) }
    /// The store keeps modes and times.
    var keepsTimes: Bool { capabilities.contains(.metadata) }
    var hasFeed: Bool { capabilities.contains(.changeFeed) }
}

/// What the machine asks of others while it decides.
struct World {
    /// Whoever shows the local tree to programs.
    let observer: any LocalTreeObserver
    let content: ContentStore
    /// Why a node's content did not come when it was wanted last.
    let fetchProblem: @Sendable (NodeID) -> Failure?
    /// Uptime of the last change that programs made here.
    let lastChange: @Sendable () -> Duration
    /// For how long those who wait for the provider have heard nothing; nil: nobody waits.
    let silence: @Sendable () -> Duration?
    /// Uptime of the provider's last answer that was of use; nil: there was none.
    let lastGood: @Sendable () -> Duration?
}

/// A name in a folder of the provider.
struct ItemPlace: Hashable {
    var parent: ItemIdentifier
    var name: FileName
}
