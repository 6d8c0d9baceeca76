import CPromiseSystem
import Glibc
import Synchronization

/// The process that started this daemon, keeps its mount while it does not live, and starts its successor (Mount/Holder).
///
/// Thread-safe. Every call is one message on a socket and does not wait.
package final class Holder: Sendable {
    package let processID: Int32
    /// How many daemons this mount has had before.
    package let restarts: Int
    /// The FUSE device of the mount that is to be gone on with; nil when a mount has to be made.
    package let device: CInt?
    /// How the last daemon ended, as wait(2) has it; 0 before there was one.
    package let lastStatus: Int32
    package let record: MountRecord
    private struct Liveness {
        /// Whether this daemon can serve; nil: it has not begun to.
        var isServing: (@Sendable () -> Bool)?
    }
    private let liveness = Mutex(Liveness())

    private init(processID: Int32, restarts: Int, device: CInt?, lastStatus: Int32, record: MountRecord) {
        self.record = record
        self.processID = processID
        self.restarts = restarts
        self.device = device
        self.lastStatus = lastStatus
    }

    /// Nil for a daemon that was started without one. Call once, before threads are started: programs started from here on
    /// see nothing of it. Throws when there is no memory for the record.
    package static func find() throws(SystemError) -> Holder? {
        guard let text = getenv(HOLDER_ENVIRONMENT) else { return nil }
        // Numbers written by the holder.
        let numbers = String(cString: text).split(separator: " ").compactMap { Int32($0) }
        unsetenv(HOLDER_ENVIRONMENT)
        // Inherited from somebody else's daemon it means nothing.
        guard numbers.count == 4, numbers[0] == getppid() else { return nil }
        let device = numbers[2] != 0 ? CInt(HOLDER_DEVICE) : nil
        let mine = [CInt(HOLDER_LINE), CInt(HOLDER_RECORD)] + (device.map { [$0] } ?? [])
        for descriptor in mine { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
        let record = try MountRecord(descriptor: CInt(HOLDER_RECORD), takesOver: device != nil)
        let holder = Holder(
            processID: numbers[0], restarts: Int(numbers[1]), device: device, lastStatus: numbers[3], record: record)
        // It ends with this process also when another thread cannot, in a call that nothing ends.
        OwnedThread(name: "holder-line") {
            cps_holder_tell_thread(CInt(HOLDER_LINE))
            holder.tellAliveForEver()
        }.detach()
        return holder
    }

    /// From here on the holder is told that this daemon lives only while it `isServing`, which must not wait.
    package func tellAlive(while isServing: @escaping @Sendable () -> Bool) {
        liveness.withLock { $0.isServing = isServing }
    }

    /// Says six times within the holder's patience that this process runs, and that its mount is served.
    private func tellAliveForEver() -> Never {
        let interval = Int(cps_holder_patience()) / 6
        while interval > 0 {
            if liveness.withLock({ $0.isServing })?() ?? true { tell(HOLDER_ALIVE) }
            // It stands still while the machine sleeps, as the holder's clock does.
            var pause = timespec(tv_sec: interval / 1000, tv_nsec: interval % 1000 * 1_000_000)
            nanosleep(&pause, nil)
        }
        while true { pause() }
    }

    /// False once it has died: then nobody starts a successor.
    package var isAlive: Bool { getppid() == processID }

    /// How the last daemon ended, for people; nil before there was one.
    package var lastEnd: String? {
        guard restarts > 0 else { return nil }
        if lastStatus & HOLDER_SILENT != 0 { return "silence" }
        let signal = lastStatus & 0x7F
        return signal != 0 ? "signal \(signal)" : "status \(lastStatus >> 8 & 0xFF)"
    }

    /// Hands over the FUSE device: from here on the mount outlives this daemon.
    package func keep(device: CInt) { tell(HOLDER_KEEP, device) }
    package func tellServing() { tell(HOLDER_SERVING) }
    /// The mount has ended in order: there will be no successor.
    package func tellEnded() { tell(HOLDER_ENDED) }
    /// This daemon is about to end and wants a successor.
    package func tellRestart() { tell(HOLDER_RESTART) }

    // A holder that has died cannot be told, and has nothing to do.
    private func tell(_ message: holder_message, _ descriptor: CInt = -1) {
        _ = cps_holder_tell(CInt(HOLDER_LINE), message, descriptor)
    }
}
