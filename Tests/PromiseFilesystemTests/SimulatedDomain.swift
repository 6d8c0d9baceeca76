import Logging
import PromiseContent
import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseProvider
import PromiseSync
import PromiseSystem
import PromiseTestSupport
import Testing

typealias Index = PromiseIndex.Index

/// A file system without a mount: what a kernel would ask is asked here, by paths, and the provider is a memory that others
/// change, too.
final class SimulatedDomain: Sendable {
    let folder: TemporaryFolder
    let index: Index
    let content: ContentStore
    /// What others change.
    let provider: MemoryProvider
    private let store: any Provider
    /// What the engine talks to.
    private let mediator: any Provider
    /// The line to it, where that is bad.
    private let line: UnreliableProvider?
    let engine: SyncEngine
    let filesystem: FileSystem
    private let caller = Caller(user: 0, group: 0, process: 0)
    private let hostName: String
    private let isAfterKill: Bool
    /// What the engine decided last, and why it waits, for a failure that does not come again.
    private let decisions = RecentLines()

    /// `places`: a store that is asked by places. `lineSeed`: it is asked over a bad line. `killed`: goes on where that one
    /// ended, as if it had been killed: what the provider told it last it did not store. `other`: another machine, whose store
    /// this one has, too.
    init(
        _ places: PlaceProvider? = nil, lineSeed: UInt64? = nil, after killed: SimulatedDomain? = nil,
        beside other: SimulatedDomain? = nil, uploadDelay: Duration = .milliseconds(5), removedAge: Duration? = nil,
        cutWithIndexMax: UInt64? = nil
    ) throws {
        isAfterKill = killed != nil
        folder = try killed?.folder ?? TemporaryFolder("simulated")
        provider = killed?.provider ?? other?.provider ?? places?.memory ?? MemoryProvider()
        let store: any Provider = killed?.store ?? other?.store ?? (places as (any Provider)?) ?? provider
        self.store = store
        line = killed?.line ?? lineSeed.map { UnreliableProvider(store, seed: $0) }
        hostName = killed?.hostName ?? (other == nil ? "host" : "otherhost")
        mediator = killed?.mediator ?? line ?? store
        index = try Index(path: folder.path("index.sqlite"), cacheCountMax: 1_000)
        content = try ContentStore(folder: folder.path("content"))
        try index.write { transaction throws(Failure) in
            try transaction.setSetting("root.identifier", MemoryProvider.rootIdentifier.rawValue)
        }
        var configuration = SyncEngine.Configuration(
            uploadDelay: uploadDelay, pollInterval: .milliseconds(50), cacheLimit: nil, hostName: hostName)
        configuration.removalDelay = configuration.uploadDelay
        configuration.removedAge = removedAge
        configuration.backoff = Backoff(first: .milliseconds(20), longest: .milliseconds(200))
        // Hundreds of tests beside it may leave its tasks without a processor for seconds.
        configuration.watchPatience = .seconds(120)
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        let handler = RecentLog(lines: decisions)
        engine = SyncEngine(
            index: index, content: content, provider: mediator, clock: SystemClock(),
            rootIdentifier: MemoryProvider.rootIdentifier, configuration: configuration,
            logger: Logger(label: "engine") { _ in handler })
        var behaviour = FileSystem.Configuration(requestDeadline: .seconds(60), domainName: "simulated")
        behaviour.references = ReferenceMemory()
        if let cutWithIndexMax { behaviour.cutWithIndexMax = cutWithIndexMax }
        filesystem = FileSystem(
            index: index, content: content, engine: engine, clock: SystemClock(), configuration: behaviour, logger: logger)
    }

    /// Starts the engine, runs `body` and stops the engine, whatever happens.
    func run(_ body: () async throws -> Void) async throws {
        if isAfterKill { try filesystem.recover(isUnclean: true, hasPowerFailed: false) }
        engine.start(observer: filesystem, isConnected: true)
        let result: Result<Void, any Error>
        do { result = .success(try await body()) } catch { result = .failure(error) }
        engine.stop()
        filesystem.ended()
        index.close()
        try result.get()
    }

    /// Nothing is pending, nothing differs and nothing is being looked at.
    func isQuiet() throws -> Bool {
        let remainder = try engine.remainder()
        let differs = try index.read { transaction throws(Failure) in try !transaction.divergences(limit: 1).isEmpty }
        return remainder.isDone && engine.uploadingCount == 0 && !differs
    }

    /// Waits until something that is pending has failed.
    func untilRefused() async throws {
        let deadline = SystemClock().uptime() + .seconds(60)
        while SystemClock().uptime() < deadline {
            let pending = try index.read { transaction throws(Failure) in try transaction.allPending(limit: 50) }
            if pending.contains(where: { $0.attempts > 0 }) { return }
            try await Task.sleep(for: .milliseconds(2))
        }
        Issue.record("nothing was tried")
    }

    /// Waits until something counts as failing; what stands in its way.
    func untilFailing(saying text: String) async throws {
        let deadline = SystemClock().uptime() + .seconds(60)
        var said: String?
        while SystemClock().uptime() < deadline {
            if try engine.remainder().failing > 0 { said = try engine.obstacle()?.message }
            if said?.contains(text) == true { return }
            try await Task.sleep(for: .milliseconds(2))
        }
        Issue.record("\(said ?? "nothing fails")")
    }

    /// Waits until nothing is agreed on about an item that was there by this name.
    func untilForgotten(_ name: String) async throws {
        let deadline = SystemClock().uptime() + .seconds(60)
        while SystemClock().uptime() < deadline {
            let known = try index.read { transaction throws(Failure) in
                try transaction.syncedChildren(of: MemoryProvider.rootIdentifier)
            }
            if !known.contains(where: { $0.item.name.display == name }) { return }
            try await Task.sleep(for: .milliseconds(2))
        }
        Issue.record("\(name) is still known")
    }

    /// A folder may have to be listed for it, over a line that was bad until now.
    func treeOnceCalm() async throws -> [String] {
        line?.calmDown()
        var patience = Patience()
        while patience.isLeft() {
            if let tree = try? await tree() { return tree }
            try await Task.sleep(for: .milliseconds(20))
        }
        return try await tree()
    }

    /// Waits until work has come to its end and both sides show the same.
    func expectBothSidesTheSame(_ comment: String = "") async throws {
        line?.calmDown()
        var patience = Patience()
        var here: [String] = []
        var there = ["?"]
        var problem: (any Error)?
        while patience.isLeft() {
            if try isQuiet() {
                do { (here, problem) = (try await tree(), nil) } catch { problem = error }
                there = await provider.tree()
                if problem == nil, here == there, try isQuiet() { return }
            }
            try await Task.sleep(for: .milliseconds(20))
        }
        let missing = Set(here).symmetricDifference(there).sorted()
        there = await provider.tree()
        let reason = problem.map { ", it cannot be read here: \($0)" } ?? ""
        let engine = "\(engine.connection) \(try engine.remainder())\n\(decisions.text)"
        Issue.record("\(comment)\(reason): on one side only: \(missing)\n\(try remains())\nthere: \(there)\n\(engine)")
    }

    /// The index has it that each of these folders of the root is in the other one at the provider.
    func makeCircle(_ names: [String]) throws {
        try index.write { transaction throws(Failure) in
            var identifiers: [ItemIdentifier] = []
            for name in names {
                if let known = try transaction.entry(in: .root, named: FileName(name)!)?.identifier { identifiers.append(known) }
            }
            for (one, other) in zip(identifiers, identifiers.reversed()) {
                guard var synced = try transaction.synced(one) else { continue }
                synced.item.parent = other
                try transaction.setSynced(synced)
                try transaction.setRemote(one, nil)
            }
        }
    }

    // MARK: What programs do here

    private typealias Reply<Value> = @Sendable (Result<Value, Failure>) -> Void

    private func call<Value: Sendable>(_ body: (@escaping Reply<Value>) -> ParkedRequest?) async throws -> Value {
        let result: Result<Value, Failure> = await withCheckedContinuation { continuation in
            _ = body { continuation.resume(returning: $0) }
        }
        return try result.get()
    }

    func node(at path: [String]) async throws -> NodeAttributes {
        var found = try filesystem.entry(of: .root).attributes
        for name in path {
            let parent = found.node
            let answer = try await call { filesystem.lookup(FileName(name)!, in: parent, caller: caller, reply: $0) }
            guard case .found(let entry) = answer else { throw Failure(.notFound, "there is no \(name)") }
            found = entry.attributes
        }
        return found
    }

    private func folder(of path: [String]) async throws -> (node: NodeID, name: FileName) {
        (try await node(at: path.dropLast()).node, FileName(path.last!)!)
    }

    func makeFolder(_ path: [String]) async throws {
        let (parent, name) = try await folder(of: path)
        _ = try await call { filesystem.makeFolder(name, in: parent, permissions: 0o755, caller: caller, reply: $0) }
    }

    func makeLink(_ path: [String], to target: [UInt8]) async throws -> NodeID {
        let (parent, name) = try await folder(of: path)
        let made = try await call { filesystem.makeLink(name, in: parent, target: target, caller: caller, reply: $0) }
        return made.attributes.node
    }

    /// Creates the file, or replaces what is in it.
    func write(_ text: String, to path: [String]) async throws {
        let (parent, name) = try await folder(of: path)
        // O_WRONLY | O_TRUNC
        let opening = OpenRequest(flags: 0o1001)
        let (node, handle): (NodeID, HandleID)
        if let known = try? await self.node(at: path) {
            let opened = try await call { filesystem.open(known.node, opening, caller: caller, reply: $0) }
            (node, handle) = (known.node, opened.handle)
        } else {
            let made = try await call {
                filesystem.create(name, in: parent, permissions: 0o644, opening: opening, caller: caller, reply: $0)
            }
            (node, handle) = (made.entry.attributes.node, made.opened.handle)
        }
        defer { filesystem.release(node, handle: handle) }
        let bytes = Array(text.utf8)
        _ = try await call { (reply: @escaping Reply<Int>) in
            bytes.withUnsafeBytes {
                filesystem.write(
                    FilePosition(node: node, handle: handle, offset: 0), $0, clearsSetID: false, isPageWrite: false,
                    caller: caller, reply: reply)
            }
        }
    }

    /// A file that a program has open for writing.
    struct OpenFile {
        var node: NodeID
        var handle: HandleID
    }

    /// O_RDWR, unless other flags are given.
    func open(_ path: [String], flags: Int32 = 2) async throws -> OpenFile {
        let node = try await node(at: path).node
        let opened = try await call { filesystem.open(node, OpenRequest(flags: flags), caller: caller, reply: $0) }
        return OpenFile(node: node, handle: opened.handle)
    }

    /// For reading. What is returned waits for content.
    func begin(
        opening node: NodeID, reply: @escaping @Sendable (Result<OpenReply, Failure>) -> Void
    ) -> ParkedRequest? {
        filesystem.open(node, OpenRequest(flags: 0), caller: caller, reply: reply)
    }

    /// A file of others that nobody has looked into here.
    func placeholder(_ name: String, of text: String) async throws -> NodeID {
        await provider.write(text, to: [name])
        let deadline = SystemClock().uptime() + .seconds(60)
        while SystemClock().uptime() < deadline {
            if let found = try? await node(at: [name]) { return found.node }
            try await Task.sleep(for: .milliseconds(5))
        }
        throw Failure(.notFound, "\(name) did not appear")
    }

    /// `appends`: at the end, of which the kernel thinks that it is at `offset`. `isResent`: the daemon before has had it, too.
    @discardableResult func write(
        _ text: String, to file: OpenFile, at offset: UInt64 = 0, appends: Bool = false, isResent: Bool = false
    ) async throws -> Int {
        let bytes = Array(text.utf8)
        var position = FilePosition(node: file.node, handle: file.handle, offset: offset)
        position.appends = appends
        var caller = caller
        caller.isResent = isResent
        let (place, writer) = (position, caller)
        return try await call { (reply: @escaping Reply<Int>) in
            bytes.withUnsafeBytes {
                filesystem.write(place, $0, clearsSetID: false, isPageWrite: false, caller: writer, reply: reply)
            }
        }
    }

    /// As fallocate(2); what is returned waits for content.
    func begin(
        allocating count: UInt64, of file: OpenFile, reply: @escaping @Sendable (Result<Void, Failure>) -> Void
    ) -> ParkedRequest? {
        let position = FilePosition(node: file.node, handle: file.handle, offset: 0)
        return filesystem.allocate(position, count: count, mode: 0, caller: caller, reply: reply)
    }

    /// As fchmod(2) of a folder.
    func give(permissions: UInt32, to node: NodeID) async throws -> NodeAttributes {
        let changes = AttributeChanges(permissions: permissions)
        let answer = try await call {
            filesystem.setAttributes(of: node, handle: nil, changes, caller: caller, reply: $0)
        }
        return answer.attributes
    }

    /// As truncate(2).
    func cut(_ node: NodeID, to size: UInt64) async throws {
        _ = try await call {
            filesystem.setAttributes(of: node, handle: nil, AttributeChanges(size: size), caller: caller, reply: $0)
        }
    }

    /// Of an open file; what is returned waits for content.
    func begin(
        reading count: Int, of file: OpenFile, reply: @escaping @Sendable (Result<String, Failure>) -> Void
    ) -> ParkedRequest? {
        let position = FilePosition(node: file.node, handle: file.handle, offset: 0)
        return filesystem.read(position, count: count, caller: caller) { result in
            reply(
                result.map { answer in
                    guard case .descriptor(let descriptor, let range) = answer else { return "?" }
                    var bytes = [UInt8](repeating: 0, count: Int(range.count))
                    let count = bytes.withUnsafeMutableBytes { buffer in
                        (try? readFully(descriptor, into: buffer, at: range.lower, label: "test.read.open")) ?? 0
                    }
                    return String(decoding: bytes[..<count], as: UTF8.self)
                })
        }
    }

    /// As futimens(2).
    func give(_ time: Timestamp, to file: OpenFile) async throws {
        let changes = AttributeChanges(modificationTime: .at(time))
        _ = try await call {
            filesystem.setAttributes(
                of: file.node, handle: file.handle, changes, caller: caller, reply: $0)
        }
    }

    /// As chmod(2).
    func setMode(_ mode: UInt32, of path: [String]) async throws {
        let node = try await node(at: path).node
        _ = try await call {
            filesystem.setAttributes(
                of: node, handle: nil, AttributeChanges(permissions: mode), caller: caller, reply: $0)
        }
    }

    /// As utimensat(2).
    func setTime(_ time: Timestamp, of path: [String]) async throws {
        let node = try await node(at: path).node
        let changes = AttributeChanges(modificationTime: .at(time))
        _ = try await call {
            filesystem.setAttributes(of: node, handle: nil, changes, caller: caller, reply: $0)
        }
    }

    /// As fsync(2).
    func synchronize(_ file: OpenFile) async throws {
        _ = try await call { (reply: @escaping Reply<Void>) in
            filesystem.synchronize(file.node, handle: file.handle, dataOnly: false, reply: reply)
        }
    }

    func synchronizeFolder(_ path: [String]) async throws {
        let node = try await node(at: path).node
        _ = try await call { (reply: @escaping Reply<Void>) in filesystem.synchronizeFolder(node, reply: reply) }
    }

    func setAttribute(_ name: String, of path: [String], to value: String) async throws {
        let node = try await node(at: path).node
        try filesystem.setExtendedAttribute(
            Array(name.utf8), of: node, to: Array(value.utf8), mode: .any, clearsSetGroupID: false,
            caller: caller)
    }

    func close(_ file: OpenFile) { filesystem.release(file.node, handle: file.handle) }

    /// Waits until the name stands for nothing, or for another node.
    func untilReplaced(_ path: [String], _ node: NodeID) async throws {
        let deadline = SystemClock().uptime() + .seconds(60)
        while SystemClock().uptime() < deadline {
            if (try? await self.node(at: path).node) != node { return }
            try await Task.sleep(for: .milliseconds(2))
        }
        Issue.record("\(path) is still the same")
    }

    func rename(_ path: [String], to other: [String]) async throws {
        let (parent, name) = try await folder(of: path)
        let (newParent, newName) = try await folder(of: other)
        _ = try await call {
            filesystem.rename(name, in: parent, to: newName, in: newParent, flags: [], caller: caller, reply: $0)
        }
    }

    /// As link(2).
    func addName(_ path: [String], to other: [String]) async throws {
        let (parent, name) = try await folder(of: path)
        let node = try await node(at: other).node
        _ = try await call { filesystem.addName(name, in: parent, to: node, caller: caller, reply: $0) }
    }

    /// With everything below it.
    /// rmdir(2).
    func removeFolder(_ path: [String]) async throws {
        let (parent, name) = try await folder(of: path)
        _ = try await call { filesystem.removeFolder(name, in: parent, caller: caller, reply: $0) }
    }

    func remove(_ path: [String]) async throws {
        let attributes = try await node(at: path)
        let (parent, name) = try await folder(of: path)
        if attributes.kind == .folder {
            for child in try await names(in: attributes.node) { try await remove(path + [child]) }
            _ = try await call { filesystem.removeFolder(name, in: parent, caller: caller, reply: $0) }
        } else {
            _ = try await call { filesystem.unlink(name, in: parent, caller: caller, reply: $0) }
        }
    }

    private func names(in folder: NodeID) async throws -> [String] {
        let isListed = try index.read { transaction throws(Failure) in try transaction.node(folder)?.isPopulated ?? true }
        if !isListed {
            try await withCheckedThrowingContinuation { continuation in
                engine.list(folder) { continuation.resume(with: $0.mapError { $0 as any Error }) }
            } as Void
        }
        return try index.read { transaction throws(Failure) in try transaction.children(of: folder) }.map(\.name.display)
    }

    /// Every path, with the text of what is a file.
    func tree(below folder: NodeID = .root, _ path: String = "") async throws -> [String] {
        var result: [String] = []
        for name in try await names(in: folder) {
            let child: Node? = try index.read { transaction throws(Failure) in
                guard let entry = try transaction.entry(in: folder, named: FileName(name)!) else { return nil }
                return try transaction.node(entry.node)
            }
            guard let child else { continue }
            if child.kind == .folder {
                result.append("\(path)\(name)/")
                result += try await tree(below: child.id, "\(path)\(name)/")
            } else {
                result.append("\(path)\(name)=\(try await text(of: child.id))")
            }
        }
        return result.sorted()
    }

    /// Of the file there, or of all in the folder there; none where nothing is.
    func texts(at path: [String]) async throws -> [String] {
        let found: NodeAttributes
        do {
            found = try await node(at: path)
        } catch let error as Failure where error.code == .notFound || error.code == .notFolder {
            return []
        }
        if found.kind == .file { return [try await text(of: found.node)] }
        return try await tree(below: found.node).compactMap(SimulatedDomain.text(ofLine:))
    }

    /// What tells whether something else is there now, for as much as the index knows; nothing is fetched or listed for it.
    func stamps(at path: [String]) throws -> [String] {
        try index.read { transaction throws(Failure) in
            var current = NodeID.root
            for name in path {
                guard let entry = try transaction.entry(in: current, named: FileName(name)!) else { return [] }
                current = entry.node
            }
            return try stamps(of: current, transaction)
        }
    }

    private func stamps(of id: NodeID, _ transaction: borrowing Transaction) throws(Failure) -> [String] {
        guard let node = try transaction.node(id) else { return [] }
        var result = ["\(id) \(node.version?.rawValue ?? "-") \(node.edits)"]
        for child in try transaction.children(of: id) { result += try stamps(of: child.node, transaction) }
        return result
    }

    /// Of a line of a tree that is a file's.
    static func text(ofLine line: String) -> String? {
        line.split(separator: "=", maxSplits: 1).dropFirst().first.map(String.init)
    }

    private func text(of id: NodeID) async throws -> String {
        let result: Result<Void, Failure> = await withCheckedContinuation { continuation in
            _ = engine.hydrator.hydrate(id) { continuation.resume(returning: $0) }
        }
        try result.get()
        guard let node = try index.read({ transaction throws(Failure) in try transaction.node(id) }) else { return "" }
        let file = try content.open(node.id, node.generation, writable: false)
        var bytes = [UInt8](repeating: 0, count: Int(node.size))
        let count = try bytes.withUnsafeMutableBytes { try readFully(file.number, into: $0, at: 0, label: "test.read") }
        return String(decoding: bytes[..<count], as: UTF8.self)
    }

    /// What stands in the way, for whoever reads a failure.
    func remains() throws -> String {
        try index.read { transaction throws(Failure) in
            var lines: [String] = []
            for pending in try transaction.allPending(limit: 50) {
                var line = "\(pending.subject) attempts \(pending.attempts) \(pending.message ?? "")"
                switch pending.subject {
                case .entry(let id):
                    if let entry = try transaction.entry(id) {
                        line += " \(entry.parent)/\(entry.name.display) \(entry.identifier?.rawValue ?? "new")"
                        if let identifier = entry.identifier, let synced = try transaction.synced(identifier)?.item {
                            line += " was \(synced.parent?.rawValue ?? "")/\(synced.name.display)"
                        }
                    }
                case .deletion(let identifier):
                    let synced = try transaction.synced(identifier)?.item
                    line += " was \(synced?.parent?.rawValue ?? "")/\(synced?.name.display ?? "")"
                }
                lines.append(line)
            }
            for (_, identifier, state) in try transaction.divergences(after: 0, limit: 50) {
                lines.append("differs: \(identifier.rawValue) \(state)")
            }
            lines += try tree(of: .root, "", transaction)
            return lines.joined(separator: "\n")
        }
    }

    private func tree(
        of folder: NodeID, _ path: String, _ transaction: borrowing Transaction
    ) throws(Failure) -> [String] {
        var lines: [String] = []
        for entry in try transaction.children(of: folder) {
            guard let node = try transaction.node(entry.node) else { continue }
            var line = "\(path)\(entry.name.display) entry \(entry.id) node \(node.id) \(node.kind) \(node.content)"
            line += " \(entry.identifier?.rawValue ?? "new")"
            if let identifier = entry.identifier {
                let agreed = try transaction.synced(identifier)?.item
                line += " was \(agreed?.parent?.rawValue ?? "")/\(agreed?.name.display ?? "")"
            }
            lines.append(line)
            lines += try tree(of: node.id, "\(path)\(entry.name.display)/", transaction)
        }
        return lines
    }
}

/// A minute, and not only of waiting for a thread: beside hundreds of other tests nothing may come to its turn for as long.
private struct Patience {
    private let deadline = SystemClock().uptime() + .seconds(60)
    private var rounds = 0

    mutating func isLeft() -> Bool {
        rounds += 1
        return rounds < 500 || SystemClock().uptime() < deadline
    }
}
