import PromiseCore
import PromiseProvider
import PromiseSystem

/// A file of this process that fetched bytes go into.
final class FileSink: ContentSink {
    private let file: SharedDescriptor

    init(_ file: SharedDescriptor) { self.file = file }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(ProviderError) {
        try stored { () throws(SystemError) in try writeFully(file.number, bytes, at: offset, label: "version.write") }
    }

    func copy(
        from descriptor: Int32, at sourceOffset: UInt64, to offset: UInt64, count: UInt64
    ) throws(ProviderError) -> UInt64 {
        try stored { () throws(SystemError) in
            try copyBytes(
                from: descriptor, at: sourceOffset, to: file.number, at: offset, count: count, label: "version.copy")
        }
    }

    private func stored<Value>(_ body: () throws(SystemError) -> Value) throws(ProviderError) -> Value {
        do throws(SystemError) {
            return try body()
        } catch {
            let failure = Failure(error)
            throw ProviderError(failure.code == .storeFull ? .localDiskFull : .permanent, failure.message)
        }
    }
}
