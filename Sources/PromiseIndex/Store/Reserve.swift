import PromiseCore
import PromiseSystem

import Glibc
import Synchronization

/// A little disk kept back beside the index, so that on a full disk what gives room back can still be committed.
final class Reserve: Sendable {
    /// For what gives room back while the index is open, and for opening it on a full disk.
    static let byteCount: UInt64 = 4 << 20
    static let byteCountForOpening: UInt64 = 2 << 20

    private let path: [UInt8]
    private let byteCount: UInt64
    private let isHeld = Mutex(false)

    var isFull: Bool { isHeld.withLock { $0 } }

    init(path: [UInt8], byteCount: UInt64 = Reserve.byteCount) {
        self.path = path
        self.byteCount = byteCount
        refill()
    }

    /// Gives the room free; false when there was none.
    func release() -> Bool {
        isHeld.withLock { isHeld in
            guard isHeld else { return false }
            isHeld = false
            _ = try? unlink(path, label: "index.reserve.release")
            return true
        }
    }

    /// Takes room back if the disk has any. Failing is no trouble: then there is no reserve.
    func refill() {
        isHeld.withLock { isHeld in
            guard !isHeld,
                let file = try? Descriptor.open(path, flags: O_RDWR | O_CREAT, label: "index.reserve.open")
            else { return }
            let range = ByteRange(0, byteCount)
            isHeld = (try? allocate(file.number, mode: 0, range, label: "index.reserve.allocate")) != nil
            if !isHeld { _ = try? unlink(path, label: "index.reserve.discard") }
        }
    }
}
