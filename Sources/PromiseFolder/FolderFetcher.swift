import Glibc
import PromiseCore
import PromiseProvider
import PromiseSystem

/// Sends the content of a file, if it is and stays the version that was asked for. A large one goes
/// back to the end of the pool's queue every few MiB.
struct FolderFetcher: Sendable {
    /// How much of a content is sent before the thread serves somebody else.
    private static let hopByteCount: UInt64 = 4 << 20
    private static let pieceByteCount: UInt64 = 1 << 20

    let locator: FolderLocator
    let pool: BlockingPool
    private var root: FolderRoot { locator.root }

    func fetch(
        of reference: ItemReference, version: ContentVersion, range: ByteRange?,
        into sink: any ContentSink
    ) async throws(ProviderError) {
        let flag = CancellationFlag()
        let outcome: Result<Void, ProviderError> = await withTaskCancellationHandler {
            do throws(ProviderError) {
                // The first hop is the only one for a small content.
                var rest = try await pool.runUnlessCancelled { () throws(ProviderError) -> Fetch? in
                    let fetch = try self.beginFetch(of: reference, version: version, range: range)
                    return try self.send(fetch, into: sink, flag: flag)
                }
                while let fetch = rest {
                    // In turn with others.
                    await Task.yield()
                    rest = try await pool.runUnlessCancelled { () throws(ProviderError) in
                        try self.send(fetch, into: sink, flag: flag)
                    }
                }
                return .success(())
            } catch {
                return .failure(error)
            }
        } onCancel: {
            flag.set()
        }
        try outcome.get()
    }

    private func beginFetch(
        of reference: ItemReference, version: ContentVersion, range: ByteRange?
    ) throws(ProviderError) -> Fetch {
        let located = try locator.locate(reference)
        guard located.entry.status.kind == .file else {
            throw ProviderError(.stale, "'\(display(located.path))' is no file any more")
        }
        guard located.entry.version == version else { throw staleContent(located.path) }
        let file = try mapped("'\(display(located.path))' cannot be read") {
            () throws(SystemError) in
            // Without O_NONBLOCK, a fifo that took the file's place would hold the thread.
            try Descriptor.open(
                located.entry.name, in: located.folder.number,
                flags: O_RDONLY | O_NOFOLLOW | O_NONBLOCK,
                label: "folder.fetch.open")
        }
        let size = located.entry.status.size
        let facts = root.facts
        let fetch = Fetch(
            file: file, version: version, path: located.path,
            range: (range ?? ByteRange(0, size)).clamped(to: size),
            mayHang: facts.isShared || located.entry.status.device != facts.device)
        try checkVersion(fetch)
        return fetch
    }

    /// Sends one hop's worth; nil when everything was sent and still is the version that was asked
    /// for.
    private func send(_ fetch: Fetch, into sink: any ContentSink, flag: CancellationFlag)
        throws(ProviderError) -> Fetch?
    {
        let end = min(fetch.range.upper, fetch.range.lower + FolderFetcher.hopByteCount)
        var position = fetch.range.lower
        while position < end {
            try flag.check()
            let count = min(end - position, FolderFetcher.pieceByteCount)
            let sent =
                fetch.mayHang
                ? try read(fetch, ByteRange(offset: position, count: count), into: sink)
                : try sink.copy(from: fetch.file.number, at: position, to: position, count: count)
            guard sent == count else { throw staleContent(fetch.path) }
            position += count
        }
        if position < fetch.range.upper {
            var rest = fetch
            rest.range.lower = position
            return rest
        }
        try checkVersion(fetch)
        sink.finish()
        return nil
    }

    /// Through memory: what takes bytes from a file itself holds up whoever writes to the same
    /// place meanwhile, or unmounts, and a file system of other machines may never give them.
    private func read(
        _ fetch: Fetch, _ range: ByteRange, into sink: any ContentSink
    ) throws(ProviderError) -> UInt64 {
        let buffer = UnsafeMutableRawBufferPointer.allocate(
            byteCount: Int(range.count), alignment: 4096)
        defer { buffer.deallocate() }
        let (number, problem) = (fetch.file.number, "'\(display(fetch.path))' cannot be read")
        let count = try mapped(problem) { () throws(SystemError) in
            try readFully(number, into: buffer, at: range.lower, label: "folder.fetch.read")
        }
        try sink.write(UnsafeRawBufferPointer(rebasing: buffer[..<count]), at: range.lower)
        return UInt64(count)
    }

    private func checkVersion(_ fetch: Fetch) throws(ProviderError) {
        let now = try mapped("'\(display(fetch.path))' cannot be read") { () throws(SystemError) in
            let status = try FileStatus.of(
                descriptor: fetch.file.number, label: "folder.fetch.status")
            let own =
                root.knowsByPlace
                ? nil : try root.ownIdentity([], in: fetch.file.number, status: status)
            return FolderEntry.version(status, own, target: nil)
        }
        guard now == fetch.version else { throw staleContent(fetch.path) }
    }

    private func staleContent(_ path: [FileName]) -> ProviderError {
        ProviderError(.stale, "'\(display(path))' was changed in the folder")
    }
}

/// A content on its way, and what of it is still to be sent.
private struct Fetch: Sendable {
    let file: SharedDescriptor
    let version: ContentVersion
    let path: [FileName]
    var range: ByteRange
    /// Its file system is another machine's, or another than the folder's.
    let mayHang: Bool

    init(
        file: consuming Descriptor, version: ContentVersion, path: [FileName], range: ByteRange,
        mayHang: Bool
    ) {
        self.file = SharedDescriptor(file)
        self.mayHang = mayHang
        self.version = version
        self.path = path
        self.range = range
    }
}
