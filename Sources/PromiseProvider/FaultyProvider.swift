import Glibc
package import PromiseCore
import PromiseSystem
import Synchronization

/// Any provider, made slow, unreliable or absent from outside: by a small text file that may be rewritten while it runs.
///
/// Its lines are those of `ProviderFaults`. The file is for people to play with: a line that means nothing does nothing, and a
/// missing file means no faults.
///
/// The file is looked at (one stat) by every call, and every 200 ms by a call that is being held up.
package final class FaultyProvider: Provider {
    private struct State {
        var faults = ProviderFaults()
        var stamp: FileStamp?
        var counts: [ProviderCall: Int] = [:]
        var faultableCount = 0
    }

    private struct FileStamp: Equatable {
        var modificationTime: Timestamp
        var size: UInt64
        var inode: UInt64
    }

    static let interval = Duration.milliseconds(200)
    static let offline = ProviderError(.offline, "the provider is offline: a test says so")
    static let cancelled = ProviderError(.cancelled, "the call was cancelled")

    private let wrapped: any Provider
    private let file: [UInt8]
    private let clock = SystemClock()
    private let line = SlowLine()
    private let state = Mutex(State())

    package init(_ provider: any Provider, file: [UInt8]) {
        wrapped = provider
        self.file = file
    }

    package var name: String { wrapped.name }
    package var capabilities: Capabilities { wrapped.capabilities }
    package var limitations: [String] { wrapped.limitations }
    package var executor: (any TaskExecutor)? { wrapped.executor }
    package var faultLine: FaultLine? { wrapped.faultLine }
    package var lineLimit: LineLimit? { wrapped.lineLimit }
    package var sharingLinks: (any SharingLinks)? { wrapped.sharingLinks }
    package var bin: (any ProviderBin)? { wrapped.bin }
    package var privateObjects: (any PrivateObjects)? {
        wrapped.privateObjects.map { objects in
            GatedObjects(wrapped: objects) { (call) async throws(ProviderError) in try await self.gate(call) }
        }
    }

    /// How often each call of the protocol was made, faults included.
    package var callCounts: [ProviderCall: Int] { state.withLock { $0.counts } }

    // MARK: The calls

    package func letGo() async { await wrapped.letGo() }

    package func connect() async throws(ProviderError) {
        try await gate(.connect)
        try await wrapped.connect()
    }

    package func greet() async throws(ProviderError) {
        try await gate(.connect)
        try await wrapped.greet()
    }

    package func root() async throws(ProviderError) -> Item {
        try await gate(.root)
        return try await wrapped.root()
    }

    package func item(for reference: ItemReference) async throws(ProviderError) -> Item {
        try await gate(.item)
        return try await wrapped.item(for: reference)
    }

    package func enumerateItems(in folder: ItemReference, page: PageToken?) async throws(ProviderError) -> ItemPage {
        try await gate(.enumerateItems)
        return try await wrapped.enumerateItems(in: folder, page: page)
    }

    package func currentAnchor() async throws(ProviderError) -> Anchor {
        try await gate(.currentAnchor)
        return try await wrapped.currentAnchor()
    }

    package func changes(since anchor: Anchor) async throws(ProviderError) -> ChangePage {
        try await gate(.changes)
        return try await wrapped.changes(since: anchor)
    }

    /// Also ends with `.offline` when the file says so while it waits.
    package func waitForChanges(since anchor: Anchor) async throws(ProviderError) {
        try await gate(.waitForChanges)
        let outcome = await withTaskGroup(of: Result<Void, ProviderError>.self) { group in
            group.addTask {
                do throws(ProviderError) { return .success(try await self.wrapped.waitForChanges(since: anchor)) } catch {
                    return .failure(error)
                }
            }
            group.addTask {
                do throws(ProviderError) {
                    while true {
                        try await self.sleep(FaultyProvider.interval)
                        if let faults = self.faults(for: .waitForChanges), faults.isOffline { throw FaultyProvider.offline }
                    }
                } catch {
                    return .failure(error)
                }
            }
            defer { group.cancelAll() }
            // Both tasks are there, so there is a first to end.
            return await group.next() ?? .success(())
        }
        try outcome.get()
    }

    package func fetchContents(
        of reference: ItemReference, version: ContentVersion, range: ByteRange?, into sink: any ContentSink
    ) async throws(ProviderError) {
        try await gate(.fetchContents)
        if faults(for: .fetchContents)?.isStale == true { throw ProviderError(.stale, "another version: a test says so") }
        let slowed = FaultySink(sink, line: line) { self.faults(for: .fetchContents) }
        let outcome: Result<Void, ProviderError> = await withTaskCancellationHandler {
            do throws(ProviderError) {
                return .success(try await wrapped.fetchContents(of: reference, version: version, range: range, into: slowed))
            } catch {
                return .failure(error)
            }
        } onCancel: {
            slowed.cancel()
        }
        try outcome.get()
    }

    package func create(
        _ item: NewItem, in folder: ItemReference, contents: (any ContentSource)?
    ) async throws(ProviderError) -> Item {
        try await gate(.create)
        try await slowDown(.create, byteCount: contents?.size ?? 0)
        return try await wrapped.create(item, in: folder, contents: contents)
    }

    package func modify(
        _ reference: ItemReference, changes: ItemChanges, contents: (any ContentSource)?, baseVersion: ContentVersion?
    ) async throws(ProviderError) -> Item {
        try await gate(.modify)
        try await slowDown(.modify, byteCount: contents?.size ?? 0)
        return try await wrapped.modify(reference, changes: changes, contents: contents, baseVersion: baseVersion)
    }

    package func delete(_ reference: ItemReference, baseVersion: ContentVersion?) async throws(ProviderError) {
        try await gate(.delete)
        try await wrapped.delete(reference, baseVersion: baseVersion)
    }

    package func fetchThumbnail(
        of reference: ItemReference, version: ContentVersion, size: Int
    ) async throws(ProviderError) -> [UInt8]? {
        try await gate(.fetchThumbnail)
        return try await wrapped.fetchThumbnail(of: reference, version: version, size: size)
    }

    package func saveThumbnail(
        _ picture: [UInt8], of reference: ItemReference, version: ContentVersion
    ) async throws(ProviderError) {
        try await gate(.saveThumbnail)
        try await wrapped.saveThumbnail(picture, of: reference, version: version)
    }

    package func quota() async throws(ProviderError) -> Quota? {
        try await gate(.quota)
        return try await wrapped.quota()
    }

    package func pickerPage(mode: String) async throws(ProviderError) -> [UInt8]? {
        try await gate(.pickerPage)
        return try await wrapped.pickerPage(mode: mode)
    }

    package func contentsReleased(
        of reference: ItemReference, version: ContentVersion
    ) async throws(ProviderError) {
        try await gate(.contentsReleased)
        try await wrapped.contentsReleased(of: reference, version: version)
    }

    package func persistentIdentifier(
        of reference: ItemReference
    ) async throws(ProviderError) -> String? {
        try await gate(.persistentIdentifier)
        return try await wrapped.persistentIdentifier(of: reference)
    }

    package func identifier(
        ofPersistent persistent: String
    ) async throws(ProviderError) -> ItemIdentifier? {
        try await gate(.identifierOfPersistent)
        return try await wrapped.identifier(ofPersistent: persistent)
    }

    package func earlierVersions(of reference: ItemReference) async throws(ProviderError) -> [EarlierVersion] {
        try await gate(.earlierVersions)
        return try await wrapped.earlierVersions(of: reference)
    }

    package func fetchContents(
        of reference: ItemReference, earlier: EarlierVersion, into sink: any ContentSink
    ) async throws(ProviderError) {
        try await gate(.fetchContents)
        try await wrapped.fetchContents(of: reference, earlier: earlier, into: sink)
    }

    // MARK: Holding up

    /// Counts the call and does to it what the file says.
    private func gate(_ call: ProviderCall) async throws(ProviderError) {
        state.withLock { $0.counts[call, default: 0] += 1 }
        if Task.isCancelled { throw FaultyProvider.cancelled }
        let start = clock.uptime()
        var isCounted = false
        while let faults = faults(for: call) {
            if faults.isOffline { throw FaultyProvider.offline }
            if !isCounted, let period = faults.failurePeriod {
                isCounted = true
                let count = state.withLock { state in
                    state.faultableCount += 1
                    return state.faultableCount
                }
                if count % period == 0 { throw ProviderError(.retry, "every \(period). call fails: a test says so") }
            }
            let rest = faults.isHanging ? FaultyProvider.interval : faults.delay - (clock.uptime() - start)
            guard rest > .zero else { return }
            try await sleep(min(rest, FaultyProvider.interval))
        }
    }

    /// The provider reads a source by its descriptor, which cannot be slowed, so an upload takes its time beforehand.
    private func slowDown(_ call: ProviderCall, byteCount: UInt64) async throws(ProviderError) {
        guard byteCount > 0 else { return }
        let start = clock.uptime()
        while let faults = faults(for: call), let bandwidth = faults.bandwidth {
            if faults.isOffline { throw FaultyProvider.offline }
            let rest = .seconds(Double(byteCount) / Double(bandwidth)) - (clock.uptime() - start)
            guard rest > .zero else { return }
            try await sleep(min(rest, FaultyProvider.interval))
        }
    }

    private func sleep(_ duration: Duration) async throws(ProviderError) {
        // The only error of a sleep is that the task was cancelled.
        do { try await Task.sleep(for: duration) } catch { throw FaultyProvider.cancelled }
    }

    /// What the file says of a call now; nil when nothing.
    private func faults(for call: ProviderCall) -> ProviderFaults? {
        let status = try? FileStatus.of(file, label: "faulty.status")
        let stamp = status.map { FileStamp(modificationTime: $0.modificationTime, size: $0.size, inode: $0.inode) }
        let known = state.withLock { $0.stamp == stamp ? $0.faults : nil }
        let faults = known ?? read(stamp)
        return faults.concern(call) ? faults : nil
    }

    private func read(_ stamp: FileStamp?) -> ProviderFaults {
        var bytes: [UInt8] = []
        if stamp != nil, let descriptor = try? Descriptor.open(file, flags: O_RDONLY, label: "faulty.open") {
            var buffer = [UInt8](repeating: 0, count: 4096)
            // A file that cannot be read is no faults, as a missing one.
            let count = buffer.withUnsafeMutableBytes {
                (try? readFully(descriptor.number, into: $0, at: 0, label: "faulty.read")) ?? 0
            }
            bytes = Array(buffer[..<count])
        }
        let faults = ProviderFaults(parsing: String(decoding: bytes, as: UTF8.self))
        state.withLock { state in
            state.faults = faults
            state.stamp = stamp
        }
        return faults
    }
}
