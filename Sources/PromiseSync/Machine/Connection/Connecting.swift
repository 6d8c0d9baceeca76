import Logging
import PromiseCore
import PromiseIndex
import PromiseProvider

/// Online, offline, and back.
enum Connecting {
    /// Draws the consequence of an error for the connection as a whole.
    static func judge(_ problem: ProviderError, _ turn: inout Turn) {
        switch problem.code {
        case .offline: lost(problem.message, &turn)
        case .authenticate: refused(problem.message, &turn)
        case .retry, .retryAfter, .refused, .permanent:
            if isOfUse(since: turn.now.uptime - .seconds(1), turn) { return }
            doubt(&turn)
        default: break
        }
    }

    // MARK: A storage that answers, and nothing of use

    /// So many answers for the root of no use, and no other one of use meanwhile, and it is away.
    private static let doubtCountMax = 3
    private static let doubtPause = Duration.seconds(2)

    /// It may be one item's trouble, or the whole storage's, as of a server that says 503 to everything: then its root has
    /// it, too, and goes on having it.
    private static func doubt(_ turn: inout Turn) {
        guard turn.memory.connection.isOnline, turn.memory.connection.doubt == nil else { return }
        let now = turn.now.uptime
        turn.remember { $0.connection.doubt = ConnectionMemory.Doubt(since: now) }
        askInDoubt(&turn)
    }

    private static func askInDoubt(_ turn: inout Turn) {
        if !ask(.doubt, &turn) { turn.act(.wait(doubtPause, .doubtDue)) }
    }

    /// What says that an item is gone may say so of everything, as a server in the place of ours does: the root is asked for
    /// before that is believed.
    static func vouch(_ turn: inout Turn) {
        if turn.memory.connection.isOnline { doubt(&turn) } else { endDoubt(&turn) }
    }

    static func doubtAgain(_ turn: inout Turn) {
        if isDoubted(turn) { askInDoubt(&turn) } else { endDoubt(&turn) }
    }

    /// The doubt is over. What is said to be gone is so where there was an answer of use meanwhile, and asked for again
    /// elsewhere.
    private static func endDoubt(_ turn: inout Turn) {
        if turn.memory.connection.doubt.map({ isOfUse(since: $0.since, turn) }) ?? false { Asking.believeGone(&turn) }
        turn.remember { memory in
            memory.connection.doubt = nil
            memory.questions.missing.formUnion(memory.questions.gone.keys)
            memory.questions.gone = [:]
        }
    }

    /// Whether an answer of use has come since then.
    static func isOfUse(since time: Duration, _ turn: borrowing Turn) -> Bool {
        turn.world.lastGood().map { $0 >= time } ?? false
    }

    private static func isDoubted(_ turn: borrowing Turn) -> Bool {
        guard turn.memory.connection.isOnline, let doubt = turn.memory.connection.doubt else { return false }
        return !isOfUse(since: doubt.since, turn)
    }

    private static func isOfNoUse(_ problem: ProviderError, _ turn: inout Turn) {
        if [.offline, .authenticate].contains(problem.code) { return judge(problem, &turn) }
        let count = (turn.memory.connection.doubt?.count ?? 0) + 1
        if isDoubted(turn), count < doubtCountMax, problem.code != .cancelled {
            turn.remember { $0.connection.doubt?.count = count }
            return turn.act(.wait(doubtPause, .doubtDue))
        }
        guard isDoubted(turn), count >= doubtCountMax else { return endDoubt(&turn) }
        if problem.code == .refused { refused(problem.message, &turn) } else { lost(problem.message, &turn) }
    }

    static func lost(_ message: String, _ turn: inout Turn) {
        if turn.memory.connection.isHoped {
            turn.log(.notice, "the provider cannot be reached", reason: message)
        }
        became(.offline(message), &turn)
        disconnect(Failure(.offline, message), &turn)
    }

    private static func refused(_ message: String, _ turn: inout Turn) {
        if turn.memory.connection.isHoped {
            turn.log(.warning, "the provider refuses us", reason: message)
        }
        became(.failing(message), &turn)
        disconnect(Failure(.refused, message), &turn)
    }

    private static func became(_ state: SyncEngine.Connection, _ turn: inout Turn) {
        let now = turn.now.time
        turn.remember { memory in
            if memory.connection.isOnline || memory.connection.since == nil { memory.connection.since = now }
            memory.connection.state = state
            memory.connection.doubt = nil
            // All is looked at when it is back.
            memory.questions.gone = [:]
        }
    }

    /// Nobody is left waiting for a provider that cannot answer.
    private static func disconnect(_ failure: Failure, _ turn: inout Turn) {
        turn.act(.failFetches(failure))
        Listings.failAll(failure, &turn)
        turn.remember { $0.fetches.interrupt() }
        probeLater(&turn)
    }

    private static func probeLater(_ turn: inout Turn) {
        guard !turn.memory.connection.isProbing else { return }
        let attempts = turn.memory.connection.probeAttempts + 1
        let delay = delay(after: attempts, turn)
        let next = turn.now.time.advanced(by: delay)
        turn.remember { memory in
            memory.connection.isProbing = true
            memory.connection.probeAttempts = attempts
            memory.connection.nextTry = next
        }
        turn.act(.wait(delay, .probeDue))
    }

    /// Whatever went wrong before, the provider is looked at within the poll interval after that is
    /// over.
    static func delay(after attempts: Int, _ turn: borrowing Turn) -> Duration {
        let configuration = turn.facts.configuration
        let longest = max(configuration.pollInterval, configuration.backoff.first)
        return min(configuration.backoff.delay(after: attempts), .seconds(30), longest)
    }

    static func probeLaterAgain(_ turn: inout Turn) {
        if !turn.memory.connection.isOnline { probeLater(&turn) }
    }

    // MARK: Asking for the root

    /// How long a call may be silent before another one is made: it may be one that nothing ends.
    private static let answerPatience = Duration.seconds(30)
    /// Calls that have not returned beside which no further one is made, as each may hold a thread of
    /// the provider's.
    private static let rootCallsMax = 3

    /// The provider has not answered yet since the start. The call was made before.
    static func connecting(_ patience: Duration, _ turn: inout Turn) {
        let now = turn.now.time
        turn.remember { memory in
            memory.connection.state = .connecting
            memory.connection.since = now
            memory.connection.rootCalls[0] = .start
        }
        turn.act(.wait(patience, .rootSilent(number: 0)))
    }

    static func probe(_ turn: inout Turn) {
        // The one after this is planned when this has failed: until then it is said when that is at the latest.
        let pause = delay(after: turn.memory.connection.probeAttempts + 1, turn)
        let next = turn.now.time.advanced(by: answerPatience + pause)
        turn.remember { $0.connection.nextTry = next }
        if !ask(.probe, &turn) { silent(.probe, &turn) }
    }

    /// Tries the provider now instead of at the next turn of the backoff; for somebody who waits.
    static func probeNow(_ turn: inout Turn) {
        guard !turn.memory.connection.isHoped, ask(.asked, &turn) else { return }
        turn.remember { $0.connection.askedCount += 1 }
    }

    /// A program waits, and the provider may be away without having said so.
    static func silenceNoticed(_ turn: inout Turn) {
        let connection = turn.memory.connection
        guard connection.isOnline, !connection.isWatching else { return }
        turn.remember { $0.connection.isWatching = true }
        guard !ask(.watch, &turn) else { return }
        isOver(.watch, &turn)
        silent(.watch, &turn)
    }

    /// What is large may keep the line busy, or a provider that does one thing at a time.
    private static func patience(of call: ConnectionMemory.RootCall, _ turn: borrowing Turn) -> Duration {
        guard call == .watch || call == .doubt else { return answerPatience }
        let patience = turn.facts.configuration.watchPatience
        return turn.memory.operations.hasLarge ? max(answerPatience, patience) : patience
    }

    /// False when so many calls hang that another one would only hang beside them.
    private static func ask(_ reason: ConnectionMemory.RootCall, _ turn: inout Turn) -> Bool {
        guard turn.memory.connection.rootCalls.count < rootCallsMax else { return false }
        let number = turn.memory.connection.rootCallCount + 1
        turn.remember { memory in
            memory.connection.rootCallCount = number
            memory.connection.rootCalls[number] = .some(reason)
        }
        turn.act(.call(.root(number: number)))
        turn.act(.wait(patience(of: reason, turn), .rootSilent(number: number)))
        return true
    }

    static func answered(
        _ number: Int, _ result: Result<Item, ProviderError>, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard let call = turn.memory.connection.rootCalls[number] else { return }
        turn.remember { $0.connection.rootCalls[number] = nil }
        if let call { isOver(call, &turn) }
        switch result {
        case .success(let root):
            if call == .doubt { turn.remember { $0.connection.doubt = nil } }
            if root.identifier == turn.facts.rootIdentifier { Asking.believeGone(&turn) }
            try found(root, &turn, transaction)
        case .failure(let problem): if let call { failed(call, problem, &turn) }
        }
    }

    static func isSilent(_ number: Int, _ turn: inout Turn) {
        guard let call = turn.memory.connection.rootCalls[number], let call else { return }
        turn.remember { $0.connection.rootCalls[number] = .some(nil) }
        isOver(call, &turn)
        // Others were answered meanwhile.
        let patience = turn.facts.configuration.watchPatience
        // The call itself may be all that was made since.
        if call == .watch || call == .doubt,
            turn.world.silence().map({ $0 + .seconds(1) < patience }) ?? true
        {
            return endDoubt(&turn)
        }
        // The line that it was made on may be dead.
        turn.act(.cancelRoot(number: number))
        silent(call, &turn)
    }

    private static func silent(_ call: ConnectionMemory.RootCall, _ turn: inout Turn) {
        failed(call, ProviderError(.offline, "the provider does not answer"), &turn)
    }

    /// Nobody waits for it any more.
    private static func isOver(_ call: ConnectionMemory.RootCall, _ turn: inout Turn) {
        switch call {
        case .start: break
        case .probe: turn.remember { $0.connection.isProbing = false }
        case .asked: turn.remember { $0.connection.askedCount -= 1 }
        case .watch: turn.remember { $0.connection.isWatching = false }
        case .doubt: break
        }
    }

    private static func failed(
        _ call: ConnectionMemory.RootCall, _ problem: ProviderError, _ turn: inout Turn
    ) {
        switch call {
        case .start:
            switch problem.code {
            case .offline, .retry, .retryAfter, .cancelled: lost(problem.message, &turn)
            default: refused(problem.message, &turn)
            }
        case .probe:
            turn.remember { $0.connection.isProbing = false }
            // Others may have found it back meanwhile, and then it is away once more.
            if turn.memory.connection.isOnline { judge(problem, &turn) }
            // Where it is away when that is remembered: until then a try seems to be under way.
            turn.act(.go(.probeLater))
        case .doubt: isOfNoUse(problem, &turn)
        case .asked, .watch: judge(problem, &turn)
        }
    }

    /// A provider that was away while this mount began may be another one than the mount is of: its
    /// items would look like ours being deleted.
    private static func found(
        _ root: Item, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard root.identifier == turn.facts.rootIdentifier else {
            refused(
                "'\(turn.facts.providerName)' is not the storage this state directory was made for: "
                    + "choose another --state-dir or --domain", &turn)
            // The right one may be back later. Until the end of this try is remembered it seems to be under way.
            return turn.act(.go(.probeLater))
        }
        try regained(&turn, transaction)
    }

    private static func regained(_ turn: inout Turn, _ transaction: borrowing Transaction)
        throws(Failure)
    {
        guard !turn.memory.connection.isOnline else { return }
        turn.remember { memory in
            memory.connection.probeAttempts = 0
            memory.connection.state = .online
            memory.connection.since = nil
            memory.connection.nextTry = nil
            memory.fetches.lookForPinned()
        }
        turn.log(.notice, "the provider is back")
        try transaction.makePendingDue(at: turn.now.time)
        try Listings.everything(beforeTelling: true, &turn, transaction)
        Feeding.start(&turn)
    }
}
