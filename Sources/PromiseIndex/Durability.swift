package import PromiseCore

/// What a power cut leaves of a content file, as far as the index knows.
package enum Durability: Int, Sendable {
    /// It was never synchronized since it was made, fetched, or agreed on with the provider: any part of it may be missing.
    case unknown = 0
    /// It was synchronized after it was last written to: all of it.
    case whole = 1
    /// It was synchronized, and written to later: what it was then, with any part of what came later.
    case begun = 2
    /// All of it, but a power cut may have changed it since it was edited: its time does not say that it is what was sent.
    case doubtful = 3

    package var isWhole: Bool { self == .whole || self == .doubtful }
    /// Some state of it that was edited here is on the disk.
    package var hasBase: Bool { self != .unknown }
}

extension Node {
    /// The content file is written to from now on, or has been.
    package mutating func noteWritten() {
        if durability.isWhole { durability = .begun }
    }

    /// The provider got a version of it.
    mutating func noteVersion() {
        switch durability {
        // The provider has more of it now than the disk may have.
        case .begun: durability = .unknown
        case .doubtful: durability = .whole
        case .unknown, .whole: break
        }
    }

    /// By which what is sent of the content can be known again at the provider.
    package var recognizableTime: Timestamp { durability == .doubtful ? .unrecognizable : modificationTime }
}

extension Timestamp {
    /// No file has it.
    package static let unrecognizable = Timestamp(seconds: -1 << 33, nanoseconds: 0)
}
