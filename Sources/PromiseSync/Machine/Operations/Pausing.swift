import PromiseCore
import PromiseIndex

/// A person wants the line for something else: the provider is told nothing, and nothing is fetched by
/// itself, until they say so. What programs open is fetched, and what others change is seen. It
/// outlives the daemon and the mount.
enum Pausing {
    private static let setting = "paused.since"

    static func started(
        _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard let text = try transaction.setting(setting), let since = Int64(text) else { return }
        note(Timestamp(nanoseconds: since), &turn)
    }

    /// Paused a second time it stays paused since the first.
    static func wanted(
        _ isPaused: Bool, _ waiter: Waiter, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        if isPaused != (turn.memory.operations.pausedSince != nil) {
            let since = isPaused ? turn.now.time : nil
            try transaction.setSetting(setting, since.map { String($0.rawValue) })
            note(since, &turn)
            if isPaused { endWhatTakesLong(&turn) } else { goOn(&turn) }
        }
        turn.act(.reply(waiter, .success(())))
    }

    private static func note(_ since: Timestamp?, _ turn: inout Turn) {
        turn.remember { $0.operations.pausedSince = since }
        turn.act(.paused(since: since))
    }

    /// Small work ends in a moment. What is ended here is begun again afterwards.
    private static func endWhatTakesLong(_ turn: inout Turn) {
        for operation in turn.memory.operations.running.values where operation.isLarge {
            turn.act(.cancelTelling(operation.subject))
        }
        for node in turn.memory.fetches.running.sorted() { turn.act(.endFetch(node)) }
    }

    private static func goOn(_ turn: inout Turn) {
        Stepping.end(&turn)
        turn.lookForPinned()
        turn.act(.go(.everythingDue))
    }
}
