import PromiseCore
import Synchronization

/// Whether a claim is still there, for the thread that writes under it: it ends with its daemon, and what follows it may be
/// written by others.
final class HeldClaim: Sendable {
    private let isHeld = Atomic(true)

    func end() { isHeld.store(false, ordering: .relaxed) }

    /// Throws of status 6 when the document is not as it was `known`, nil: however it is; of 4 when
    /// the claim has ended, or when it cannot be looked at now. One that is not there any more was
    /// moved or removed: no save makes another one in its place.
    func look(at document: DocumentPlace, _ known: DocumentStamp?) throws(PromiseError) {
        let now = known == nil ? nil : try document.stamp()
        let shown = escapedForDisplay(document.path)
        if let known, let now, now != known {
            throw PromiseError(
                .local, "\(shown) was changed by somebody else since it was read", exitStatus: 6)
        }
        guard isHeld.load(ordering: .relaxed) else {
            throw PromiseError(
                .local, "\(shown) was not saved: the claim on it ended with its daemon",
                exitStatus: 4)
        }
        if known != nil, now == nil {
            throw PromiseError.missing("\(shown) was moved or removed by somebody else")
        }
    }
}
