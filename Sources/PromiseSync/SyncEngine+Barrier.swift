import Logging
package import PromiseCore
import PromiseIndex
import PromiseSystem
import Synchronization

// Looking at the provider now, and waiting until it has everything.

extension SyncEngine {
    package struct Remainder: Sendable, Equatable {
        package var pending: Int
        package var failing: Int
        package var isLooking: Bool

        package var isDone: Bool { pending == 0 && !isLooking }
    }

    /// Lists again the known folders that may have changed and makes pending work due; all known folders if `everything`. Called
    /// from any thread.
    package func lookNow(everything: Bool = false) {
        published.withLock { published in
            published.isLooking = true
            published.probeCount += 1
        }
        mailbox.post { engine in
            engine.probeNow()
            engine.published.withLock { $0.probeCount -= 1 }
            if everything { engine.rescanEverything() } else { engine.lookForNews() }
            engine.makeEverythingDue()
        }
    }

    /// While draining, files that are open for writing are sent as they are and quiet times are cut short.
    package func setDraining(_ isDraining: Bool) {
        mailbox.post { engine in
            engine.state.isDraining = isDraining
            engine.makeEverythingDue()
        }
    }

    /// Makes pending work due now, including what open files hold.
    package func makeEverythingDueNow() { mailbox.post { $0.makeEverythingDue() } }

    private func makeEverythingDue() {
        observer.noteOpenWrites()
        do throws(Failure) {
            let now = clock.now()
            try index.write { transaction throws(Failure) in try transaction.makeAllPendingDue(at: now) }
        } catch {
            logger.error("pending work could not be made due", metadata: ["reason": "\(error.message)"])
        }
    }

    /// What the provider has not been told yet.
    package func remainder() throws(Failure) -> Remainder {
        let isLooking = published.withLock { $0.isLooking }
        return try index.read { transaction throws(Failure) in
            let counts = try transaction.counts()
            return Remainder(pending: counts.pending, failing: counts.failing, isLooking: isLooking)
        }
    }

    /// What stands in the way, of the oldest pending work that has a message.
    package func obstacle() throws(Failure) -> String? {
        try index.read { transaction throws(Failure) in try transaction.allPending(limit: 100).compactMap(\.message).first }
    }

    /// A job waits for its file's next reader; when nobody has the file open there will be none.
    func hydrationPaused(_ node: NodeID) {
        if !observer.isOpen(node) { hydrator.release(node) }
    }
}
