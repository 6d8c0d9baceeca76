import Glibc
import Synchronization

/// Makes one labelled system call fail once, for tests: `PROMISEFS_FAULT=label:errno[:skip]`, e.g.
/// `content.write:28:3` lets three calls at `content.write` pass and fails the fourth with ENOSPC.
///
/// Off unless the variable is set when the process starts; then one relaxed load a call is all it costs.
package enum FaultInjection {
    private struct Fault {
        var label: String
        var errno: CInt
        var skip: Int
    }

    private static let armed = Atomic<Bool>(false)
    private static let fault = Mutex<Fault?>(nil)

    /// Reads the environment. Called once by the executable before anything else.
    package static func arm(from text: String?) {
        guard let text else { return }
        let parts = text.split(separator: ":")
        guard parts.count >= 2, let code = CInt(parts[1]) else { return }
        fault.withLock { $0 = Fault(label: String(parts[0]), errno: code, skip: parts.count > 2 ? Int(parts[2]) ?? 0 : 0) }
        armed.store(true, ordering: .releasing)
    }

    /// A fault waits for its call.
    package static var isArmed: Bool { armed.load(ordering: .acquiring) }

    package static func take(_ label: StaticString) -> CInt? {
        guard armed.load(ordering: .acquiring) else { return nil }
        return fault.withLock { fault in
            guard let current = fault, current.label == "\(label)" else { return nil }
            if current.skip > 0 {
                fault?.skip -= 1
                return nil
            }
            fault = nil
            armed.store(false, ordering: .releasing)
            return current.errno
        }
    }
}
