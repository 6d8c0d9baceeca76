import Glibc
import PromiseWire

/// Who follows what a daemon tells, over its end: waits for the next daemon, and says what it means
/// when none comes.
public struct DaemonSuccession: Sendable {
    private enum End {
        /// It said so: the domain was unmounted.
        case unmounted
        case died
        /// It lives and answers nothing. Its holder replaces it after a while.
        case silent
    }

    private let domain: String
    private let patience: Duration
    private let patienceWhenSilent: Duration
    /// When a daemon last said that it ends. Until it has ended it may take a question, and break off
    /// its answer. Nil when the next one has told something.
    private var parting: ContinuousClock.Instant?

    /// `domain`: for messages.
    public init(of domain: String) {
        self.init(
            of: domain, patience: Successor.patience, whenSilent: DaemonSuccession.timeUntilReplaced)
    }

    package init(of domain: String, patience: Duration, whenSilent: Duration) {
        self.domain = domain
        self.patience = patience
        patienceWhenSilent = whenSilent
    }

    /// What the next daemon replies to `open`. `error`: why the last one tells no more; nil: it has
    /// ended its reply. Nil when the domain was unmounted, and not mounted again in ten seconds, or the
    /// task was cancelled. Throws what is no end of a daemon, and of status 4 when it died, or answers
    /// nothing, and no other one comes.
    public mutating func next<Value>(
        after error: PromiseError?, _ open: () async throws(PromiseError) -> Value
    ) async throws(PromiseError) -> Value? {
        let end = noted(try end(of: error))
        let limit = end == .silent ? patienceWhenSilent : patience
        if let reply = try await Successor.reply(within: limit, open) { return reply }
        if Task.isCancelled { return nil }
        switch end {
        case .unmounted: return nil
        case .died:
            throw PromiseError(
                .notAnswering,
                "the daemon of '\(domain)' has died and no other one came: look at its log, and mount again",
                exitStatus: 4)
        case .silent:
            throw PromiseError(
                .notAnswering,
                "the daemon of '\(domain)' does not answer and no other one came; look at its log",
                exitStatus: 4)
        }
    }

    /// The daemon that replied last has told something: it is no longer the one that ends, and its
    /// own end is told for what it is.
    public mutating func heard() { parting = nil }

    private mutating func noted(_ end: End) -> End {
        let now = ContinuousClock.now
        if let parting, now - parting < Successor.patience { return .unmounted }
        if end == .unmounted { parting = now }
        return end
    }

    private func end(of error: PromiseError?) throws(PromiseError) -> End {
        guard let error else { return .unmounted }
        guard error.isEndOfDaemon else { throw error }
        switch error.kind {
        case .refused: return .unmounted
        case .notAnswering: return .silent
        case .brokenReply, .notPromiseFS, .local, .cancelled: return .died
        }
    }

    /// A holder looks every ten seconds, and the next daemon takes a while to begin.
    private static var timeUntilReplaced: Duration {
        let text = getenv("PROMISEFS_PATIENCE").map { String(cString: $0) }
        let seconds = text.flatMap { Int($0) } ?? 60
        // Nobody replaces it.
        if seconds <= 0 { return Successor.patience }
        return .seconds(min(seconds, 86_400) + 30)
    }
}

/// Waits for the daemon that comes after one that has ended.
public enum Successor {
    public static let patience = Duration.seconds(10)
    private static let pause = Duration.milliseconds(200)

    /// What `open` gives as soon as there is a daemon that answers; nil when none comes.
    public static func reply<Value>(
        within patience: Duration = patience, _ open: () async throws(PromiseError) -> Value
    ) async throws(PromiseError) -> Value? {
        let start = ContinuousClock.now
        while ContinuousClock.now - start < patience {
            try? await Task.sleep(for: pause)
            if Task.isCancelled { return nil }
            do throws(PromiseError) {
                return try await open()
            } catch {
                guard error.isEndOfDaemon else { throw error }
            }
        }
        return nil
    }
}

extension PromiseError {
    /// Nobody answers, or the answer broke off: another daemon may come. Not that an answer makes no
    /// sense.
    public var isEndOfDaemon: Bool {
        switch kind {
        case .notAnswering: true
        case .brokenReply: exitStatus == 4
        case .refused(let problem): problem.code == "interrupted"
        case .notPromiseFS, .local, .cancelled: false
        }
    }
}
