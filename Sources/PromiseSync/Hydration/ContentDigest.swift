import Crypto
import PromiseCore
import PromiseProvider
import PromiseSystem

/// SHA-256 of a content, in hexadecimal.
enum ContentDigest {
    private static let pieceCount = 256 << 10

    /// Reads the file, which takes as long as the disk.
    static func of(descriptor: Int32, size: UInt64) throws(SystemError) -> String {
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: pieceCount, alignment: 4096)
        defer { room.deallocate() }
        var hash = SHA256()
        var position: UInt64 = 0
        while position < size {
            let wanted = Int(min(size - position, UInt64(pieceCount)))
            let piece = UnsafeMutableRawBufferPointer(rebasing: room[..<wanted])
            let count = try readFully(descriptor, into: piece, at: position, label: "digest.read")
            if count == 0 { break }
            hash.update(bufferPointer: UnsafeRawBufferPointer(rebasing: piece[..<count]))
            position += UInt64(count)
        }
        return hash.finalize().map { hexadecimal($0) }.joined()
    }
}

extension UploadSource {
    /// Nil when it was written to meanwhile, or cannot be read.
    func digest() -> String? {
        guard let digest = try? ContentDigest.of(descriptor: descriptor, size: size),
            (try? validate()) != nil
        else { return nil }
        return digest
    }
}

/// Keeps what a provider sends in a file without a name.
struct ScratchSink: ContentSink {
    let file: SharedDescriptor
    let size: UInt64?

    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(ProviderError) {
        do throws(SystemError) {
            try writeFully(file.number, bytes, at: offset, label: "scratch.write")
        } catch {
            throw ScratchSink.problem(error)
        }
    }

    func copy(
        from descriptor: Int32, at sourceOffset: UInt64, to offset: UInt64, count: UInt64
    ) throws(ProviderError) -> UInt64 {
        do throws(SystemError) {
            return try copyBytes(
                from: descriptor, at: sourceOffset, to: file.number, at: offset, count: count,
                label: "scratch.copy")
        } catch {
            throw ScratchSink.problem(error)
        }
    }

    private static func problem(_ error: SystemError) -> ProviderError {
        let failure = Failure(error)
        return ProviderError(
            failure.code == .storeFull ? .localDiskFull : .permanent, failure.message)
    }
}
