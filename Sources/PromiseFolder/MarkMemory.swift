import Glibc
import PromiseSystem
import Synchronization

/// Reads the identity marks of files, and remembers them: that of a file that this user may not
/// read (mode 000, another user's 0600) cannot be looked at, and one such file hid the whole
/// folder.
final class MarkMemory: Sendable {
    private static let countMax = 20_000
    /// By what the file itself is called.
    private let known = Mutex<[String: [UInt8]]>([:])

    /// Nil when there is none, or none that is known of.
    func read(_ name: [UInt8], in folder: CInt, _ own: String) throws(SystemError) -> [UInt8]? {
        do throws(SystemError) {
            let mark = try attribute(
                IdentityMark.attribute, of: name, in: folder, label: "folder.entry.mark")
            guard let mark else { return nil }
            known.withLock { known in
                if known.count >= MarkMemory.countMax { known = [:] }
                known[own] = mark
            }
            return mark
        } catch {
            guard error.errno == EACCES || error.errno == EPERM else { throw error }
            return known.withLock { $0[own] }
        }
    }
}
