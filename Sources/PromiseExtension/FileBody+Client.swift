import AsyncHTTPClient
import NIOCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem

extension FileBody {
    /// What is small is read at once. The source hears what is sent of it. Throws `.sourceChanged`.
    func forClient() async throws(ProviderError) -> HTTPClientRequest.Body {
        if source.size == 0 {
            try source.validate()
            return .bytes(ByteBuffer())
        }
        guard source.size <= FileBody.pieceByteCount else {
            return RequestBody.file(self).forClient(through: nil)
        }
        let all = try await pool.run { [self] () throws(ProviderError) in
            try read(at: 0, source.size)
        }
        source.noteSent(source.size)
        return .bytes(all)
    }
}
