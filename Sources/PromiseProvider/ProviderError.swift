package import PromiseCore

/// What went wrong at a provider, classified by what the engine must do about it. The text is for people only.
package struct ProviderError: Error, Sendable, CustomStringConvertible {
    package enum Code: Hashable, Sendable {
        /// Passing trouble of one call: try again with backoff.
        case retry
        /// As `retry`, but not before this long.
        case retryAfter(Duration)
        /// The storage cannot be reached at all: everything waits until it can.
        case offline
        /// What holds this item cannot be reached, as a disk that was taken out of the storage: other items can.
        case away
        /// Credentials are missing or wrong: wait for the user.
        case authenticate
        /// The storage refused this operation on this item: do not repeat it unchanged.
        case refused
        /// The base version is not current, the name is taken, or the folder is not empty: look again and plan anew.
        case conflict
        /// The item is not there.
        case notFound
        /// The item is there, but not in that version.
        case stale
        /// The local file was written to while it was being sent: send again.
        case sourceChanged
        case anchorExpired
        /// No room at the provider, or over quota.
        case outOfSpace
        /// No room on this machine's disk.
        case localDiskFull
        /// Bytes do not match their checksum.
        case corrupted
        case cancelled
        /// Will never work as it stands.
        case permanent
    }

    package let code: Code
    /// What failed and, where there is one, the remedy.
    package let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    package var description: String { message }

    /// What a program on the mount is told.
    package var failure: Failure {
        let failureCode: Failure.Code =
            switch code {
            case .retry, .retryAfter, .sourceChanged: .timedOut
            case .offline, .away: .offline
            case .authenticate, .refused: .refused
            case .conflict, .notFound, .stale, .anchorExpired: .stale
            case .outOfSpace: .quotaExceeded
            case .localDiskFull: .storeFull
            case .corrupted: .corrupted
            case .cancelled: .interrupted
            case .permanent: .inputOutput
            }
        return Failure(failureCode, message)
    }
}
