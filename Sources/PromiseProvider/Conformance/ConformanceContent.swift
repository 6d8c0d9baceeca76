import Glibc
package import PromiseCore
package import PromiseSystem
import Synchronization

/// A content to send, in a nameless temporary file.
package final class ConformanceSource: ContentSource {
    package let size: UInt64
    private let file: Descriptor
    private let validation: Mutex<Bool>

    /// `pieces` are the bytes that are not holes. `scratch` is the folder for the temporary file.
    package init(
        size: UInt64, pieces: [(offset: UInt64, bytes: [UInt8])], scratch: [UInt8] = Array("/tmp".utf8)
    ) throws(SystemError) {
        self.size = size
        file = try makeNamelessFile(in: scratch)
        validation = Mutex(true)
        for piece in pieces {
            try writeFully(file.number, piece.bytes, at: piece.offset, label: "conformance.write")
        }
        try truncate(file.number, to: size, label: "conformance.size")
    }

    package convenience init(_ bytes: [UInt8]) throws(SystemError) {
        try self.init(size: UInt64(bytes.count), pieces: [(0, bytes)])
    }

    package var descriptor: Int32 { file.number }

    /// From now on `validate` throws, as when a program writes to the file while it is sent.
    package func invalidate() { validation.withLock { $0 = false } }

    /// As when a program cuts the file while it is sent; `validate` does not notice.
    package func shorten(to size: UInt64) throws(SystemError) {
        try truncate(file.number, to: size, label: "conformance.shorten")
    }

    package func validate() throws(ProviderError) {
        guard validation.withLock({ $0 }) else {
            throw ProviderError(.sourceChanged, "the file was written to while it was sent")
        }
    }
}

/// Takes a content into memory and checks that each byte comes once.
package final class ConformanceSink: ContentSink {
    private struct State {
        var bytes = SinkMemory()
        var taken = ByteRangeSet()
        var repeatedByteCount: UInt64 = 0
    }

    private let state = Mutex(State())

    package init() {}

    /// What came, with zeros where nothing did; `bytes[i]` is the file's byte `i`.
    package var bytes: [UInt8] { state.withLock { Array($0.bytes.contents) } }
    package var taken: [ByteRange] { state.withLock { $0.taken.ranges } }
    package var takenByteCount: UInt64 { state.withLock { $0.taken.byteCount } }
    /// Bytes that came more than once, which no provider may do.
    package var repeatedByteCount: UInt64 { state.withLock { $0.repeatedByteCount } }

    package func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(ProviderError) {
        state.withLock { state in
            let range = ByteRange(offset: offset, count: UInt64(bytes.count))
            let missing = state.taken.missing(in: range).reduce(0) { $0 + $1.count }
            state.repeatedByteCount += range.count - missing
            state.taken.insert(range)
            state.bytes.copy(bytes, to: Int(offset))
        }
    }

    package func copy(from descriptor: Int32, at sourceOffset: UInt64, to offset: UInt64, count: UInt64) throws(ProviderError)
        -> UInt64
    {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Int(count), alignment: 16)
        defer { buffer.deallocate() }
        let read: Int
        do throws(SystemError) {
            read = try readFully(descriptor, into: buffer, at: sourceOffset, label: "conformance.read")
        } catch {
            throw ProviderError(.retry, error.description)
        }
        try write(UnsafeRawBufferPointer(rebasing: buffer[..<read]), at: offset)
        return UInt64(read)
    }
}

/// Bytes that grow. Not an array: those of 64 MiB, byte by byte, take an unoptimised build minutes.
private final class SinkMemory: @unchecked Sendable {
    // Unchecked because it is used under its owner's lock only, which the compiler cannot see.
    private(set) var contents = UnsafeRawBufferPointer(start: nil, count: 0)
    private var room = 0

    deinit { free(UnsafeMutableRawPointer(mutating: contents.baseAddress)) }

    func copy(_ bytes: UnsafeRawBufferPointer, to offset: Int) {
        guard let source = bytes.baseAddress, bytes.count > 0 else { return }
        var memory = UnsafeMutableRawPointer(mutating: contents.baseAddress)
        let count = max(contents.count, offset + bytes.count)
        if count > room {
            room = max(count, 2 * room)
            memory = realloc(memory, room)
        }
        guard let memory else { preconditionFailure("there is no memory for \(count) bytes of content") }
        if offset > contents.count { memset(memory + contents.count, 0, offset - contents.count) }
        memcpy(memory + offset, source, bytes.count)
        contents = UnsafeRawBufferPointer(start: memory, count: count)
    }
}

private let namelessCount = Atomic<UInt64>(0)

/// A file that nothing but its descriptor names.
private func makeNamelessFile(in folder: [UInt8]) throws(SystemError) -> Descriptor {
    let count = namelessCount.add(1, ordering: .relaxed).newValue
    let path = folder + Array("/.promisefs-\(getpid())-\(count)".utf8)
    let file = try Descriptor.open(path, flags: O_RDWR | O_CREAT | O_EXCL, label: "conformance.open")
    try unlink(path, label: "conformance.unlink")
    return file
}
