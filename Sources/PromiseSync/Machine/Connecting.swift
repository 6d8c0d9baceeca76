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
        default: break
        }
    }

    static func lost(_ message: String, _ turn: inout Turn) {
        if turn.memory.connection.isOnline {
            turn.log(.notice, "the provider cannot be reached", reason: message)
        }
        turn.remember { $0.connection.state = .offline(message) }
        disconnect(Failure(.offline, message), &turn)
    }

    private static func refused(_ message: String, _ turn: inout Turn) {
        if turn.memory.connection.isOnline {
            turn.log(.warning, "the provider refuses us", reason: message)
        }
        turn.remember { $0.connection.state = .failing(message) }
        disconnect(Failure(.refused, message), &turn)
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
        turn.remember { memory in
            memory.connection.isProbing = true
            memory.connection.probeAttempts = attempts
        }
        turn.act(
            .wait(
                min(turn.facts.configuration.backoff.delay(after: attempts), .seconds(30)),
                .probeDue))
    }

    /// Tries the provider now instead of at the next turn of the backoff; for somebody who waits.
    static func probeNow(_ turn: inout Turn) {
        guard !turn.memory.connection.isOnline else { return }
        turn.remember { $0.connection.askedCount += 1 }
        turn.act(.call(.probe(isAsked: true)))
    }

    /// Nil: the provider has answered.
    static func probed(
        _ problem: ProviderError?, isAsked: Bool, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        turn.remember { memory in
            if isAsked {
                memory.connection.askedCount -= 1
            } else {
                memory.connection.isProbing = false
            }
        }
        guard let problem else { return try regained(&turn, transaction) }
        if isAsked || turn.memory.connection.isOnline {
            judge(problem, &turn)
        } else {
            turn.act(.go(.probeLater))
        }
    }

    static func probeLaterAgain(_ turn: inout Turn) {
        if !turn.memory.connection.isOnline { probeLater(&turn) }
    }

    private static func regained(_ turn: inout Turn, _ transaction: borrowing Transaction)
        throws(Failure)
    {
        guard !turn.memory.connection.isOnline else { return }
        turn.remember { memory in
            memory.connection.probeAttempts = 0
            memory.connection.state = .online
            memory.fetches.lookForPinned()
        }
        turn.log(.notice, "the provider is back")
        try transaction.makeAllPendingDue(at: turn.now.time)
        try Listings.everything(beforeTelling: true, &turn, transaction)
        Feeding.start(&turn)
    }
}
