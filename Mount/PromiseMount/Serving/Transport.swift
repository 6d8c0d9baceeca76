import CFuseTransport
import Glibc
import Synchronization

/// How requests come from the kernel, for people.
package struct TransportStatus: Sendable, Equatable {
    /// `device` or `io_uring`.
    package var name: String
    /// Why it is the device, and what would change that; nil with io_uring.
    package var message: String?

    package static let rings = TransportStatus(name: "io_uring", message: nil)
    static func device(_ message: String) -> TransportStatus { TransportStatus(name: "device", message: message) }
}

extension TransportStatus {
    /// What INIT and the registration of the rings have led to. `problem` is the errno of making or registering them.
    package init(isWanted: Bool, offered: UInt64, accepted: UInt64, problem: CInt) {
        guard isWanted else {
            self = TransportStatus(name: "device", message: nil)
            return
        }
        guard offered & Negotiation.ringsFlag != 0 else {
            // The kernel offers it to mounts that are made while the parameter is set.
            let isKnown = access("/sys/module/fuse/parameters/enable_uring", F_OK) == 0
            self = .device(
                isKnown
                    ? "FUSE over io_uring is switched off: 'echo 1 > /sys/module/fuse/parameters/enable_uring' and mount again"
                    : "this kernel has no FUSE over io_uring (it needs Linux 6.14 with CONFIG_FUSE_IO_URING)")
            return
        }
        guard problem == 0, accepted & Negotiation.ringsFlag != 0 else {
            let hint = problem == EPERM ? " (see the sysctl kernel.io_uring_disabled, or a container's seccomp filter)" : ""
            self = .device("the rings could not be made: \(String(cString: strerror(problem)))\(hint)")
            return
        }
        self = .rings
    }
}

/// The names of the kernel's requests, by opcode (enum fuse_opcode), as `status` counts them.
package enum RequestName {
    package static let byOpcode: [UInt32: String] = [
        1: "lookup", 2: "forget", 3: "getattr", 4: "setattr", 5: "readlink", 6: "symlink", 8: "mknod", 9: "mkdir", 10: "unlink",
        11: "rmdir", 12: "rename", 13: "link", 14: "open", 15: "read", 16: "write", 17: "statfs", 18: "release", 20: "fsync",
        21: "setxattr", 22: "getxattr", 23: "listxattr", 24: "removexattr", 25: "flush", 26: "init", 27: "opendir",
        28: "readdir", 29: "releasedir", 30: "fsyncdir", 31: "getlk", 32: "setlk", 33: "setlkw", 34: "access", 35: "create",
        36: "interrupt", 37: "bmap", 38: "destroy", 39: "ioctl", 40: "poll", 41: "notify_reply", 42: "batch_forget",
        43: "fallocate", 44: "readdirplus", 45: "rename2", 46: "lseek", 47: "copy_file_range", 48: "setupmapping",
        49: "removemapping", 50: "syncfs", 51: "tmpfile", 52: "statx", 53: "copy_file_range_64", 63: "other",
    ]
}

/// What can be asked of a session's transport while it lives, and afterwards what it was at the end. Thread-safe.
///
/// The transport is only read, under the lock, and freed after `close`.
final class TransportGauge: Sendable {
    // Unchecked because of the pointer: it is used under the gauge's lock only.
    private struct State: @unchecked Sendable {
        var transport: OpaquePointer?
        var lastStatus: TransportStatus
        var lastCounts: [String: UInt64] = [:]
    }

    private let isWanted: Bool
    private let state: Mutex<State>

    init(_ transport: OpaquePointer, isWanted: Bool) {
        self.isWanted = isWanted
        let status = TransportGauge.status(of: transport, isWanted)
        let initial = State(transport: transport, lastStatus: status)
        state = Mutex(initial)
    }

    var status: TransportStatus {
        state.withLock { state in
            state.transport.map { TransportGauge.status(of: $0, isWanted) } ?? state.lastStatus
        }
    }

    /// Requests received since the mount, by name; those that never came are left out.
    var requestCounts: [String: UInt64] {
        state.withLock { state in state.transport.map(TransportGauge.counts) ?? state.lastCounts }
    }

    func close() {
        state.withLock { state in
            guard let transport = state.transport else { return }
            state.lastStatus = TransportGauge.status(of: transport, isWanted)
            state.lastCounts = TransportGauge.counts(of: transport)
            state.transport = nil
        }
    }

    private static func status(of transport: OpaquePointer, _ isWanted: Bool) -> TransportStatus {
        let negotiation = ct_negotiated(transport)
        return TransportStatus(
            isWanted: isWanted, offered: negotiation.offered, accepted: negotiation.accepted, problem: ct_ring_problem(transport))
    }

    private static func counts(of transport: OpaquePointer) -> [String: UInt64] {
        var counts: [String: UInt64] = [:]
        for opcode in 0..<UInt32(CT_OPCODE_COUNT) {
            let count = ct_request_count(transport, opcode)
            if count > 0 { counts[RequestName.byOpcode[opcode] ?? "other", default: 0] += count }
        }
        return counts
    }
}
