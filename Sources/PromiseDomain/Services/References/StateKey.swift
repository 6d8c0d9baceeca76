import Glibc
import PromiseAccess
import PromiseCore
import PromiseSystem
import Synchronization

/// The key of a state folder, by which bookmarks and grants are sealed. It is made when the first
/// of them is.
///
/// **Threads.** `read` blocks; `known` is a leaf.
final class StateKey: Sendable {
    static let fileName = "bookmark.key"

    private let path: [UInt8]
    private let known = Mutex<[UInt8]?>(nil)
    /// Of two that find none the second waits for the key of the first.
    private let making = Monitor(())

    init(path: [UInt8]) { self.path = path }

    /// Nil before it was read.
    var bytes: [UInt8]? { known.withLock { $0 } }

    func read(makingIt makes: Bool = true) throws(Failure) -> [UInt8] {
        if let bytes { return bytes }
        return try making.withLock { _ throws(Failure) in
            if let bytes { return bytes }
            let fresh = try load(makingIt: makes)
            known.withLock { $0 = fresh }
            return fresh
        }
    }

    /// What is wrong with the file, whatever was read before; nil also where there is none yet. Blocks.
    func trouble() -> String? {
        guard (try? FileStatus.of(path, label: "bookmarks.look")) != nil else { return nil }
        guard let bytes = readSmallFile(path), bytes.count == BookmarkSeal.keyByteCount else { return noKey }
        guard let known = self.bytes, known != bytes else { return nil }
        return "'\(escapedForDisplay(path))' is not the key that the daemon has read: restore it before the daemon ends"
    }

    private var noKey: String {
        "'\(escapedForDisplay(path))' is no key: restore it, or remove it to begin anew "
            + "without the bookmarks and grants there are"
    }

    private func load(makingIt makes: Bool) throws(Failure) -> [UInt8] {
        do throws(SystemError) {
            _ = try FileStatus.of(path, label: "bookmarks.status")
        } catch {
            guard error.errno == ENOENT, makes else { throw Failure(error) }
            try replaceStateFile(path, by: BookmarkSeal.freshKey())
        }
        guard let bytes = readSmallFile(path), bytes.count == BookmarkSeal.keyByteCount else {
            throw Failure(.corrupted, noKey)
        }
        return bytes
    }
}
