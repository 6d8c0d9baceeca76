import Logging
import PromiseControl
import PromiseCoordination
import PromiseCore
import Synchronization

import PromiseDomain
import PromiseFilesystem

/// Answers the control API from a small tree in memory, and remembers what it was asked.
final class FakeService: ControlService {
    struct State {
        var calls: [String] = []
        var nodes: [[[UInt8]]: UInt64] = [[]: 1]
        var failure: Failure?
        var pending: [PendingWork] = []
        /// Called at the end of an unmount, as the end of the mount wakes the daemon.
        var unmounted: (@Sendable () -> Void)?
        /// The last query, as the service has it.
        var asked: QueryRequest?
        /// Live queries have something to tell at any time.
        var tellsWithoutEnd = false
        /// Of every presenter.
        var presenterEvents: [@Sendable (Coordinator.PresenterEvent) -> Bool] = []
    }

    let state = Mutex(State())
    let trace = RequestTrace()
    let keyValues: Values
    let documents: DocumentServices? = nil
    /// Nothing takes any time.
    let isQuick: Bool

    /// Without a folder no value can be kept.
    init(isQuick: Bool = false, values folder: String = "/proc/nothing") {
        self.isQuick = isQuick
        keyValues = Values(
            folder: Array(folder.utf8), needs: Values.Needs(account: "fake", objects: { nil }, isOnline: { false }),
            logger: Logger(label: "fake"))
    }

    func pause(_ time: Duration) async throws { try await Task.sleep(for: isQuick ? .zero : time) }

    func add(_ path: [[UInt8]], node: UInt64) { state.withLock { $0.nodes[path] = node } }
    func tellPresenter(_ news: Notice) {
        let events = state.withLock { $0.presenterEvents }
        for tell in events { _ = tell(.tell(news)) }
    }
    func tellWithoutEnd() { state.withLock { $0.tellsWithoutEnd = true } }
    func fail(_ failure: Failure?) { state.withLock { $0.failure = failure } }
    func setPending(_ count: Int) {
        let work = PendingWork(
            kind: .upload, node: NodeID(2), path: [FileName("a")!], isRunning: false, size: 5, progress: nil, since: .zero,
            attempts: 2,
            error: "no line")
        state.withLock { $0.pending = Array(repeating: work, count: count) }
    }
    var calls: [String] { state.withLock { $0.calls } }

    private func note(_ call: String) throws(Failure) {
        let failure = state.withLock { state in
            if !isQuick { state.calls.append(call) }
            return state.failure
        }
        if let failure { throw failure }
    }

    func status() async -> DomainStatus {
        DomainStatus(
            name: "fake", provider: "folder:/x", capabilities: ["ranges"], mountPoint: Array("/m".utf8) + [0xFF],
            stateFolder: Array("/s".utf8),
            processID: 42, connection: .offline, connectionMessage: "no line", transport: "device", hasPassthrough: false,
            passthroughMessage: "not root", isReadOnly: false, nodes: 3, placeholders: 2, pending: 1, failing: 0, uploading: 0,
            downloading: 0, bytesFetched: 0, bytesUploaded: .max, cacheBytes: 9, cacheLimit: nil, quotaTotal: nil,
            quotaAvailable: nil,
            openFiles: 0)
    }

    func node(at path: [FileName]) async throws(Failure) -> NodeID {
        guard let node = state.withLock({ $0.nodes[path.map(\.bytes)] }) else {
            throw Failure(.notFound, "there is no such item")
        }
        return NodeID(node)
    }

    func item(at path: [FileName]) async throws(Failure) -> NamedItem { NamedItem(node: try await node(at: path)) }

    func information(of item: NamedItem) throws(Failure) -> ItemInformation {
        let node = item.node
        try note("information \(node)")
        let path = state.withLock { state in state.nodes.first { $0.value == node.rawValue }?.key }
        guard let path else { throw Failure(.notFound, "there is no such node") }
        return ItemInformation(
            node: node, path: path.map { FileName(trusted: $0) }, kind: .link, size: 3, localBytes: 0, mode: 0o777, owner: 1,
            group: 2,
            accessTime: .zero, modificationTime: Timestamp(nanoseconds: -1), changeTime: .zero, birthTime: .zero, links: 1,
            identifier: ItemIdentifier("id"), version: ContentVersion("v1"), state: .placeholder, pin: .onlineOnly, progress: nil,
            error: nil,
            isConflict: false, linkTarget: [0x61, 0xFE])
    }

    func fetch(_ node: NodeID, progress: @escaping @Sendable (FetchProgress) -> Void) async throws(Failure) -> FetchProgress {
        try note("fetch \(node)")
        var now = FetchProgress(filesDone: 0, filesTotal: 1, bytesDone: 0, bytesTotal: 100, failures: [])
        for step in 1...4 {
            now.bytesDone = UInt64(step) * 25
            progress(now)
            do { try await pause(.milliseconds(60)) } catch {
                state.withLock { $0.calls.append("cancelled \(node)") }
                throw Failure(.interrupted, "cancelled")
            }
        }
        now.filesDone = 1
        return now
    }

    func evict(_ node: NodeID, purpose: Purpose?) async throws(Failure) -> EvictionReport {
        try note("evict \(node)")
        let kept = KeptItem([FileName([0xFF])!], .pinned, isAsked: node.rawValue == 2)
        return EvictionReport(evicted: 1, bytesFreed: 10, kept: [kept])
    }

    func setPin(_ pin: Pin, of node: NodeID) async throws(Failure) -> PinReport {
        try note("pin \(node) \(pin.name)")
        return PinReport(items: 2, failures: [(path: [FileName([0xFE])!], failure: Failure(.refused, "not yours"))])
    }

    func excluded(below node: NodeID?) throws(Failure) -> [PendingWork] { [] }

    func pending(below node: NodeID?) throws(Failure) -> PendingList {
        try note("pending \(node?.description ?? "all")")
        var list = PendingList()
        list.items = state.withLock { $0.pending }
        return list
    }

    func setPaused(_ isPaused: Bool) async throws(Failure) { try note("paused \(isPaused)") }
    func setLimits(_ change: LimitsChange) async throws(Failure) { try note("limits \(change)") }

    func stepPending() async throws(Failure) -> PendingWork? { nil }

    func synchronize(below node: NodeID?, wait: Bool, timeout: Duration?) async throws(Failure) {
        try note("sync \(node?.description ?? "all") \(wait) \(timeout?.nanoseconds ?? -1)")
        if wait {
            do { try await pause(.milliseconds(150)) } catch {
                state.withLock { $0.calls.append("cancelled sync") }
                throw Failure(.interrupted, "cancelled")
            }
            if let timeout, timeout < .seconds(1) { throw Failure(.timedOut, "1 item is left") }
        }
    }

    func verify(repair: Bool, provider: Bool) async throws(Failure) -> VerifyReport {
        try note("verify \(repair) \(provider)")
        return VerifyReport(problems: ["a node has no name"], repaired: repair ? ["a node has no name"] : [], nodes: 7)
    }

    func restart() -> Failure { Failure(.notSupported, "there is no holder") }

    func unmount(wait: Bool, timeout: Duration?, lazy: Bool) async throws(Failure) -> Int {
        try note("unmount \(wait) \(timeout?.nanoseconds ?? -1) \(lazy)")
        let (count, unmounted) = state.withLock { ($0.pending.count, $0.unmounted) }
        unmounted?()
        return count
    }
}
