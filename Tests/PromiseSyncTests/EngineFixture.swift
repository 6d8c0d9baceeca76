import Logging
import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSync
import PromiseSystem
import PromiseTestSupport
import Synchronization
import Testing

typealias Index = PromiseIndex.Index

/// Shows the tree to nobody: notes what it is told.
final class QuietObserver: LocalTreeObserver {
    private let openNodes = Mutex<Set<NodeID>>([])
    let changedNames = Mutex<[FileName]>([])
    /// Nodes that somebody has claimed, and whether the engine's own claims are granted for a turn.
    let claims = Mutex<(held: Set<NodeID>, isGranted: Bool)>(([], false))

    func setOpen(_ node: NodeID, _ isOpen: Bool) {
        openNodes.withLock { if isOpen { $0.insert(node) } else { $0.remove(node) } }
    }

    func isOpen(_ node: NodeID) -> Bool { openNodes.withLock { $0.contains(node) } }
    func entryChanged(in parent: NodeID, named name: FileName) { changedNames.withLock { $0.append(name) } }
    func nodeChanged(_ node: NodeID, content: Bool) {}
    func treeChanged(_ changes: [TreeChange]) {}
    func noteOpenWrites() {}
    func noteOpenWrites(of node: NodeID, _ transaction: borrowing Transaction) {}
    func giveTime(toOpen node: Node) {}
    func takeRecentUses() -> [NodeID: Timestamp] { [:] }
    func mayFollow(_ change: RemoteChange, of node: NodeID, _ transaction: borrowing Transaction) -> Bool {
        claims.withLock { !$0.held.contains(node) || $0.isGranted }
    }
    /// A claim that was granted is given back with the end of the turn.
    func remoteChangesFollowed() { claims.withLock { $0.isGranted = false } }
    func isUsed(_ node: NodeID, _ transaction: borrowing Transaction) -> Bool { false }
    func watchedNodes() -> WatchedNodes { WatchedNodes() }
    var keepsLastCopies: Bool { false }
    func namesReplaced(_ before: [Entry]) {}
}

/// Time that passes a hundred times as slowly for an engine: what it puts off for seconds does not come while a test waits,
/// however busy the machine is.
struct SlowClock: TimeSource {
    private let start = SystemClock().uptime()

    func now() -> Timestamp { SystemClock().now() }
    func uptime() -> Duration { start + (SystemClock().uptime() - start) / 100 }
}

/// An engine over a real index and content store in a temporary folder, and the edits that a filesystem would make.
final class EngineFixture: Sendable {
    let folder: TemporaryFolder
    let index: Index
    let content: ContentStore
    let provider: MemoryProvider
    let engine: SyncEngine
    let observer = QuietObserver()

    /// `mediator`: what the engine talks to instead of `provider` itself. `watchPatience`: on a busy machine a test gets no
    /// processor for seconds, and the provider does not seem to be away.
    init(
        _ provider: MemoryProvider = MemoryProvider(), mediator: (any Provider)? = nil, pollInterval: Duration = .seconds(60),
        watchPatience: Duration = .seconds(60), clock: any TimeSource = SystemClock()
    ) throws {
        folder = try TemporaryFolder("sync")
        index = try Index(path: folder.path("index.sqlite"), cacheCountMax: 1_000)
        content = try ContentStore(folder: folder.path("content"))
        self.provider = provider
        try index.write { transaction throws(Failure) in
            try transaction.setSetting("root.identifier", MemoryProvider.rootIdentifier.rawValue)
        }
        var configuration = SyncEngine.Configuration(
            uploadDelay: .milliseconds(5), pollInterval: pollInterval, cacheLimit: nil, hostName: "host")
        configuration.removalDelay = configuration.uploadDelay
        configuration.watchPatience = watchPatience
        configuration.backoff = Backoff(first: .milliseconds(20), longest: .milliseconds(200))
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        engine = SyncEngine(
            index: index, content: content, provider: mediator ?? provider, clock: clock,
            rootIdentifier: MemoryProvider.rootIdentifier, configuration: configuration, logger: logger)
    }

    /// Starts the engine, runs `body` and stops the engine, whatever happens.
    func run(_ body: () async throws -> Void) async throws {
        engine.start(observer: observer, isConnected: true)
        let result: Result<Void, any Error>
        do { result = .success(try await body()) } catch { result = .failure(error) }
        engine.stop()
        try result.get()
        #expect(try index.verify() == [])
        index.close()
    }

    // MARK: Waiting

    /// Polls until `condition` holds; false after a deadline that only a broken engine reaches.
    func eventually(_ condition: () async throws -> Bool) async rethrows -> Bool {
        let deadline = SystemClock().uptime() + .seconds(90)
        while SystemClock().uptime() < deadline {
            if try await condition() { return true }
            try? await Task.sleep(for: .milliseconds(5))
        }
        return false
    }

    /// Nothing is pending, nothing differs and nothing is being looked at.
    func isQuiet() throws -> Bool {
        let remainder = try engine.remainder()
        let differs = try index.read { transaction throws(Failure) in try !transaction.divergences(limit: 1).isEmpty }
        return remainder.isDone && engine.uploadingCount == 0 && !differs
    }

    func list(_ folder: NodeID = .root) async throws {
        let result: Result<Void, Failure> = await withCheckedContinuation { continuation in
            engine.list(folder) { continuation.resume(returning: $0) }
        }
        try result.get()
    }

    func hydrate(_ node: NodeID) async throws {
        let result: Result<Void, Failure> = await withCheckedContinuation { continuation in
            _ = engine.hydrator.hydrate(node) { continuation.resume(returning: $0) }
        }
        try result.get()
    }

    // MARK: Looking

    func entry(_ name: String, in parent: NodeID = .root) throws -> Entry? {
        try index.read { transaction throws(Failure) in try transaction.entry(in: parent, named: FileName(name)!) }
    }

    func node(_ name: String, in parent: NodeID = .root) throws -> Node? {
        try index.read { transaction throws(Failure) in
            guard let entry = try transaction.entry(in: parent, named: FileName(name)!) else { return nil }
            return try transaction.node(entry.node)
        }
    }

    /// What a file that the provider has is here, after the root was listed.
    func listed(_ name: String) async throws -> Node {
        try await list()
        return try #require(try node(name))
    }

    func names(in parent: NodeID = .root) throws -> [String] {
        try index.read { transaction throws(Failure) in try transaction.children(of: parent) }.map(\.name.display)
    }

    /// What a program would read, of content that is here.
    func text(_ name: String, in parent: NodeID = .root) throws -> String? {
        guard let node = try node(name, in: parent), node.content == .whole else { return nil }
        let file = try content.open(node.id, node.generation, writable: false)
        var bytes = [UInt8](repeating: 0, count: Int(node.size))
        let count = try bytes.withUnsafeMutableBytes { try readFully(file.number, into: $0, at: 0, label: "test.read") }
        return String(decoding: bytes[..<count], as: UTF8.self)
    }

    // MARK: Editing, as the filesystem does

    private func store(_ text: String, in file: borrowing Descriptor) throws {
        try truncate(file.number, to: 0, label: "test.write")
        let bytes = Array(text.utf8)
        try bytes.withUnsafeBytes { try writeFully(file.number, $0, at: 0, label: "test.write") }
    }

    private func remind(
        _ entry: Entry, after delay: Duration = .zero, _ transaction: borrowing Transaction
    ) throws(Failure) {
        let now = SystemClock().now()
        let due = engine.uploadDue(after: now).advanced(by: delay)
        try transaction.setPending(Pending(subject: .entry(entry.id), since: now, due: due))
    }

    @discardableResult
    func create(_ name: String, _ text: String, kind: NodeKind = .file, in parent: NodeID = .root) throws -> NodeID {
        var node = Node(
            id: .root, kind: kind, mode: kind == .folder ? 0o755 : 0o644, owner: 0, group: 0, size: UInt64(text.utf8.count),
            time: SystemClock().now(), content: kind == .file ? .whole : .absent)
        node.isPopulated = kind == .folder
        node.edits = kind == .file ? 1 : 0
        let made = try index.write { [node] transaction throws(Failure) in try transaction.insert(node) }
        if kind == .file { try store(text, in: try content.create(made.id, made.generation)) }
        try index.write { transaction throws(Failure) in
            let entry = try transaction.insertEntry(in: parent, named: FileName(name)!, node: made.id, identifier: nil)
            try remind(entry, transaction)
            try transaction.record(.created, node: made.id, parent: parent, name: entry.name)
        }
        engine.notePending()
        return made.id
    }

    /// Replaces the bytes of a file whose content is here.
    func edit(_ name: String, _ text: String, in parent: NodeID = .root) throws {
        let node = try #require(try node(name, in: parent))
        #expect(node.content == .whole)
        try store(text, in: try content.open(node.id, node.generation))
        try index.write { transaction throws(Failure) in
            guard var node = try transaction.node(node.id), let entry = try transaction.entries(of: node.id).first else { return }
            node.edits += 1
            node.size = UInt64(text.utf8.count)
            node.modificationTime = SystemClock().now()
            try transaction.update(node)
            try remind(entry, transaction)
        }
        engine.notePending()
    }

    /// `delay`: how much later than usual the provider is told.
    func rename(
        _ name: String, in parent: NodeID = .root, to other: String, into newParent: NodeID = .root, delay: Duration = .zero
    ) throws {
        try index.write { transaction throws(Failure) in
            guard var entry = try transaction.entry(in: parent, named: FileName(name)!) else { return }
            entry.parent = newParent
            entry.name = FileName(other)!
            try transaction.update(entry)
            try remind(entry, after: delay, transaction)
            try transaction.record(.moved, node: entry.node, parent: newParent, name: entry.name)
        }
        engine.notePending()
    }

    func remove(_ name: String, in parent: NodeID = .root) throws {
        try index.write { transaction throws(Failure) in
            guard let entry = try transaction.entry(in: parent, named: FileName(name)!) else { return }
            try transaction.delete(entry.id)
            try transaction.delete(entry.node)
            try transaction.record(.deleted, node: entry.node, parent: parent, name: entry.name)
            guard let identifier = entry.identifier else { return }
            let now = SystemClock().now()
            try transaction.setPending(Pending(subject: .deletion(identifier), since: now, due: now))
        }
        engine.notePending()
    }
}
