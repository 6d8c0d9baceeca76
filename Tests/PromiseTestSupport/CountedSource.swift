import Glibc
package import PromiseProvider
package import PromiseSystem
import Synchronization

/// A file of zeros that remembers what was sent of it.
package final class CountedSource: ContentSource {
    package let size: UInt64
    private let file: Descriptor
    private let noted = Mutex<[UInt64]>([])

    package init(_ path: [UInt8], size: UInt64) throws(SystemError) {
        self.size = size
        file = try Descriptor.open(path, flags: O_RDWR | O_CREAT, mode: 0o600, label: "test.source")
        try truncate(file.number, to: size, label: "test.source")
    }

    package var descriptor: Int32 { file.number }
    package var counts: [UInt64] { noted.withLock { $0 } }
    package func forget() { noted.withLock { $0 = [] } }
    package func validate() throws(ProviderError) {}
    package func noteSent(_ byteCount: UInt64) { noted.withLock { $0.append(byteCount) } }
}
