/// Why an operation on the tree could not be done: one code, one sentence, and what was underneath.
///
/// Index, content, sync and filesystem all throw this type; `PromiseMount` maps the code to an errno and the
/// command line maps it to an exit status, each in one place.
package struct Failure: Error, Sendable, CustomStringConvertible {
    package enum Code: String, Sendable, CaseIterable {
        case notFound, gone, exists, notFolder, isFolder, notEmpty, crossDevice, tooManyLinks, nameTooLong
        case notPermitted, refused, hydrationRefused, readOnly, busy, conflict
        case offline, timedOut, stale, corrupted, interrupted
        case storeFull, quotaExceeded, tooLarge
        case noAttribute, attributeTooLarge, invalid, notSupported, outOfRange, tooManyOpen
        case inputOutput
    }

    package let code: Code
    /// What failed and, where there is one, the remedy. A sentence for people, without a final full stop.
    package let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    package var description: String { "\(message) [\(code.rawValue)]" }
}
