import PromiseCore
package import PromiseSystem
import Synchronization

/// A file of this process that fetched bytes go into. They are counted, as a storage may say that it
/// has given everything and has not.
package final class FileSink: ContentSink {
    private let file: SharedDescriptor
    private let counted = Mutex<UInt64>(0)
    package let size: UInt64?

    /// `size`: what is to come, in bytes, where that is known.
    package init(_ file: SharedDescriptor, size: UInt64? = nil) {
        (self.file, self.size) = (file, size)
    }

    /// In bytes: each comes once.
    package var count: UInt64 { counted.withLock { $0 } }

    package func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(ProviderError) {
        try onDisk { () throws(SystemError) in
            try writeFully(file.number, bytes, at: offset, label: "sink.write")
        }
        counted.withLock { $0 += UInt64(bytes.count) }
    }

    package func copy(
        from descriptor: Int32, at sourceOffset: UInt64, to offset: UInt64, count: UInt64
    ) throws(ProviderError) -> UInt64 {
        let done = try onDisk { () throws(SystemError) in
            try copyBytes(
                from: descriptor, at: sourceOffset, to: file.number, at: offset, count: count,
                label: "sink.copy")
        }
        counted.withLock { $0 += done }
        return done
    }
}

/// Compares what a storage gives with a local file. Throws `differs` at the first byte that is
/// another one.
package final class ComparingSink: ContentSink {
    package static let differs = ProviderError(
        .stale, "the provider's content differs from the local one")
    private static let pieceByteCount = 256 << 10

    private let source: any ContentSource
    private let counted = Mutex<UInt64>(0)

    package init(_ source: any ContentSource) { self.source = source }

    package var size: UInt64? { source.size }
    /// Every byte has come, and was the same.
    package var isWhole: Bool { counted.withLock { $0 } == source.size }

    package func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(ProviderError) {
        let local = UnsafeMutableRawBufferPointer.allocate(
            byteCount: max(bytes.count, 1), alignment: 16)
        defer { local.deallocate() }
        let room = UnsafeMutableRawBufferPointer(rebasing: local[..<bytes.count])
        let count = try onDisk { () throws(SystemError) in
            try readFully(source.descriptor, into: room, at: offset, label: "sink.compare.local")
        }
        guard count == bytes.count, room.elementsEqual(bytes) else { throw ComparingSink.differs }
        counted.withLock { $0 += UInt64(bytes.count) }
    }

    package func copy(
        from descriptor: Int32, at sourceOffset: UInt64, to offset: UInt64, count: UInt64
    ) throws(ProviderError) -> UInt64 {
        let buffer = UnsafeMutableRawBufferPointer.allocate(
            byteCount: ComparingSink.pieceByteCount, alignment: 4096)
        defer { buffer.deallocate() }
        var done: UInt64 = 0
        while done < count {
            let room = UnsafeMutableRawBufferPointer(
                rebasing: buffer[..<Int(min(count - done, UInt64(buffer.count)))])
            let position = sourceOffset + done
            let read = try onDisk { () throws(SystemError) in
                try readFully(descriptor, into: room, at: position, label: "sink.compare.given")
            }
            if read == 0 { break }
            try write(UnsafeRawBufferPointer(rebasing: room[..<read]), at: offset + done)
            done += UInt64(read)
        }
        return done
    }
}

/// What this machine's disk refuses, as a provider's call says it.
package func onDisk<Value>(
    _ body: () throws(SystemError) -> Value
) throws(ProviderError) -> Value {
    do throws(SystemError) {
        return try body()
    } catch {
        let failure = Failure(error)
        throw ProviderError(
            failure.code == .storeFull ? .localDiskFull : .permanent, failure.message)
    }
}
