import PromiseAccess
import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseSystem
import Synchronization

/// What one launch may reach, as its view asks for it at every call.
///
/// Which entries were granted is remembered for a moment: a change of grants ends that at once, and a
/// date that passes a little later. Thread-safe; `state` is a leaf.
final class LaunchPolicy: ViewPolicy {
    private static let memoryMax = Duration.milliseconds(200)

    private struct State {
        var known: (roots: ViewRoots, at: Duration)?
        var changes: UInt64 = 0
        var observer: UInt64?
    }

    private let grants: Grants
    private let principal: Principal
    private let door: AccessDoor
    private let isReadOnly: Bool
    private let clock = SystemClock()
    private let state = Mutex(State())

    /// `isReadOnly`: the domain is, and so is all that is given of it.
    init(_ grants: Grants, _ principal: Principal, _ door: AccessDoor, isReadOnly: Bool) {
        self.isReadOnly = isReadOnly
        self.grants = grants
        self.principal = principal
        self.door = door
    }

    func begin() {
        let observer = grants.whenChanged { [weak self] _ in self?.askAnew() }
        state.withLock { $0.observer = observer }
        askAnew()
    }

    func end() {
        if let observer = state.withLock({ $0.observer }) { grants.forget(observer) }
    }

    func askAnew() {
        state.withLock { state in
            state.changes += 1
            state.known = nil
        }
    }

    var roots: ViewRoots {
        let now = clock.uptime()
        let (known, changes) = state.withLock { ($0.known, $0.changes) }
        if let known, now - known.at < Self.memoryMax { return known.roots }
        // An index that cannot be read gives nothing.
        let found = (try? grants.roots(of: principal)) ?? []
        let roots = ViewRoots(
            found.map { root in
                ViewRoot(
                    name: root.name, entry: root.entry,
                    rights: isReadOnly ? min(root.rights.inView, .read) : root.rights.inView,
                    place: root.isContainer ? .top : .granted)
            })
        state.withLock { state in
            // Asked before a change it is not to be known after it.
            if state.changes == changes { state.known = (roots, now) }
        }
        return roots
    }

    /// What is open stays open, as an open file of any system does.
    var endsOpenFiles: Bool { false }

    func refused(_ operation: StaticString, _ node: NodeID) {
        _ = grants.refuse(principal, operation, "node \(node) in its view")
    }

    func replaced(_ entry: EntryID, by other: EntryID, done: @escaping @Sendable () -> Void) {
        GrantNaming(grants: grants).replaced(entry, by: other, for: principal, done: done)
    }
}

extension Rights {
    fileprivate var inView: ViewRights {
        switch self {
        case .none: .none
        case .read: .read
        case .readWrite: .readWrite
        }
    }
}
