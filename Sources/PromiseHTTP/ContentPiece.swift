package import NIOCore
package import PromiseCore
package import PromiseProvider

/// A part of a content that has come.
package struct ContentPiece: Sendable {
    private let buffer: ByteBuffer
    /// Bytes at its start that nobody wants.
    private let skipped: Int
    /// Where the rest belongs.
    private let range: ByteRange

    package init(buffer: ByteBuffer, skipped: Int, range: ByteRange) {
        (self.buffer, self.skipped, self.range) = (buffer, skipped, range)
    }

    package var byteCount: UInt64 { range.count }

    /// Blocking.
    package func write(into sink: any ContentSink) throws(ProviderError) {
        let outcome: Result<Void, ProviderError> = buffer.withUnsafeReadableBytes { bytes in
            let wanted = UnsafeRawBufferPointer(rebasing: bytes[skipped..<(skipped + Int(range.count))])
            do throws(ProviderError) { return .success(try sink.write(wanted, at: range.lower)) } catch { return .failure(error) }
        }
        try outcome.get()
    }
}
