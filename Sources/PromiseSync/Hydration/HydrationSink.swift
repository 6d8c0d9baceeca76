import PromiseContent
import PromiseCore
import PromiseProvider
import PromiseSystem

/// Takes the bytes of one fetch.
struct HydrationSink: ContentSink {
    let job: HydrationJob
    let file: SharedDescriptor
    let call: ProviderDelay.Call
    /// Of the item at the provider, where it is known: more than that is not what was asked for.
    let size: UInt64?
    var counted: @Sendable (UInt64) -> Void
    let finished: @Sendable () -> Void

    func finish() { finished() }

    /// For what nobody has fetched.
    var uncounted: HydrationSink {
        var sink = self
        sink.counted = { _ in }
        return sink
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(ProviderError) {
        call.bytesCame()
        let range = ByteRange(offset: offset, count: UInt64(bytes.count))
        if let size, range.upper > size {
            throw ProviderError(.corrupted, "the provider sent more bytes than the item has")
        }
        let stored = try job.arrived(range) { gap throws(ProviderError) in
            let piece = UnsafeRawBufferPointer(rebasing: bytes[Int(gap.lower - offset)..<Int(gap.upper - offset)])
            do throws(SystemError) {
                try writeKeepingHoles(file.number, piece, at: gap.lower, label: "content.hydrate.write")
            } catch {
                throw ProviderError(hydration: error)
            }
            return gap.count
        }
        counted(stored)
    }

    func copy(
        from descriptor: Int32, at sourceOffset: UInt64, to offset: UInt64, count: UInt64
    ) throws(ProviderError) -> UInt64 {
        call.bytesCame()
        let stored = try job.arrived(ByteRange(offset: offset, count: count)) { gap throws(ProviderError) in
            do throws(SystemError) {
                return try copyKeepingHoles(
                    from: descriptor, at: sourceOffset + (gap.lower - offset), to: file.number, at: gap.lower,
                    count: gap.count, label: "content.hydrate.copy")
            } catch {
                throw ProviderError(hydration: error)
            }
        }
        counted(stored)
        // Bytes that were here already count as taken, and those behind the end of a file that was cut here: a source that
        // ended early shows in the missing rest.
        let wanted = ByteRange(offset: offset, count: count).clamped(to: job.progress.size)
        return job.ranges.contains(wanted) ? count : stored
    }
}

extension ProviderError {
    /// The local file could not take the bytes.
    fileprivate init(hydration error: SystemError) {
        let failure = Failure(error)
        self.init(failure.code == .storeFull ? .localDiskFull : .permanent, failure.message)
    }
}
