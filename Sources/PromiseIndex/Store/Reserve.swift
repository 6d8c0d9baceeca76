import PromiseCore
import PromiseSystem

import Glibc
import Synchronization

/// A little disk kept back beside the index, so that on a full disk what gives room back can still be committed.
final class Reserve: Sendable {
    /// For what gives room back while the index is open; half as much is kept for opening it on a full disk.
    static let byteCount: UInt64 = 4 << 20
    /// Less is of no use: SQLite's shared memory and the head of its log want as much.
    private static let roomForOpening = 64 << 10

    private let path: [UInt8]
    private let byteCount: UInt64
    private let held = Mutex<UInt64>(0)

    var isFull: Bool { held.withLock { $0 == byteCount } }

    init(path: [UInt8], byteCount: UInt64 = Reserve.byteCount) {
        self.path = path
        self.byteCount = byteCount
        refill()
    }

    /// Gives the room free; false when there was none.
    func release() -> Bool {
        held.withLock { held in
            guard held > 0 else { return false }
            held = 0
            _ = try? unlink(path, label: "index.reserve.release")
            return true
        }
    }

    /// Takes room back, as much of it as the disk has: what was used of it may not be there any more. Failing is no
    /// trouble: then there is no reserve.
    func refill() {
        held.withLock { held in
            guard held < byteCount,
                let file = try? Descriptor.open(path, flags: O_RDWR | O_CREAT, label: "index.reserve.open")
            else { return }
            let little = UInt64(2 * Reserve.roomForOpening)
            for size in [byteCount, byteCount - little, byteCount / 2, byteCount / 4, 2 * little, little] where size > held {
                let range = ByteRange(0, size)
                guard (try? allocate(file.number, mode: 0, range, label: "index.reserve.allocate")) != nil else { continue }
                // What a larger piece got before it failed is given back.
                _ = try? truncate(file.number, to: size, label: "index.reserve.trim")
                held = size
                return
            }
            if held == 0 { _ = try? unlink(path, label: "index.reserve.discard") }
        }
    }

    /// Runs `body`, and again for each reserve that can be given free while the disk has no room.
    static func spend<Value>(
        _ reserves: [Reserve], beside path: [UInt8], _ body: () throws(Failure) -> Value
    ) throws(Failure) -> Value {
        for reserve in reserves {
            do throws(Failure) {
                return try body()
            } catch {
                guard hasNoRoom(error, beside: path) else { throw error }
                _ = reserve.release()
            }
        }
        do throws(Failure) {
            return try body()
        } catch {
            throw hasNoRoom(error, beside: path) ? Failure(.storeFull, error.message) : error
        }
    }

    /// To be called before the index is opened: where blocks are smaller than pages SQLite makes its shared memory a file with
    /// holes, and to write to one without room ends the process (SIGBUS).
    static func makeRoom(_ reserves: [Reserve], beside path: [UInt8]) throws(Failure) {
        for reserve in reserves {
            if !isFull(beside: path) { return }
            _ = reserve.release()
        }
        if isFull(beside: path) { throw Failure(.storeFull, "there is no room for \(escapedForDisplay(path))") }
    }

    /// SQLite tells of a full disk as of any other trouble where it is the file of its shared memory that finds no room, or
    /// a new file that finds no inode: so the disk is asked.
    private static func hasNoRoom(_ failure: Failure, beside path: [UInt8]) -> Bool {
        if failure.code == .storeFull { return true }
        return (failure.code == .inputOutput || failure.code == .readOnly) && isFull(beside: path)
    }

    private static func isFull(beside path: [UInt8]) -> Bool {
        let place = path + Array("-room".utf8)
        defer { _ = try? unlink(place, label: "index.room.remove") }
        do throws(SystemError) {
            let file = try Descriptor.open(place, flags: O_RDWR | O_CREAT | O_TRUNC, label: "index.room.open")
            let zeros = [UInt8](repeating: 0, count: roomForOpening)
            try writeFully(file.number, zeros, at: 0, label: "index.room.write")
            return false
        } catch {
            return error.errno == ENOSPC || error.errno == EDQUOT
        }
    }
}
