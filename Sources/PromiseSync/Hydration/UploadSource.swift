package import PromiseContent
package import PromiseCore
package import PromiseProvider
import PromiseSystem
import Synchronization

/// The content of a node as it is at one moment. Reading it takes no copy: a write meanwhile shows in `validate`, and the
/// upload is thrown away and repeated.
package struct UploadSource: ContentSource {
    private let file: SharedDescriptor
    private let status: FileStatus
    private let sent = SentBytes()
    /// A program may write to it meanwhile, perhaps through a mapping.
    let isWrittenTo: Bool

    package init(
        _ content: ContentStore, node: NodeID, generation: Generation, isWrittenTo: Bool = false
    ) throws(Failure) {
        self.isWrittenTo = isWrittenTo
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

    /// To be called before it is read. A page of a mapping that was written to once takes more without the file's time moving,
    /// until the disk has it: from here on whatever is written moves it. Blocks as long as the disk takes; where that fails
    /// the write is found when the mapping goes.
    package func separateWrites() { try? finishWriting(file.number, label: "upload.separate") }

    package func validate() throws(ProviderError) {
        let now: FileStatus
        do throws(SystemError) {
            now = try FileStatus.of(descriptor: file.number, label: "upload.validate")
        } catch {
            throw ProviderError(.permanent, error.description)
        }
        // Its time of change tells of a removal, too, but not of one within the same tick of the kernel's clock.
        guard now.links == status.links, now.size == status.size,
            now.modificationTime == status.modificationTime, now.changeTime == status.changeTime
        else {
            throw ProviderError(.sourceChanged, "the file was written to while it was being sent")
        }
    }

    package func noteSent(_ byteCount: UInt64) { sent.add(byteCount) }

    /// Of all, from 0 to nearly 1: whether the provider has it is its answer's to say. What is sent again counts once more.
    var progress: Double {
        min(Double(sent.count.load(ordering: .relaxed)) / Double(max(size, 1)), 0.99)
    }

    func timeSent(by clock: any TimeSource) { sent.clock.withLock { $0 = clock } }
    /// Uptime when the provider took bytes last.
    var lastSent: Duration? { sent.last.withLock { $0 } }
}

private final class SentBytes: Sendable {
    let count = Atomic<UInt64>(0)
    let clock = Mutex<(any TimeSource)?>(nil)
    let last = Mutex<Duration?>(nil)

    func add(_ byteCount: UInt64) {
        count.wrappingAdd(byteCount, ordering: .relaxed)
        if let clock = clock.withLock({ $0 }) { last.withLock { $0 = clock.uptime() } }
    }
}
