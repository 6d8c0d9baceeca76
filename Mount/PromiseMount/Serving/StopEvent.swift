import CFuseTransport
import Glibc
import PromiseCore
import PromiseFilesystem

/// How a session ends whose mount nobody here can take away: its thread waits for a request and for
/// this. Thread-safe.
final class StopEvent: Sendable {
    private let device: CInt
    private let event: CInt

    /// The device is read only when it has something from here on, and nobody waits in the read.
    init(watching device: CInt) {
        self.device = device
        event = ct_event_create()
        precondition(event >= 0, "no event descriptor could be made: errno \(-event)")
        _ = fcntl(device, F_SETFL, fcntl(device, F_GETFL) | O_NONBLOCK)
    }

    deinit { close(event) }

    func set() {
        var one: UInt64 = 1
        _ = write(event, &one, 8)
    }

    /// False when it was set.
    func waitForRequest() -> Bool {
        var watched = [
            pollfd(fd: device, events: Int16(POLLIN), revents: 0),
            pollfd(fd: event, events: Int16(POLLIN), revents: 0),
        ]
        while poll(&watched, 2, -1) < 0 && errno == EINTR {}
        return watched[1].revents == 0
    }
}

/// Of a kernel that keeps nothing.
struct SilentNotifier: KernelNotifier {
    func invalidateEntry(_ name: FileName, in parent: NodeID) {}
    func expireEntry(_ name: FileName, in parent: NodeID) {}
    func deleteEntry(_ name: FileName, of node: NodeID, in parent: NodeID) {}
    func invalidateAttributes(of node: NodeID) {}
    func invalidateContent(of node: NodeID, range: ByteRange?) {}
    var progress: (noted: UInt64, told: UInt64) { (0, 0) }
}
