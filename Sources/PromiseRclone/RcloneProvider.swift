package import Logging
package import PromiseCore
package import PromiseProvider
package import PromiseSystem
import PromiseWebDAV
import Synchronization

/// A person's rclone remote as the cloud: `rclone:REMOTE:PATH`, any of rclone's kinds of storage, encrypted ones too.
///
/// rclone runs beside the daemon and serves the remote over WebDAV on this machine, for nobody else; what is done there is what
/// the WebDAV provider does. What rclone itself gets wrong for us is put right by `RcloneRelay`.
///
/// **Versions** are the remote's times and sizes. There are no conditions: what has to be there is looked at just before.
///
/// **Threads.** As the WebDAV provider's; rclone is watched by a thread of its own.
package final class RcloneProvider: Provider {
    /// A request of which rclone does not say whether the remote was there is made again after this.
    private static let pause = Duration.seconds(15)

    private let location: RcloneLocation
    private let program: RcloneProgram
    private let relay: RcloneRelay
    private let files: WebDAVProvider
    private let pool = BlockingPool(name: "rclone", threads: 1)
    private let tellsQuota = Mutex(false)
    /// The configuration has the remote, and the remote the folder.
    private let isKnown = Mutex(false)

    /// Starts rclone (nil: that of this machine); waits for nothing. Throws a sentence where there is none.
    package init(
        location: RcloneLocation, program: RcloneProgram? = nil, stateFolder: [UInt8]?, mayProbe: Bool, logger: Logger,
        clock: any TimeSource = SystemClock()
    ) throws(ProviderError) {
        self.location = location
        let known = if let program { program } else { try RcloneProgram() }
        self.program = known
        relay = try RcloneRelay(location, program: known, stateFolder: stateFolder, logger: logger, clock: clock)
        files = try WebDAVProvider(
            location: WebDAVLocation(relayed: location.name), credentials: CredentialSource(file: nil, names: [], user: nil),
            stateFolder: stateFolder, mayProbe: mayProbe, logger: logger, clock: clock, relay: relay)
    }

    deinit {
        relay.stop()
        pool.stop()
    }

    package var name: String { location.name }
    package var executor: (any TaskExecutor)? { files.executor }
    package var faultLine: FaultLine? { files.faultLine }
    package var lineLimit: LineLimit? { files.lineLimit }

    package var capabilities: Capabilities {
        // rclone's locks keep nobody out who does not come by it.
        let known = files.capabilities.subtracting([.conditionalWrite, .privateObjects, .quota])
        return tellsQuota.withLock { $0 } ? known.union(.quota) : known
    }

    package var limitations: [String] {
        [
            "rclone has no conditions: a change by another program in the moment between a look and ours can be lost, and one "
                + "of the same size within the remote's precision of times is not seen"
        ] + files.limitations.filter { !$0.contains("quota") && !$0.contains("locks") }
    }

    // MARK: Being there

    package func connect() async throws(ProviderError) {
        try await meet()
        try await told { () async throws(ProviderError) in try await files.connect() }
    }

    package func greet() async throws(ProviderError) {
        try await meet()
        try await told { () async throws(ProviderError) in try await files.greet() }
    }

    package func letGo() async { await files.letGo() }

    private func meet() async throws(ProviderError) {
        let (program, location) = (program, location)
        try await pool.run { () throws(ProviderError) in try program.check(location) }
        try await relay.checkRoot(isFresh: true)
        isKnown.withLock { $0 = true }
        let quota = await relay.quota()
        tellsQuota.withLock { $0 = quota != nil }
    }

    package func root() async throws(ProviderError) -> Item {
        if isKnown.withLock({ $0 }) {
            try await relay.checkRoot(isFresh: true)
        } else {
            try await meet()
        }
        return try await told { () async throws(ProviderError) in try await files.root() }
    }

    package func quota() async throws(ProviderError) -> Quota? { await relay.quota() }

    // MARK: Looking

    package func item(for reference: ItemReference) async throws(ProviderError) -> Item {
        try await told(at: reference.path) { () async throws(ProviderError) in try await files.item(for: reference) }
    }

    package func enumerateItems(in folder: ItemReference, page: PageToken?) async throws(ProviderError) -> ItemPage {
        try await told(at: folder.path) { () async throws(ProviderError) in
            let found = try await files.enumerateItems(in: folder, page: page)
            if found.items.isEmpty { try await relay.checkEmpty(files.location.urlPath(folder.path)) }
            return found
        }
    }

    package func enumerateAllItems(
        in folder: ItemReference, handOn: @escaping @Sendable ([Item]) async -> Void
    ) async throws(ProviderError) -> [Item] {
        let handed = Mutex(false)
        return try await told(at: folder.path) { () async throws(ProviderError) in
            let rest = try await files.enumerateAllItems(in: folder) { items in
                handed.withLock { $0 = $0 || !items.isEmpty }
                await handOn(items)
            }
            if rest.isEmpty, !handed.withLock({ $0 }) { try await relay.checkEmpty(files.location.urlPath(folder.path)) }
            return rest
        }
    }

    package func currentAnchor() async throws(ProviderError) -> Anchor { try await files.currentAnchor() }

    package func changes(since anchor: Anchor) async throws(ProviderError) -> ChangePage {
        try await files.changes(since: anchor)
    }

    package func waitForChanges(since anchor: Anchor) async throws(ProviderError) {
        try await files.waitForChanges(since: anchor)
    }

    package func fetchContents(
        of reference: ItemReference, version: ContentVersion, range: ByteRange?, into sink: any ContentSink
    ) async throws(ProviderError) {
        try await told(at: reference.path) { () async throws(ProviderError) in
            try await files.fetchContents(of: reference, version: version, range: range, into: sink)
        }
    }

    // MARK: Changing

    package func create(
        _ item: NewItem, in folder: ItemReference, contents: (any ContentSource)?
    ) async throws(ProviderError) -> Item {
        try await changing(folder.path) { () async throws(ProviderError) in
            try await files.create(item, in: folder, contents: contents)
        }
    }

    package func modify(
        _ reference: ItemReference, changes: ItemChanges, contents: (any ContentSource)?, baseVersion: ContentVersion?
    ) async throws(ProviderError) -> Item {
        let goal = changes.place?.parent.path
        return try await changing(reference.path, to: goal) { () async throws(ProviderError) in
            try await files.modify(reference, changes: changes, contents: contents, baseVersion: baseVersion)
        }
    }

    package func delete(_ reference: ItemReference, baseVersion: ContentVersion?) async throws(ProviderError) {
        try await changing(reference.path) { () async throws(ProviderError) in
            try await files.delete(reference, baseVersion: baseVersion)
        }
    }

    private func changing<Value: Sendable>(
        _ path: [FileName], to goal: [FileName]? = nil,
        _ body: () async throws(ProviderError) -> Value
    ) async throws(ProviderError) -> Value {
        try await relay.checkRoot()
        return try await told(at: path, to: goal, body)
    }

    /// rclone answers "not there" and "not allowed" whatever the trouble is. The first is asked again of the storage itself; the
    /// second is tried again. `goal`: the folder that something is moved to, which may be what is not there.
    private func told<Value: Sendable>(
        at path: [FileName] = [], to goal: [FileName]? = nil,
        _ body: () async throws(ProviderError) -> Value
    ) async throws(ProviderError) -> Value {
        do throws(ProviderError) {
            return try await body()
        } catch {
            switch error.code {
            case .notFound: try await checkGone(path, or: goal)
            // What was not even asked for, as a name that comes back as another one, stays refused.
            case .refused where error.message.contains(": the server answers "):
                throw ProviderError(.retryAfter(RcloneProvider.pause), error.message + relay.words)
            default: break
            }
            throw error
        }
    }

    /// Throws `.retry` while the storage has both.
    private func checkGone(
        _ path: [FileName], or goal: [FileName]?
    ) async throws(ProviderError) {
        do throws(ProviderError) {
            try await relay.checkGone(files.location.urlPath(path))
        } catch {
            guard let goal, error.code == .retry else { throw error }
            try await relay.checkGone(files.location.urlPath(goal))
        }
    }
}
