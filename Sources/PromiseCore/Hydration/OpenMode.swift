/// How the kernel has one inode open. All opens of an inode share one mode, because the kernel refuses to mix
/// passthrough and cached opens of the same inode (fs/fuse/iomode.c): a new open joins the mode in force.
///
/// idle → passthrough(1) or cached(1) by the first open; back to idle by the last close.
package struct OpenMode: Hashable, Sendable {
    package enum State: Hashable, Sendable {
        case idle
        /// The kernel reads and writes the content file itself. Opens share one backing registration.
        case passthrough(opens: Int, backing: BackingID)
        /// The daemon serves the pages: content is partial, or passthrough cannot be had.
        case cached(opens: Int)
    }

    /// What the kernel is to be told about an open.
    package enum Grant: Hashable, Sendable {
        /// Register the content file, then call `opened(with:)`.
        case register
        case passthrough(BackingID)
        case cached
    }

    /// What the last close leaves to be done.
    package enum Closing: Hashable, Sendable {
        case nothing
        case lastClose(release: BackingID?)
    }

    package private(set) var state: State = .idle

    package init() {}

    /// As the kernel has an inode that was opened through another daemon.
    package init(inheriting state: State) { self.state = state }

    package var isIdle: Bool { state == .idle }
    package var isPassthrough: Bool { if case .passthrough = state { true } else { false } }

    /// Asks how a new open is to be granted. Only `.register` leaves the state unchanged.
    package mutating func open(passthroughPossible: Bool) -> Grant {
        switch state {
        case .idle:
            if passthroughPossible { return .register }
            state = .cached(opens: 1)
            return .cached
        case .passthrough(let opens, let backing):
            state = .passthrough(opens: opens + 1, backing: backing)
            return .passthrough(backing)
        case .cached(let opens):
            state = .cached(opens: opens + 1)
            return .cached
        }
    }

    /// Completes a `.register`: nil when the kernel refused, which falls back to cached mode.
    package mutating func opened(with backing: BackingID?) -> Grant {
        precondition(state == .idle, "a backing file is registered for an idle inode only, not in \(state)")
        if let backing {
            state = .passthrough(opens: 1, backing: backing)
            return .passthrough(backing)
        }
        state = .cached(opens: 1)
        return .cached
    }

    package mutating func close() -> Closing {
        switch state {
        case .idle:
            preconditionFailure("an inode without opens was closed")
        case .passthrough(1, let backing):
            state = .idle
            return .lastClose(release: backing)
        case .passthrough(let opens, let backing):
            state = .passthrough(opens: opens - 1, backing: backing)
            return .nothing
        case .cached(1):
            state = .idle
            return .lastClose(release: nil)
        case .cached(let opens):
            state = .cached(opens: opens - 1)
            return .nothing
        }
    }
}

/// The kernel's number for a registered backing file (`FUSE_DEV_IOC_BACKING_OPEN`).
package struct BackingID: RawRepresentable, Hashable, Sendable {
    package let rawValue: Int32
    package init(rawValue: Int32) { self.rawValue = rawValue }
}
