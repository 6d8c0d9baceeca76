import PromiseCore
import PromiseProvider
import PromiseSystem
import Synchronization

/// A file that nobody else has: filled by a fetch, then sent.
struct ScratchFile: ContentSource {
    fileprivate let file: SharedDescriptor
    let size: UInt64

    init(_ file: SharedDescriptor, size: UInt64) {
        (self.file, self.size) = (file, size)
    }

    var descriptor: Int32 { file.number }
    func validate() throws(ProviderError) {}
}

struct ScratchSink: ContentSink {
    let scratch: ScratchFile

    var size: UInt64? { scratch.size }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(ProviderError) {
        try onDisk { () throws(SystemError) in
            try writeFully(scratch.descriptor, bytes, at: offset, label: "migration.scratch.write")
        }
    }

    func copy(
        from descriptor: Int32, at sourceOffset: UInt64, to offset: UInt64, count: UInt64
    ) throws(ProviderError) -> UInt64 {
        try onDisk { () throws(SystemError) in
            try copyBytes(
                from: descriptor, at: sourceOffset, to: scratch.descriptor, at: offset,
                count: count,
                label: "migration.scratch.copy")
        }
    }
}

/// Compares what a storage gives back with what it was given.
final class ReadBack: ContentSink {
    private let source: any ContentSource
    private let counted = Mutex<UInt64>(0)
    /// In bytes: each comes once.
    var count: UInt64 { counted.withLock { $0 } }
    var size: UInt64? { source.size }

    private static let pieceByteCount = 256 << 10

    init(_ source: any ContentSource) { self.source = source }

    static let differs = ProviderError(
        .corrupted, "the new storage gives back other bytes than it was given")

    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(ProviderError) {
        let own = UnsafeMutableRawBufferPointer.allocate(
            byteCount: max(bytes.count, 1), alignment: 16)
        defer { own.deallocate() }
        let room = UnsafeMutableRawBufferPointer(rebasing: own[..<bytes.count])
        let found = try onDisk { () throws(SystemError) in
            try readFully(source.descriptor, into: room, at: offset, label: "migration.compare.own")
        }
        guard found == bytes.count, room.elementsEqual(bytes) else { throw ReadBack.differs }
        counted.withLock { $0 += UInt64(bytes.count) }
    }

    func copy(
        from descriptor: Int32, at sourceOffset: UInt64, to offset: UInt64, count: UInt64
    ) throws(ProviderError) -> UInt64 {
        let buffer = UnsafeMutableRawBufferPointer.allocate(
            byteCount: ReadBack.pieceByteCount, alignment: 16)
        defer { buffer.deallocate() }
        var done: UInt64 = 0
        while done < count {
            let room = UnsafeMutableRawBufferPointer(
                rebasing: buffer[..<Int(min(count - done, UInt64(buffer.count)))])
            let position = sourceOffset + done
            let found = try onDisk { () throws(SystemError) in
                try readFully(descriptor, into: room, at: position, label: "migration.compare.read")
            }
            if found == 0 { break }
            try write(UnsafeRawBufferPointer(rebasing: room[..<found]), at: offset + done)
            done += UInt64(found)
        }
        return done
    }
}

func onDisk<Value>(_ body: () throws(SystemError) -> Value) throws(ProviderError) -> Value {
    do throws(SystemError) {
        return try body()
    } catch {
        let failure = Failure(error)
        throw ProviderError(
            failure.code == .storeFull ? .localDiskFull : .permanent, failure.message)
    }
}
