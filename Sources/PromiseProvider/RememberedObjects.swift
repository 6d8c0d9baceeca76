package import PromiseCore
import Synchronization

/// Private objects as they were read last, so that one that has its version still is not sent again
/// at every poll. Bounded: when they are too many bytes together all are forgotten. Thread-safe.
package final class RememberedObjects: Sendable {
    private static let byteCountMax = 4 << 20

    private let objects = Mutex<[PrivateName: PrivateObject]>([:])

    package init() {}

    /// Nil unless it was this version.
    package func object(_ name: PrivateName, _ version: ContentVersion) -> PrivateObject? {
        objects.withLock { $0[name].flatMap { $0.version == version ? $0 : nil } }
    }

    /// Pictures are read once, and would drive out the others.
    package func note(_ object: PrivateObject, as name: PrivateName) {
        if name.kind == .pictures { return }
        objects.withLock { objects in
            objects[name] = object
            let byteCount = objects.values.reduce(0) { $0 + $1.bytes.count }
            if byteCount > RememberedObjects.byteCountMax { objects = [:] }
        }
    }
}
