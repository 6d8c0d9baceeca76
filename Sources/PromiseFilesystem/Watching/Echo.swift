package import PromiseCore
import PromiseIndex
package import PromiseSync
import PromiseSystem
import Synchronization

/// One change of the provider as it is shown to programs that watch: which calls of the echo process belong to it, and how each
/// is answered. The index has the change already, so none of them changes anything. A pure state machine.
package struct Echo: Sendable {
    package enum Kind: Sendable {
        case appeared(TreePlace)
        case gone(TreePlace, NodeID)
        case moved(NodeID, from: TreePlace, to: TreePlace)
        /// Its times are set, or it is opened and closed.
        case touched
    }

    /// What a name is for the echo process, other than for everybody else.
    package enum Lookup: Hashable, Sendable {
        /// Not there yet.
        case absent
        /// That node, still.
        case node(NodeID)
    }

    private let kind: Kind
    /// The kernel has asked for the name that is to go. What it knows under this name otherwise is something newer.
    private var isFound = false
    private var isDone = false

    package init(_ kind: Kind) { self.kind = kind }

    /// Nil: as for everybody.
    package mutating func lookup(_ place: TreePlace) -> Lookup? {
        if isDone { return nil }
        switch kind {
        case .appeared(place): return .absent
        case .gone(place, let node), .moved(let node, from: place, to: _):
            isFound = true
            return .node(node)
        case .moved(_, from: _, to: place): return .absent
        default: return nil
        }
    }

    /// True when the kernel may be told that the name was made now.
    package mutating func makes(_ place: TreePlace) -> Bool {
        guard case .appeared(place) = kind, !isDone else { return false }
        isDone = true
        return true
    }

    package mutating func removes(_ place: TreePlace) -> Bool {
        guard case .gone(place, _) = kind, isFound, !isDone else { return false }
        isDone = true
        return true
    }

    package mutating func moves(_ from: TreePlace, to: TreePlace) -> Bool {
        guard case .moved(_, from, to) = kind, isFound, !isDone else { return false }
        isDone = true
        return true
    }
}

/// The echo that is under way, and the process that makes its calls.
///
/// A call of that process may come late, when nobody waits for it any more, and even to the next daemon: it is known until it has
/// ended, or what it removes would be removed, if the name stands for something else by then.
final class EchoTable: Sendable {
    /// An open file of the echo process, which reads and writes nothing.
    static let handle = HandleID(.max)

    private struct State {
        var echo: Echo?
        /// What a name stood for that is gone: its row is, too. In a view, whatever the echo is about.
        var gone: Node?
    }

    private let number = Atomic<Int32>(0)
    private let hasStrays = Atomic(false)
    /// Processes of a daemon that has died.
    private let strays = Mutex<Set<Int32>>([])
    private let state = RankedMutex(.leaf, State())

    /// 0: there is none.
    var process: Int32 {
        get { number.load(ordering: .relaxed) }
        set { number.store(newValue, ordering: .relaxed) }
    }

    func setStrays(_ processes: Set<Int32>) {
        strays.withLock { $0 = processes }
        hasStrays.store(!processes.isEmpty, ordering: .relaxed)
    }

    func begin(_ echo: Echo, gone: Node?) { state.withLock { $0 = State(echo: echo, gone: gone) } }
    func end() { state.withLock { $0 = State() } }

    func isEcho(_ caller: Caller) -> Bool {
        let process = process
        if process != 0 && caller.process == process { return true }
        return hasStrays.load(ordering: .relaxed) && strays.withLock { $0.contains(caller.process) }
    }

    func lookup(_ place: TreePlace) -> (lookup: Echo.Lookup, gone: Node?)? {
        state.withLock { state in state.echo?.lookup(place).map { ($0, state.gone) } }
    }

    /// What the echo is about, where that is known.
    var subject: Node? { state.withLock { $0.gone } }

    func makes(_ place: TreePlace) -> Bool { state.withLock { $0.echo?.makes(place) ?? false } }
    func removes(_ place: TreePlace) -> Bool { state.withLock { $0.echo?.removes(place) ?? false } }
    func moves(_ from: TreePlace, to: TreePlace) -> Bool { state.withLock { $0.echo?.moves(from, to: to) ?? false } }
}
