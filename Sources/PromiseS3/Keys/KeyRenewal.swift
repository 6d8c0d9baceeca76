package import PromiseProvider

/// Decides when temporary access keys are renewed, and what becomes of the requests that want one meanwhile. Pure: events come
/// with the time by one clock that never jumps, and the actions are its owner's to do.
///
/// Keys are renewed some minutes before they end, in the background, and used until they do, whatever becomes of the renewal; at
/// once when the server says that they have ended; after a failure with pauses that double. There is one renewal at a time.
/// Who wants a key while there is none waits, but not for ever.
package struct KeyRenewal: Sendable {
    /// A request that wants a key.
    package typealias Asker = UInt64

    package struct Lease: Sendable, Hashable {
        package var key: AccessKey
        /// Nil: they do not end.
        package var end: Duration?

        package init(key: AccessKey, end: Duration?) {
            self.key = key
            self.end = end
        }
    }

    /// What a server's refusal says of the key.
    package enum Doubt: Sendable, Hashable {
        /// It is not valid any more.
        case ended
        /// Another one may help.
        case possible
    }

    package enum Event: Sendable {
        case wanted(Asker)
        /// The server refused what was signed with this key, or not signed; another one is wanted.
        case refused(Asker, AccessKey?, Doubt)
        /// It wants none any more.
        case left(Asker)
        case renewed(Lease)
        /// There is no such service here.
        case absent
        /// `isFinal`: it refused, so that there is nothing to wait for.
        case failed(ProviderError, isFinal: Bool)
        case timePassed
    }

    package enum Action: Sendable {
        /// Ask the service, and come back with `renewed`, `absent` or `failed`.
        case renew
        /// Nil: requests are not signed.
        case give(Asker, AccessKey?)
        case refuse(Asker, ProviderError)
    }

    /// Before their end, or a quarter of what is left when that is less.
    package static let margin = Duration.seconds(300)
    /// How long a request waits for a key.
    package static let patience = Duration.seconds(30)
    package static let pauseMax = Duration.seconds(300)
    /// Between two renewals, also when all goes well.
    package static let pauseMin = Duration.seconds(1)
    /// Between two looks of which it is only possible that they help.
    package static let doubtPause = Duration.seconds(60)
    /// After so long without a refusal the next one is the first again.
    private static let refusalLifetime = Duration.seconds(900)

    private struct Waiting: Sendable {
        var asker: Asker
        var until: Duration
    }

    private var lease: Lease?
    private var due: Duration?
    /// The server does not take the key of `lease`.
    private var isRefused = false
    private var isAbsent = false
    private var isRenewing = false
    private var began: Duration?
    /// No renewal begins before.
    private var pausedUntil = Duration.zero
    private var failureCount = 0
    private var refusals: (count: Int, last: Duration)?
    private var trouble: (error: ProviderError, isFinal: Bool)?
    private var waiting: [Waiting] = []
    private var actions: [Action] = []

    package init() {}

    /// A key that may be used and need not be renewed yet: there is nothing to decide.
    package func key(at now: Duration) -> AccessKey? {
        guard let lease, isUsable(at: now), due.map({ now < $0 }) ?? true else { return nil }
        return lease.key
    }

    /// When `timePassed` has to come; nil: nobody waits.
    package var wake: Duration? {
        guard let first = waiting.map(\.until).min() else { return nil }
        return isRenewing ? first : min(first, pausedUntil)
    }

    /// `jitter`: random, from 0 up to 1.
    package mutating func handle(_ event: Event, at now: Duration, jitter: Double) -> [Action] {
        actions = []
        switch event {
        case .wanted(let asker): give(asker, now)
        case .refused(let asker, let key, let doubt): refused(asker, key, doubt, now, jitter)
        case .left(let asker): waiting.removeAll { $0.asker == asker }
        case .renewed(let lease): renewed(lease, now, jitter)
        case .absent:
            guard lease == nil else {
                failed(ProviderError(.offline, "the service that gave the access key has none any more"), false, now, jitter)
                break
            }
            ended(now, pause: KeyRenewal.pauseMin)
            isAbsent = true
            settle(now)
        case .failed(let error, let isFinal): failed(error, isFinal, now, jitter)
        case .timePassed: timePassed(now)
        }
        return actions
    }

    // MARK: Those who want a key

    private func isUsable(at now: Duration) -> Bool {
        guard let lease, !isRefused else { return false }
        return lease.end.map { now < $0 } ?? true
    }

    private mutating func give(_ asker: Asker, _ now: Duration) {
        if let lease, isUsable(at: now) {
            if let due, due <= now { begin(now) }
            actions.append(.give(asker, lease.key))
        } else if isAbsent {
            actions.append(.give(asker, nil))
        } else {
            begin(now)
            wait(asker, now)
        }
    }

    private mutating func wait(_ asker: Asker, _ now: Duration) {
        if !isRenewing, let trouble, trouble.isFinal {
            actions.append(.refuse(asker, trouble.error))
        } else {
            waiting.append(Waiting(asker: asker, until: now + KeyRenewal.patience))
        }
    }

    private mutating func refused(
        _ asker: Asker, _ key: AccessKey?, _ doubt: Doubt, _ now: Duration, _ jitter: Double
    ) {
        // It has been renewed meanwhile.
        guard key == lease?.key else { return give(asker, now) }
        if doubt == .ended, lease != nil {
            if !isRefused { countRefusal(now, jitter) }
            isRefused = true
            begin(now)
            return wait(asker, now)
        }
        if !isRenewing, began.map({ now - $0 >= KeyRenewal.doubtPause }) ?? true { begin(now) }
        guard isRenewing else { return give(asker, now) }
        wait(asker, now)
    }

    /// The first time there is no pause. A service that gives the same key again, or others that are refused, too, is not asked
    /// all the time.
    private mutating func countRefusal(_ now: Duration, _ jitter: Double) {
        var count = 1
        if let refusals, now - refusals.last < KeyRenewal.refusalLifetime { count += refusals.count }
        refusals = (count, now)
        if count > 1 {
            pausedUntil = max(pausedUntil, now + KeyRenewal.pause(count - 1, jitter))
        } else if failureCount == 0 {
            pausedUntil = now
        }
    }

    private mutating func timePassed(_ now: Duration) {
        for late in waiting where late.until <= now {
            if let lease, isUsable(at: now) {
                actions.append(.give(late.asker, lease.key))
            } else {
                let reason = trouble?.error ?? ProviderError(.offline, "no access key: the service that gives it does not answer")
                actions.append(.refuse(late.asker, reason))
            }
        }
        waiting.removeAll { $0.until <= now }
        if !waiting.isEmpty { begin(now) }
    }

    // MARK: Renewals

    private mutating func begin(_ now: Duration) {
        guard !isRenewing, now >= pausedUntil else { return }
        isRenewing = true
        began = now
        actions.append(.renew)
    }

    private mutating func ended(_ now: Duration, pause: Duration) {
        isRenewing = false
        pausedUntil = now + pause
    }

    private mutating func renewed(_ fresh: Lease, _ now: Duration, _ jitter: Double) {
        if let end = fresh.end, end <= now {
            let sentence = "the access key that the service gives has ended already: is this machine's clock right?"
            return failed(ProviderError(.offline, sentence), false, now, jitter)
        }
        ended(now, pause: KeyRenewal.pauseMin)
        lease = fresh
        // Services give the same key until it is nearly over, so what is left gets smaller from renewal to renewal. Earlier by a
        // random part, so that many that began together do not come together.
        due = fresh.end.map { $0 - min(KeyRenewal.margin, ($0 - now) / 4) * (1 + jitter / 4) }
        (isRefused, isAbsent, failureCount, trouble) = (false, false, 0, nil)
        settle(now)
    }

    private mutating func failed(_ error: ProviderError, _ isFinal: Bool, _ now: Duration, _ jitter: Double) {
        failureCount += 1
        ended(now, pause: KeyRenewal.pause(failureCount, jitter))
        trouble = (error, isFinal)
        settle(now)
    }

    /// Whom the end of a renewal lets go on.
    private mutating func settle(_ now: Duration) {
        if let lease, isUsable(at: now) {
            for one in waiting { actions.append(.give(one.asker, lease.key)) }
        } else if isAbsent {
            for one in waiting { actions.append(.give(one.asker, nil)) }
        } else if let trouble, trouble.isFinal {
            for one in waiting { actions.append(.refuse(one.asker, trouble.error)) }
        } else {
            return
        }
        waiting = []
    }

    /// From the half of it to the whole.
    private static func pause(_ count: Int, _ jitter: Double) -> Duration {
        min(pauseMin * (1 << min(count, 12)), pauseMax) * (0.5 + jitter / 2)
    }
}
