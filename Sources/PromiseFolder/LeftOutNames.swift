package import PromiseSystem
import Synchronization

/// What listings and searches have left out, and why. A dead mount may stay for weeks, and its
/// folder is looked through every half minute: that is said once, until the reason is another.
package final class LeftOutNames: Sendable {
    private struct Place: Hashable {
        /// As `FolderLocator.text(of:at:)` has it.
        var folder: String
        var name: [UInt8]
    }

    private static let countMax = 1_000
    private let known = Mutex<[Place: Int32]>([:])

    package init() {}

    /// False where that was said before.
    package func isNews(_ error: SystemError, of name: [UInt8], in folder: String) -> Bool {
        known.withLock { known in
            let place = Place(folder: folder, name: name)
            if known.count >= LeftOutNames.countMax, known[place] == nil { known = [:] }
            return known.updateValue(error.errno, forKey: place) != error.errno
        }
    }

    /// It can be looked at, or is gone.
    package func forget(_ name: [UInt8], in folder: String) {
        known.withLock { known in
            // Nearly always there is nothing.
            if !known.isEmpty { known[Place(folder: folder, name: name)] = nil }
        }
    }
}
