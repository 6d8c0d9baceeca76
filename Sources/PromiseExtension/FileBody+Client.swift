import AsyncHTTPClient
import NIOCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem

extension FileBody {
    /// What is small is read at once. Throws `.sourceChanged`.
    func forClient() async throws(ProviderError) -> HTTPClientRequest.Body {
        if source.size == 0 {
            try source.validate()
            return .bytes(ByteBuffer())
        }
        guard source.size <= FileBody.pieceByteCount else { return .stream(self, length: .known(Int64(source.size))) }
        return .bytes(try await pool.run { [self] () throws(ProviderError) in try read(at: 0, source.size) })
    }
}
