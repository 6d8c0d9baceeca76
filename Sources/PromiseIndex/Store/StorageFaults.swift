import CPromiseIndex
import PromiseSystem

/// Lets `FaultInjection` reach the calls that SQLite makes by itself.
enum StorageFaults {
    /// Does nothing unless faults may come; then connections opened from now on ask first.
    static func install() {
        guard FaultInjection.isWatching else { return }
        promise_index_install_faults(askForFault)
    }
}

/// Called by SQLite's threads; captures nothing.
private func askForFault(_ label: UnsafePointer<CChar>) -> CInt {
    guard let label = String(validatingCString: label) else { return 0 }
    if FaultInjection.takeShort(named: label) { return -1 }
    return FaultInjection.take(named: label) ?? 0
}
