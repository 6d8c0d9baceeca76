import NIOCore
package import PromiseCore
package import PromiseProvider
package import PromiseSystem

/// What must be at a place for a write to happen.
package enum Expectation: Equatable, Sendable {
    case nothing
    case version(ContentVersion)
    case anything
}

/// What a file or an object is to hold.
package enum Payload: Sendable {
    case source(any ContentSource)
    /// A link's target, or nothing.
    case bytes([UInt8])

    package var size: UInt64 {
        switch self {
        case .source(let source): source.size
        case .bytes(let bytes): UInt64(bytes.count)
        }
    }

    /// For a request. What is larger than `byteCountMax` is sent as it is read. Throws
    /// `.sourceChanged` when it is not any more what it was.
    package func body(
        inMemoryUpTo byteCountMax: UInt64, pool: BlockingPool
    ) async throws(ProviderError) -> RequestBody {
        switch self {
        case .bytes(let bytes): return .bytes(await pool.buffer(of: bytes))
        case .source(let source):
            let file = FileBody(source: source, pool: pool)
            guard source.size <= byteCountMax else { return .file(file) }
            if source.size == 0 {
                try source.validate()
                return .bytes(ByteBuffer())
            }
            return .bytes(
                try await pool.run { () throws(ProviderError) in try file.read(at: 0, source.size) },
                of: source)
        }
    }
}
