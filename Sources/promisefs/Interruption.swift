import Dispatch
import Glibc
import Synchronization

/// Ctrl-C is how a command ends that goes on until interrupted: after the line that it is writing, with the status that shells
/// give to it.
///
/// Dispatch reads the signal on a queue of its own: nothing of Swift runs in a handler.
enum Interruption {
    static let status: Int32 = 130

    // Safe because it is guarded by the mutex, and dispatch objects may be used from any thread.
    nonisolated(unsafe) private static var source: (any DispatchSourceSignal)?
    private static let turn = Mutex(())

    /// From now on. `parting`: what must not be left behind.
    static func ends(_ parting: @escaping @Sendable () -> Void = {}) {
        turn.withLock { _ in
            guard source == nil else { return }
            if isIgnored { return }
            let new = DispatchSource.makeSignalSource(signal: SIGINT, queue: DispatchQueue(label: "promisefs.interruption"))
            new.setEventHandler {
                Output.finish()
                parting()
                exit(status)
            }
            // Dispatch puts a handler of its own in the place of the default, which ends this process until then. To
            // ignore the signal before would lose it.
            new.activate()
            source = new
        }
    }

    /// Whoever started this process wants it to go on, as shells do that run it in the background.
    static var isIgnored: Bool {
        var action = sigaction()
        sigaction(SIGINT, nil, &action)
        let handler = action.__sigaction_handler.sa_handler
        // Safe because both are addresses, and functions cannot be compared.
        return unsafeBitCast(handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
    }
}
