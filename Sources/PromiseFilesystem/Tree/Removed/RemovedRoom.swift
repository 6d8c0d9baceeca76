import Logging
import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem

/// While programs write, what was removed takes no more of the disk than is free besides: the
/// kernel writes to content files by itself, and nobody else would see the disk fill. Thread-safe.
final class RemovedRoom: Sendable {
    private static let pause = Duration.milliseconds(500)

    private let index: Index
    private let engine: SyncEngine
    private let clock: any TimeSource
    private let logger: Logger
    private let lookout: Lookout

    init(
        _ index: Index, _ engine: SyncEngine, _ clock: any TimeSource, _ logger: Logger,
        _ lookout: Lookout
    ) {
        self.index = index
        self.engine = engine
        self.clock = clock
        self.logger = logger
        self.lookout = lookout
    }

    /// `isWritten`: some program has a file open for writing.
    func begin(isWritten: @escaping @Sendable () -> Bool) {
        lookout.begin { [self] in isWritten() && look() ? clock.uptime() + RemovedRoom.pause : nil }
    }

    func end() { lookout.end() }

    /// Within the transaction that lets a program write.
    func noteWriter(_ transaction: borrowing Transaction) {
        if RemovedRows.totals(transaction).bytes > 0 {
            lookout.wake(at: clock.uptime() + RemovedRoom.pause)
        }
    }

    /// False when nothing is kept.
    private func look() -> Bool {
        do throws(Failure) {
            let kept = try index.read { transaction throws(Failure) in
                RemovedRows.totals(transaction).bytes
            }
            let room = engine.removed.room()
            if kept > room {
                _ = try engine.removed.drop(atLeast: kept - room)
                engine.remover.flush()
            }
            return kept > 0
        } catch {
            logger.warning(
                "what was removed cannot make room", metadata: ["reason": "\(error.message)"])
            return true
        }
    }
}
