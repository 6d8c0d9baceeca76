import PromiseCore
import PromiseMount
import PromiseSystem

/// The mount is gone, and its daemon ends when the last file below it is closed. A process in a
/// mount namespace of its own may keep the mount, of which nobody else sees anything.
struct ClosingWait {
    /// The index is written to the disk, which others may keep busy.
    private static let longest = Duration.seconds(60)

    private let device: [UInt8]?
    private let clock: any TimeSource

    /// Before the mount goes.
    init(mountPoint: [UInt8]?, clock: any TimeSource) {
        let device = mountPoint.flatMap { MountTable.device(of: $0) }
        self.device = device.map { Array("\($0.major):\($0.minor)".utf8) }
        self.clock = clock
    }

    /// How many items were left pending, when that is known.
    func wait(_ remaining: @Sendable () -> Int?) async throws(Failure) -> Int {
        let start = clock.uptime()
        while clock.uptime() - start < Self.longest {
            if let remaining = remaining() { return remaining }
            try? await Task.sleep(for: .milliseconds(10))
        }
        guard let holder = device.flatMap({ MountNamespaces.holder(ofDevice: $0) }) else {
            throw Failure(.busy, "the mount is gone but the daemon is still closing")
        }
        throw Failure(
            .busy,
            "the mount is gone here, but \(holder.display) has it in a mount namespace of its own: "
                + "the daemon ends when that process does")
    }
}
