import Logging
package import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSystem
import Synchronization

// Online, offline, and back.

extension SyncEngine {
    var isOnline: Bool { connection == .online }

    /// The failure a program gets at once while the provider cannot be reached; nil while it can.
    package var connectionFailure: Failure? {
        switch connection {
        case .online: nil
        case .offline(let message): Failure(.offline, message)
        case .failing(let message): Failure(.refused, message)
        }
    }

    func fetchTroubled(_ node: NodeID, _ problem: ProviderError) {
        judge(problem)
        switch problem.code {
        case .stale, .notFound: refresh(node)
        default: break
        }
    }

    /// Draws the consequence of an error for the connection as a whole.
    func judge(_ problem: ProviderError) {
        switch problem.code {
        case .offline: lostConnection(problem.message)
        case .authenticate: refusedConnection(problem.message)
        default: break
        }
    }

    func lostConnection(_ message: String) {
        if isOnline { logger.notice("the provider cannot be reached", metadata: ["reason": "\(message)"]) }
        published.withLock { $0.connection = .offline(message) }
        disconnect(Failure(.offline, message))
    }

    private func refusedConnection(_ message: String) {
        if isOnline { logger.warning("the provider refuses us", metadata: ["reason": "\(message)"]) }
        published.withLock { $0.connection = .failing(message) }
        disconnect(Failure(.refused, message))
    }

    /// Nobody is left waiting for a provider that cannot answer.
    private func disconnect(_ failure: Failure) {
        hydrator.failAll(failure)
        failListings(failure)
        state.fetches.interrupt()
        probeLater()
    }

    private func probeLater() {
        guard !state.isProbing else { return }
        state.isProbing = true
        state.probeAttempts += 1
        let delay = min(configuration.backoff.delay(after: state.probeAttempts), .seconds(30))
        Task { [provider, mailbox] in
            try? await Task.sleep(for: delay)
            do throws(ProviderError) {
                _ = try await provider.root()
                mailbox.post { $0.probed(nil) }
            } catch {
                mailbox.post { $0.probed(error) }
            }
        }
    }

    private func probed(_ problem: ProviderError?) {
        state.isProbing = false
        if let problem {
            if connection != .online { probeLater() } else { judge(problem) }
            return
        }
        regainedConnection()
    }

    private func regainedConnection() {
        guard !isOnline else { return }
        state.probeAttempts = 0
        published.withLock { $0.connection = .online }
        logger.notice("the provider is back")
        do throws(Failure) {
            let now = clock.now()
            try index.write { transaction throws(Failure) in try transaction.makeAllPendingDue(at: now) }
        } catch {
            logger.error("pending work could not be resumed", metadata: ["reason": "\(error.message)"])
        }
        state.fetches.lookForPinned()
        rescanEverything(beforeTelling: true)
        startFeed()
    }

    /// Tries the provider now instead of at the next turn of the backoff; for somebody who waits.
    func probeNow() {
        guard !isOnline else { return }
        published.withLock { $0.probeCount += 1 }
        Task { [provider, mailbox] in
            let result: Result<Void, ProviderError>
            do throws(ProviderError) {
                _ = try await provider.root()
                result = .success(())
            } catch {
                result = .failure(error)
            }
            mailbox.post { engine in
                switch result {
                case .success: engine.regainedConnection()
                case .failure(let problem): engine.judge(problem)
                }
                engine.published.withLock { $0.probeCount -= 1 }
            }
        }
    }

    /// Somebody who waits has the provider tried, and it has not answered yet.
    package var isProbing: Bool { published.withLock { $0.probeCount > 0 } }
}
