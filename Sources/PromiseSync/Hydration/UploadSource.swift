package import PromiseContent
package import PromiseCore
package import PromiseProvider
import PromiseSystem

/// The content of a node as it is at one moment. Reading it takes no copy: a write meanwhile shows in `validate`, and the
/// upload is thrown away and repeated.
package struct UploadSource: ContentSource {
    private let file: SharedDescriptor
    private let status: FileStatus

    package init(_ content: ContentStore, node: NodeID, generation: Generation) throws(Failure) {
        file = SharedDescriptor(try content.open(node, generation, writable: false))
        do throws(SystemError) {
            status = try FileStatus.of(descriptor: file.number, label: "upload.status")
        } catch {
            throw Failure(error)
        }
    }

    package var size: UInt64 { status.size }
    /// Bytes that are really there: a sparse file's holes are not sent.
    var dataByteCount: UInt64 { min(status.size, status.blocks * 512) }
    package var descriptor: Int32 { file.number }

    package func validate() throws(ProviderError) {
        let now: FileStatus
        do throws(SystemError) {
            now = try FileStatus.of(descriptor: file.number, label: "upload.validate")
        } catch {
            throw ProviderError(.permanent, error.description)
        }
        guard now.size == status.size, now.modificationTime == status.modificationTime, now.changeTime == status.changeTime else {
            throw ProviderError(.sourceChanged, "the file was written to while it was being sent")
        }
    }
}

/// Compares what a provider sends with a local file.
struct ComparingSink: ContentSink {
    let source: UploadSource

    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(ProviderError) {
        let local = UnsafeMutableRawBufferPointer.allocate(byteCount: max(bytes.count, 1), alignment: 16)
        defer { local.deallocate() }
        let room = UnsafeMutableRawBufferPointer(rebasing: local[..<bytes.count])
        let count: Int
        do throws(SystemError) {
            count = try readFully(source.descriptor, into: room, at: offset, label: "upload.compare.bytes")
        } catch {
            throw ProviderError(.permanent, error.description)
        }
        guard count == bytes.count, room.elementsEqual(bytes) else { throw ContentDiffers.error }
    }

    func copy(
        from descriptor: Int32, at sourceOffset: UInt64, to offset: UInt64, count: UInt64
    ) throws(ProviderError) -> UInt64 {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 4096)
        defer { buffer.deallocate() }
        var done: UInt64 = 0
        while done < count {
            let room = UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(min(count - done, UInt64(buffer.count)))])
            let read: Int
            do throws(SystemError) {
                read = try readFully(descriptor, into: room, at: sourceOffset + done, label: "upload.compare.copy")
            } catch {
                throw ProviderError(.permanent, error.description)
            }
            if read == 0 { break }
            try write(UnsafeRawBufferPointer(rebasing: room[..<read]), at: offset + done)
            done += UInt64(read)
        }
        return done
    }
}

enum ContentDiffers {
    static let error = ProviderError(.stale, "the provider's content differs from the local one")
}
