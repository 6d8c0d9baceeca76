import Logging
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem
import Synchronization

/// How a server is met. That the bucket is there is asked at once, with one request. What the
/// server does with what is written is tried before something is, or after a moment; again, when it
/// had trouble or refused to be tried.
final class FirstMeeting: Sendable {
    private struct State: Sendable {
        /// What the server calls itself; nil until it has been met.
        var subject: String?
        /// It has just said that the bucket is there.
        var isJustMet = false
        /// When it was tried last what the server does.
        var tried = Timestamp.zero
    }

    private static let pauseAfterTrouble = Duration.seconds(30)
    private static let pauseAfterRefusal = Duration.seconds(900)

    let acquaintance = Acquaintance()
    /// Trying what a server does writes to it, and so does ending a move.
    let mayProbe: Bool
    private let bucket: S3Bucket
    private let file: RememberedFile<S3Traits>
    private let remembered: S3Traits?
    private let troubles = ProbeTroubles()
    private let state = Mutex(State())

    init(_ bucket: S3Bucket, stateFolder: [UInt8]?, mayProbe: Bool) {
        self.bucket = bucket
        self.mayProbe = mayProbe
        file = RememberedFile(folder: stateFolder, name: "s3-server.json", logger: bucket.logger)
        remembered = file.read()
        if let remembered { bucket.take(remembered) }
    }

    /// All at once; a server in trouble is taken as it seems to be. `andThen` is done then.
    func connect(andThen: @Sendable () async -> Void) async throws(ProviderError) {
        if try await !meet() { try await becomeAcquainted(isPatient: false) }
        state.withLock { $0.isJustMet = false }
        await andThen()
    }

    /// `andThen` is done when it is known what the server does, which nobody waits for who only
    /// reads.
    func greet(andThen: @escaping @Sendable () async -> Void) async throws(ProviderError) {
        let isKnown = try await meet()
        acquaintance.postpone(isNeeded: !isKnown) { [weak self] () async throws(ProviderError) in
            guard let self else { return }
            if !isKnown { try await self.becomeAcquainted(isPatient: true) }
            await andThen()
        }
    }

    /// Asks whether the bucket is there, unless the server has just said so. Returns whether the
    /// server has yet to be greeted: it was away when the mount began, and nothing is remembered of
    /// it.
    func look() async throws(ProviderError) -> Bool {
        let isJustMet = state.withLock { state in
            defer { state.isJustMet = false }
            return state.isJustMet
        }
        if isJustMet { return false }
        _ = try await bucket.firstLook()
        return !bucket.isAcquainted && state.withLock { $0.subject == nil }
    }

    /// Returns whether it is known what the server does.
    private func meet() async throws(ProviderError) -> Bool {
        let (reply, location) = (try await bucket.firstLook(), bucket.location)
        let subject =
            "\(reply.header("Server") ?? "") \(location.origin)\(location.path(location.prefix))"
        troubles.forget()
        state.withLock { ($0.subject, $0.isJustMet) = (subject, true) }
        if let known = remembered, known.subject == subject {
            bucket.take(known)
            return true
        }
        guard !mayProbe else { return false }
        var traits = S3Traits.provisional
        traits.subject = subject
        note(traits)
        return true
    }

    private func becomeAcquainted(isPatient: Bool) async throws(ProviderError) {
        let (probe, logger) = (S3Probe(bucket), bucket.logger)
        var traits: S3Traits
        do throws(ProviderError) {
            traits = try await probe.run()
        } catch {
            if error.code == .cancelled { throw error }
            if isPatient, await troubles.isPassing(error, isWell: { await probe.isWell() }) {
                throw error
            }
            traits = S3Probe.guess
            traits.brokeOff = true
            logger.warning(
                "it could not be tried what the server does",
                metadata: ["reason": "\(error.description)"])
        }
        traits.subject = state.withLock { $0.subject } ?? ""
        note(traits)
        // What was looked for where this server keeps nothing of the kind was not found.
        if !traits.keepsMarkers { bucket.details.forgetEverything() }
        for sentence in traits.shortcomings {
            logger.notice("the server lacks something", metadata: ["lack": "\(sentence)"])
        }
    }

    private func note(_ traits: S3Traits) {
        bucket.take(traits)
        state.withLock { $0.tried = bucket.clock.now() }
        if !traits.isGuess { file.write(traits) }
    }

    /// What a server does is tried again, when it had trouble or refused to be tried, but not all
    /// the time.
    func tryAgain() async {
        guard mayProbe, let guess = bucket.knownTraits, guess.isGuess else { return }
        let now = bucket.clock.now()
        let pause = guess.brokeOff ? FirstMeeting.pauseAfterTrouble : FirstMeeting.pauseAfterRefusal
        let isDue = state.withLock { state in
            guard state.tried.advanced(by: pause) <= now else { return false }
            state.tried = now
            return true
        }
        // What was found out before holds until the server can be tried.
        guard isDue, var found = try? await S3Probe(bucket).run() else { return }
        found.subject = guess.subject
        note(found)
    }
}
