import PromiseCore
import PromiseSystem
import Synchronization

/// What the rules have refused to a program, and who had started it: for a moment these are refused it, too. File managers start
/// a thumbnailer, and where that fails some of them read the picture themselves, for the same thumbnail.
///
/// Thread-safe.
final class RefusedHelpers: Sendable {
    private static let lifetime = Duration.seconds(5)
    private static let countMax = 1024
    /// A thumbnailer may be in a sandbox, which is one or two processes more.
    private static let generationsMax = 3

    private struct Refusal {
        var starters: [Int32]
        var end: Duration
    }
    private let refusals = Mutex<[NodeID: Refusal]>([:])

    /// `thread`: one of the program's that was refused.
    func note(_ thread: Int32, _ id: NodeID, at now: Duration) {
        var starters: [Int32] = []
        var current = thread
        for _ in 0..<RefusedHelpers.generationsMax {
            guard let family = ProcessFamily.of(thread: current), family.parent > 1 else { break }
            starters.append(family.parent)
            current = family.parent
        }
        refusals.withLock { refusals in
            if refusals.count >= RefusedHelpers.countMax { refusals = refusals.filter { now < $0.value.end } }
            guard refusals.count < RefusedHelpers.countMax else { return }
            refusals[id] = Refusal(starters: starters, end: now + RefusedHelpers.lifetime)
        }
    }

    /// Whether this program has just started another one that was refused the same.
    func hasStarted(_ thread: Int32, _ id: NodeID, at now: Duration) -> Bool {
        guard let refusal = refusals.withLock({ $0[id] }), now < refusal.end, let own = ProcessFamily.of(thread: thread)
        else { return false }
        return refusal.starters.contains(own.process)
    }
}
