import Synchronization

/// One bit that many threads look at, and few change.
final class Flag: Sendable {
    private let bit = Atomic(false)

    var isRaised: Bool { bit.load(ordering: .sequentiallyConsistent) }

    /// Nothing is written where it is raised already.
    func raise() {
        if !isRaised { bit.store(true, ordering: .sequentiallyConsistent) }
    }

    func lower() { bit.store(false, ordering: .sequentiallyConsistent) }
}
