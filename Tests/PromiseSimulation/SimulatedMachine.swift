import Logging
import PromiseContent
import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseProvider
import PromiseSync
import PromiseSystem
import Synchronization

typealias Index = PromiseIndex.Index

/// A machine: its index, its content and its file system, without a kernel; what a kernel would ask is asked
/// here. It may be killed at any moment, and another one goes on with what it left on the disk.
///
/// Unchecked, as only the simulation's thread touches it.
final class SimulatedMachine: @unchecked Sendable {
    let name: String
    let simulation: Simulation
    let provider: StoreProvider
    private let folder: [UInt8]
    let index: Index
    let content: ContentStore
    let engine: SyncEngine
    let filesystem: FileSystem
    private(set) var pools: [BlockingPool] = []
    private(set) var lookouts: [Lookout] = []
    private var enginePump: EnginePump?
    /// When the engine has something to do by itself.
    private(set) var nextPump: Duration?
    private(set) var isDead = false
    /// Programs that work on it.
    var programCount = 0
    let caller = Caller(user: 0, group: 0, process: 0)

    /// `fetchSizes`: what is a large file, and what is fetched of it at a time.
    init(
        _ name: String, _ folder: [UInt8], _ provider: StoreProvider, _ simulation: Simulation,
        fetchSizes: FetchSizes = .usual
    ) throws {
        self.name = name
        self.folder = folder
        self.provider = provider
        self.simulation = simulation
        index = try SimulatedMachine.openIndex(in: folder, simulation.clock)
        content = try ContentStore(folder: folder + Array("/content".utf8), partCount: 8)
        try index.write { transaction throws(Failure) in
            try transaction.setSetting("root.identifier", StoreProvider.rootIdentifier.rawValue)
        }
        var configuration = SyncEngine.Configuration(
            uploadDelay: .milliseconds(200), pollInterval: .seconds(2), cacheLimit: nil,
            hostName: name)
        configuration.removalDelay = configuration.uploadDelay
        configuration.fetchSizes = fetchSizes
        configuration.backoff = Backoff(first: .milliseconds(500), longest: .seconds(8))
        var logger = Logger(label: name) { DecisionLog(machine: $0, simulation: simulation) }
        logger.logLevel = simulation.trace.isPrinted ? .trace : .critical
        let made = Mutex<[BlockingPool]>([])
        let madeLookouts = Mutex<[Lookout]>([])
        let workers = Workers(
            executor: simulation.tasks,
            makePool: { name, _ in
                let pool = BlockingPool(manual: name)
                made.withLock { $0.append(pool) }
                return pool
            },
            makeLookout: { name, clock in
                let lookout = Lookout(manual: name, clock: clock)
                madeLookouts.withLock { $0.append(lookout) }
                return lookout
            })
        engine = SyncEngine(
            index: index, content: content, provider: provider, clock: simulation.clock,
            rootIdentifier: StoreProvider.rootIdentifier, configuration: configuration,
            workers: workers,
            logger: logger)
        var behaviour = FileSystem.Configuration(
            requestDeadline: .seconds(1_000_000), domainName: name)
        // Where little is a large file, little is a large cut.
        if fetchSizes.smallFileMax < FetchSizes.usual.smallFileMax { behaviour.cutWithIndexMax = 0 }
        filesystem = FileSystem(
            index: index, content: content, engine: engine, clock: simulation.clock,
            configuration: behaviour, workers: workers, logger: logger)
        pools = made.withLock { $0 }
        lookouts = madeLookouts.withLock { $0 }
    }

    // A journal and a reserve of the usual size take longer to make than most schedules to run.
    static func openIndex(in folder: [UInt8], _ clock: VirtualClock) throws(Failure) -> Index {
        try Index(
            path: folder + Array("/index.sqlite".utf8), cacheCountMax: 1_000,
            journalByteCount: 512 << 10, reserveByteCount: 256 << 10, clock: clock)
    }

    /// How the one before ended, which has left its files.
    enum End { case kill, powerCut, order }

    func start(after end: End?) throws {
        if let end { try filesystem.recover(isUnclean: end != .order, hasPowerFailed: end == .powerCut) }
        enginePump = engine.startManually(observer: filesystem, isConnected: true)
        nextPump = simulation.clock.uptime()
        simulation.enter(self)
    }

    func isPumpDue(at now: Duration) -> Bool {
        guard let enginePump else { return false }
        return enginePump.hasMessages || nextPump.map { $0 <= now } ?? false
    }

    func pump() {
        guard let timeout = enginePump?.step() else {
            nextPump = nil
            return
        }
        nextPump = simulation.clock.uptime() + timeout
    }

    /// Nothing of it runs any more. What it has answered is on the disk; what it had asked for may still be
    /// done, and is answered to nobody.
    func kill() {
        isDead = true
        provider.isGone = true
        simulation.leave(self)
        enginePump = nil
        nextPump = nil
        for lookout in lookouts { lookout.end() }
        index.close()
    }

    /// As after an unmount.
    func endInOrder() throws(Failure) {
        filesystem.noteOpenWrites()
        try ContentAtEnd(index: index, content: content, clock: simulation.clock).bringToDisk()
        kill()
    }

    /// Whoever waits for an answer holds the machine in memory: when all is over nobody does.
    func giveUpCalls() {
        let calls = unanswered
        unanswered = [:]
        for giveUp in calls.values { giveUp() }
    }

    /// Nothing is pending and nothing differs. It may be looking: a store that tells nothing is polled.
    func isQuiet() throws -> Bool {
        let isDone = try index.read { transaction throws(Failure) in
            for pending in try transaction.allPending(limit: 1_000) {
                // Of what others have replaced before it came a part is missing, which is said, and for good.
                guard case .entry(let id) = pending.subject, let entry = try transaction.entry(id),
                    try !transaction.holes(of: entry.node).isEmpty, pending.message != nil
                else { return false }
            }
            return try transaction.divergences(limit: 1).isEmpty
        }
        return isDone && engine.uploadingCount == 0
    }

    // MARK: Calls

    private var callCount = 0
    private var unanswered: [Int: () -> Void] = [:]

    typealias Reply<Value> = @Sendable (Result<Value, Failure>) -> Void

    /// `stamping`: whose content the call has changed; its time is the simulation's before anybody can look.
    func call<Value: Sendable>(
        stamping changed: @escaping @Sendable (Value) -> NodeID? = { _ in nil },
        _ body: (@escaping Reply<Value>) -> ParkedRequest?
    ) async throws(Failure) -> Value {
        callCount += 1
        let number = callCount
        let result: Result<Value, Failure> = await withUnsafeContinuation { continuation in
            unanswered[number] = {
                continuation.resume(returning: .failure(Failure(.interrupted, "it is over")))
            }
            _ = body { [self] result in
                guard unanswered.removeValue(forKey: number) != nil else { return }
                continuation.resume(
                    returning: result.flatMap { value in
                        Result { () throws(Failure) in
                            if let node = changed(value) { try stamp(node) }
                            return value
                        }
                    })
            }
        }
        return try result.get()
    }

    /// In virtual time, as the kernel would in real time.
    func stamp(_ node: NodeID) throws(Failure) {
        let row = try index.read { transaction throws(Failure) in try transaction.node(node) }
        guard let row, row.content != .absent, let file = try? content.open(node, row.generation)
        else { return }
        do throws(SystemError) {
            try setTimes(
                file.number, access: nil, modification: simulation.timeOfWrite(),
                label: "simulation.stamp")
        } catch {
            throw Failure(error)
        }
    }

    func node(at path: [FileName]) async throws(Failure) -> NodeAttributes {
        var found = try filesystem.entry(of: .root).attributes
        for name in path {
            let parent = found.node
            let answer = try await call {
                filesystem.lookup(name, in: parent, caller: caller, reply: $0)
            }
            guard case .found(let entry) = answer else {
                throw Failure(.notFound, "there is no \(name)")
            }
            found = entry.attributes
        }
        return found
    }

    func folder(of path: [FileName]) async throws(Failure) -> (node: NodeID, name: FileName) {
        (try await node(at: path.dropLast()).node, path.last!)
    }

    func names(in folder: NodeID) async throws(Failure) -> [FileName] {
        let isListed = try index.read { transaction throws(Failure) in
            try transaction.node(folder)?.isPopulated ?? true
        }
        if !isListed {
            _ = try await call { (reply: @escaping Reply<Void>) in
                engine.list(folder, reply: reply)
                return nil
            }
        }
        return try index.read { transaction throws(Failure) in try transaction.children(of: folder)
        }.map(\.name)
    }

    struct OpenFile {
        var node: NodeID
        var handle: HandleID
    }

    func open(_ node: NodeID, flags: Int32) async throws(Failure) -> OpenFile {
        let opened = try await call(stamping: { _ in flags & 0o1000 != 0 ? node : nil }) {
            filesystem.open(node, OpenRequest(flags: flags), caller: caller, reply: $0)
        }
        return OpenFile(node: node, handle: opened.handle)
    }

    func create(_ path: [FileName]) async throws(Failure) -> OpenFile {
        let (parent, name) = try await folder(of: path)
        let made = try await call(stamping: { $0.entry.attributes.node }) {
            filesystem.create(
                name, in: parent, permissions: 0o644, opening: OpenRequest(flags: 2),
                caller: caller, reply: $0)
        }
        return OpenFile(node: made.entry.attributes.node, handle: made.opened.handle)
    }

    func write(
        _ bytes: [UInt8], to file: OpenFile, at offset: UInt64, isPage: Bool = false
    ) async throws(Failure) {
        _ = try await call(stamping: { _ in file.node }) { (reply: @escaping Reply<Int>) in
            bytes.withUnsafeBytes {
                filesystem.write(
                    FilePosition(node: file.node, handle: file.handle, offset: offset), $0,
                    clearsSetID: false,
                    isPageWrite: isPage, caller: caller, reply: reply)
            }
        }
    }

    func synchronize(_ file: OpenFile) async throws(Failure) {
        _ = try await call {
            filesystem.synchronize(file.node, handle: file.handle, dataOnly: false, reply: $0)
        }
    }

    func close(_ file: OpenFile) { filesystem.release(file.node, handle: file.handle) }

    func makeFolder(_ path: [FileName]) async throws(Failure) {
        let (parent, name) = try await folder(of: path)
        _ = try await call {
            filesystem.makeFolder(name, in: parent, permissions: 0o755, caller: caller, reply: $0)
        }
    }

    func makeLink(_ path: [FileName], to target: String) async throws(Failure) {
        let (parent, name) = try await folder(of: path)
        _ = try await call {
            filesystem.makeLink(
                name, in: parent, target: Array(target.utf8), caller: caller, reply: $0)
        }
    }

    /// `seeing`: gets what is replaced, right before it is, when nobody can write to it any more unseen.
    func rename(
        _ path: [FileName], to other: [FileName], isExchange: Bool = false,
        seeing: (NodeID) throws(Failure) -> Void = { _ in }
    ) async throws(Failure) {
        let (parent, name) = try await folder(of: path)
        let (newParent, newName) = try await folder(of: other)
        // What is listed is not waited for.
        for folder in [parent, newParent] { _ = try await names(in: folder) }
        if let replaced = try nodeNow(newName, in: newParent) { try seeing(replaced) }
        _ = try await call {
            filesystem.rename(
                name, in: parent, to: newName, in: newParent, flags: isExchange ? .exchange : [],
                caller: caller,
                reply: $0)
        }
    }

    /// `seeing`: as for `rename`.
    func unlink(_ path: [FileName], seeing: (NodeID) throws(Failure) -> Void) async throws(Failure)
    {
        let (parent, name) = try await folder(of: path)
        _ = try await names(in: parent)
        if let removed = try nodeNow(name, in: parent) { try seeing(removed) }
        _ = try await call { filesystem.unlink(name, in: parent, caller: caller, reply: $0) }
    }

    private func nodeNow(_ name: FileName, in parent: NodeID) throws(Failure) -> NodeID? {
        try index.read { transaction throws(Failure) in
            try transaction.entry(in: parent, named: name)?.node
        }
    }

    func removeFolder(_ path: [FileName]) async throws(Failure) {
        let (parent, name) = try await folder(of: path)
        _ = try await call { filesystem.removeFolder(name, in: parent, caller: caller, reply: $0) }
    }

    func evict(_ node: NodeID) throws(Failure) { _ = try engine.evict(node) }

    /// Brings the content of a file here and returns it.
    func contents(of id: NodeID) async throws(Failure) -> [UInt8] {
        _ = try await call { (reply: @escaping Reply<Void>) in
            _ = engine.hydrator.hydrate(id, reply: reply)
            return nil
        }
        return try localContents(of: id) ?? []
    }

    /// What is here of a file's content; nil when it is a placeholder.
    func localContents(of id: NodeID) throws(Failure) -> [UInt8]? {
        let node = try index.read { transaction throws(Failure) in try transaction.node(id) }
        guard let node, node.kind == .file, node.content != .absent else { return nil }
        let file = try content.open(node.id, node.generation, writable: false)
        let size: UInt64
        do throws(SystemError) {
            size = try FileStatus.of(descriptor: file.number, label: "simulation.size").size
        } catch {
            throw Failure(error)
        }
        return try SimulatedMachine.readBytes(file.number, ByteRange(0, size)).get()
    }
}
