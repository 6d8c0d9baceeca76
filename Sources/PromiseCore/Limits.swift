/// How fast bytes may go between a provider and its server: bytes a second; nil: as fast as they go.
package struct LineRates: Hashable, Sendable {
    package var up: UInt64?
    package var down: UInt64?

    package init(up: UInt64? = nil, down: UInt64? = nil) {
        self.up = up
        self.down = down
    }

    /// Below these a server would take a request for one that has broken off, and so would we.
    package static let upMin: UInt64 = 8 << 10
    package static let downMin: UInt64 = 64 << 10
}

/// What a person lets a domain use, besides what it was started with. It outlives the daemon and the mount.
package struct Limits: Hashable, Sendable {
    package enum Cache: Hashable, Sendable {
        /// As the domain was started.
        case asConfigured
        case none
        case bytes(UInt64)
    }

    package var cache = Cache.asConfigured
    package var line = LineRates()

    package init() {}

    /// What a domain that was started with `configured` keeps at most, in bytes; nil: what there is room for.
    package func cacheLimit(_ configured: UInt64?) -> UInt64? {
        switch cache {
        case .asConfigured: configured
        case .none: nil
        case .bytes(let count): count
        }
    }
}

/// What of them is to be changed. Nil: as it is.
package struct LimitsChange: Hashable, Sendable {
    /// Of a rate, nil inside: no limit.
    package var cache: Limits.Cache?
    package var up: UInt64??
    package var down: UInt64??

    package init() {}
}
