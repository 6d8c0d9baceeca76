import PromiseCore
import PromiseIndex

/// Keeps what a person lets the domain use, and says it to those who heed it.
enum Limiting {
    private static let cacheSetting = "limit.cache"
    private static let upSetting = "limit.upload"
    private static let downSetting = "limit.download"
    private static let none = "none"

    static func started(_ turn: inout Turn, _ transaction: borrowing Transaction) throws(Failure) {
        var limits = Limits()
        if let text = try transaction.setting(cacheSetting) {
            limits.cache = text == none ? .none : UInt64(text).map { .bytes($0) } ?? .asConfigured
        }
        limits.line.up = try transaction.setting(upSetting).flatMap { UInt64($0) }
        limits.line.down = try transaction.setting(downSetting).flatMap { UInt64($0) }
        if limits != Limits() { note(limits, &turn) }
    }

    static func wanted(
        _ change: LimitsChange, _ waiter: Waiter, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        var limits = turn.memory.limits
        if let cache = change.cache {
            limits.cache = cache
            try transaction.setSetting(cacheSetting, text(cache))
        }
        if let up = change.up {
            limits.line.up = up
            try transaction.setSetting(upSetting, up.map { "\($0)" })
        }
        if let down = change.down {
            limits.line.down = down
            try transaction.setSetting(downSetting, down.map { "\($0)" })
        }
        note(limits, &turn)
        turn.act(.reply(waiter, .success(())))
    }

    private static func text(_ cache: Limits.Cache) -> String? {
        switch cache {
        case .asConfigured: nil
        case .none: none
        case .bytes(let count): "\(count)"
        }
    }

    /// Less room is looked for at once.
    private static func note(_ limits: Limits, _ turn: inout Turn) {
        turn.remember {
            $0.limits = limits
            $0.roomChecked = nil
        }
        turn.act(.limited(limits))
    }
}
