import CFuseTransport
import Logging
import Synchronization

/// Takes libfuse's messages, which are the process's and not a session's, to the logger of the last session that asked.
enum LibraryLog {
    private static let logger = Mutex<Logger?>(nil)

    static func route(to logger: Logger) {
        self.logger.withLock { $0 = logger }
        ct_set_log_sink(forwardLibraryMessage)
    }

    fileprivate static func forward(_ priority: CInt, _ text: String) {
        guard let logger = logger.withLock({ $0 }) else { return }
        // syslog(3): 3 is an error, 4 a warning. Failures of the mount are thrown as well, so this is not the only line.
        let level: Logger.Level = priority <= 3 ? .error : priority == 4 ? .warning : priority <= 6 ? .info : .debug
        logger.log(level: level, "libfuse", metadata: ["message": "\(text)"])
    }
}

private func forwardLibraryMessage(_ priority: CInt, _ text: UnsafePointer<CChar>) {
    // A message for people, in ASCII but for what it quotes.
    LibraryLog.forward(priority, String(cString: text))
}
