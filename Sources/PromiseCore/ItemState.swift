/// Where a node's content is.
package enum ContentState: Int, Sendable, Hashable {
    /// Nothing is local.
    case absent = 0
    /// Some ranges are local.
    case partial = 1
    /// Every byte is local.
    case whole = 2
}

/// Whether an owner wants content kept here.
package enum Pin: Int, Sendable, Hashable, CaseIterable {
    case automatic = 0
    case pinned = 1
    case onlineOnly = 2

    /// As the virtual attribute `user.promisefs.pin` spells it.
    package var name: String {
        switch self {
        case .automatic: "automatic"
        case .pinned: "pinned"
        case .onlineOnly: "online-only"
        }
    }

    package init?(name: String) {
        guard let pin = Pin.allCases.first(where: { $0.name == name }) else { return nil }
        self = pin
    }
}

/// What `user.promisefs.state` says of an item. The raw values are an outside contract.
package enum ItemState: String, Sendable, Hashable, CaseIterable {
    case placeholder, partial, current, modified, uploading, conflicted, excluded, error
}
