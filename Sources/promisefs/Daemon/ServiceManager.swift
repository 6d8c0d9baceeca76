import Glibc
import PromiseCore
import PromiseSystem

/// What started this process as a service and wants to hear of it (sd_notify(3)): each message is a datagram of lines
/// to the socket that `NOTIFY_SOCKET` names.
struct ServiceManager: Sendable, Equatable {
    /// As the kernel wants it: a path, or a zero and a name of the abstract namespace.
    let address: [UInt8]
    /// How long it may hear nothing before it takes the service for dead.
    let patience: Duration?

    init?(socket: String?, watchdogMicroseconds: String?) {
        guard let socket, socket.hasPrefix("/") || socket.hasPrefix("@"), socket.utf8.count > 1 else { return nil }
        let bytes = Array(socket.utf8)
        address = bytes[0] == UInt8(ascii: "@") ? [0] + bytes.dropFirst() : bytes
        guard address.count < MemoryLayout<sockaddr_un>.size - MemoryLayout<sa_family_t>.size else { return nil }
        let microseconds = watchdogMicroseconds.flatMap(Int64.init) ?? 0
        patience = microseconds > 0 ? .microseconds(microseconds) : nil
    }

    /// From the environment, which loses it: what this process starts is not the service. `WATCHDOG_PID` names the
    /// holder, which started this process, and is not asked: the units let every process of the service speak.
    static func take() -> ServiceManager? {
        let result = ServiceManager(
            socket: environment("NOTIFY_SOCKET"), watchdogMicroseconds: environment("WATCHDOG_USEC"))
        forget()
        return result
    }

    static func forget() {
        for name in ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"] { unsetenv(name) }
    }

    /// False when it could not be sent, which nobody can do anything about.
    @discardableResult func tell(_ lines: [String]) -> Bool {
        let socket = Glibc.socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard socket >= 0 else { return false }
        defer { close(socket) }
        let message = Array(lines.joined(separator: "\n").utf8)
        var storage = sockaddr_un()
        storage.sun_family = sa_family_t(AF_UNIX)
        let offset = MemoryLayout<sockaddr_un>.offset(of: \.sun_path) ?? MemoryLayout<sa_family_t>.size
        let size = socklen_t(offset + address.count)
        return withUnsafeMutableBytes(of: &storage) { raw in
            for (index, byte) in address.enumerated() { raw[offset + index] = byte }
            guard let pointer = raw.baseAddress?.assumingMemoryBound(to: sockaddr.self) else { return false }
            return message.withUnsafeBytes { sendto(socket, $0.baseAddress, $0.count, 0, pointer, size) } == message.count
        }
    }

    /// Says three times within its patience that the mount answers, for as long as it does: a mount whose threads all
    /// hang is found by this and by nothing else. The thread ends with the process.
    func keepTelling(thatAnswers mountPoint: [UInt8]) {
        guard let patience else { return }
        OwnedThread(name: "watchdog") {
            while true {
                var pause = timespec(tv_sec: 0, tv_nsec: 0)
                let nanoseconds = (patience / 3).nanoseconds
                pause.tv_sec = Int(nanoseconds / 1_000_000_000)
                pause.tv_nsec = Int(nanoseconds % 1_000_000_000)
                nanosleep(&pause, nil)
                if SystemMounts.probeByThread(mountPoint) == .alive { tell(["WATCHDOG=1"]) }
            }
        }.detach()
    }
}
