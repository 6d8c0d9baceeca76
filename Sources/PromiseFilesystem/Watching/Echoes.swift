import Glibc
import Logging
import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem
import Synchronization

/// Tells programs that watch the mount by inotify what the provider changed, which the kernel does not: it raises events for
/// calls of programs only. So the call that a change would have been is made on the mount, by a process of its own
/// (`EchoCaller`), and answered without doing anything (`EchoTable`).
///
/// A thread of its own, from the first change on, looks who watches and does that for what is watched; nobody waits for it.
final class Echoes: Sendable {
    let table = EchoTable()
    let views: ViewEchoes

    /// Changes that wait; of more, the newest are not told. Programs that watch have no more room themselves
    /// (fs.inotify.max_queued_events is 16,384).
    private static let waitingMax = 16_384
    /// So that what belongs together is looked at together.
    private static let gatheringTime = Duration.milliseconds(20)
    /// Looking who watches takes no more than a twentieth of a processor.
    private static let restFactor = 20
    private static let programName = "promisefs-echo"
    /// How often a name is tried that somebody else has looked up meanwhile.
    private static let tries = 3

    private struct State {
        var waiting: [TreeChange] = []
        var connection: MountConnection?
        var hasThread = false
        var hasLeft = true
    }

    private let state = Monitor(State())
    private let index: Index
    private let clock: any TimeSource
    private let logger: Logger

    init(index: Index, clock: any TimeSource, logger: Logger) {
        self.index = index
        self.clock = clock
        self.logger = logger
        views = ViewEchoes(clock: clock, logger: logger)
    }

    func begin(_ connection: MountConnection) {
        guard connection.echoes != nil else {
            logger.info(
                "programs that watch by inotify do not hear of remote changes: read-only, or no promisefs-echo beside this")
            return
        }
        state.withLock { $0.connection = connection }
    }

    /// Before a successor serves requests: what is left of the process of the daemon before it may still make its last call.
    func refuseStrays() {
        let strays = ProcessTable.named(Self.programName)
        table.setStrays(strays)
        guard !strays.isEmpty else { return }
        OwnedThread(name: "echo-strays") { [table] in
            while true {
                usleep(100_000)
                let left = strays.intersection(ProcessTable.named(Self.programName))
                table.setStrays(left)
                if left.isEmpty { return }
            }
        }.detach()
    }

    /// What programs watch by inotify(7) or fanotify(7). From any thread; some milliseconds.
    func watchedNodes() -> WatchedNodes {
        var watched = state.withLock { $0.connection?.echoes }?.watchedNodes() ?? WatchedNodes()
        if views.isWanted { watched.nodes.formUnion(views.watchedNodes().nodes) }
        return watched
    }

    /// From any thread; returns at once. `view`: the number of the one that has made them.
    func add(_ changes: [TreeChange], by view: UInt16? = nil) {
        views.add(changes, by: view)
        let isFirst = state.update { state in
            guard state.connection != nil else { return false }
            state.waiting += changes.prefix(Self.waitingMax - state.waiting.count)
            defer { state.hasThread = true }
            if !state.hasThread { state.hasLeft = false }
            return !state.hasThread
        }
        guard isFirst else { return }
        OwnedThread(name: "echoes") { [self] in
            work()
            state.update { $0.hasLeft = true }
        }.detach()
    }

    /// Returns when nothing is told any more and the index is not asked.
    func stop() {
        views.stop()
        state.update { state in
            state.connection = nil
            state.waiting = []
        }
        _ = state.wait { $0.hasLeft ? true : nil }
    }

    private func work() {
        var echoes: (any EchoCaller)?
        defer { echoes?.stop() }
        while let connection = next() {
            guard let caller = connection.echoes else { return }
            echoes = caller
            if rest(Self.gatheringTime) { return }
            let changes = state.withLock { state in
                defer { state.waiting = [] }
                return state.waiting
            }
            let start = clock.uptime()
            let watched = caller.watchedNodes()
            let cost = clock.uptime() - start
            if watched.isEmpty {
                caller.stop()
                table.process = caller.process
            } else {
                tell(changes.condensed, watched, caller, connection.notifier)
            }
            if rest(cost * Self.restFactor) { return }
        }
    }

    /// Nil at the end.
    private func next() -> MountConnection? {
        let found: MountConnection?? = state.wait { state in
            guard let connection = state.connection else { return .some(nil) }
            return state.waiting.isEmpty ? nil : .some(connection)
        }
        return found ?? nil
    }

    /// True when the end came meanwhile.
    private func rest(_ time: Duration) -> Bool { state.wait(timeout: time) { $0.connection == nil ? true : nil } ?? false }

    private var isOver: Bool { state.withLock { $0.connection == nil } }

    // MARK: Telling

    private func tell(
        _ changes: [TreeChange], _ watched: WatchedNodes, _ caller: any EchoCaller, _ notifier: any KernelNotifier
    ) {
        // What the kernel remembers of before goes first.
        waitUntilTold(notifier)
        for change in changes {
            if isOver { return }
            do throws(Failure) {
                try tell(change, watched, caller, notifier)
            } catch {
                logger.debug("a change was not told to who watches", metadata: ["reason": "\(error.message)"])
            }
        }
    }

    private func waitUntilTold(_ notifier: any KernelNotifier) {
        let noted = notifier.progress.noted
        let start = clock.uptime()
        while notifier.progress.told < noted, clock.uptime() - start < .seconds(1), !rest(.milliseconds(1)) {}
    }

    private func tell(
        _ change: TreeChange, _ watched: WatchedNodes, _ caller: any EchoCaller, _ notifier: any KernelNotifier
    ) throws(Failure) {
        switch change {
        case .appeared(let place):
            guard let (node, shown) = try shown(place), watched.contains(place.parent) || watched.contains(node.id) else {
                return
            }
            let make = EchoCall.make(shown, kind: node.kind, permissions: node.mode, target: node.target ?? [])
            guard try echo(.appeared(place), make, caller) == 0 else { return }
            if node.kind == .file { _ = try echo(.touched, .openAndClose(shown), caller) }
        case .gone(let place, let node):
            guard watched.contains(place.parent) || watched.contains(node.id), let target = try located(place) else { return }
            try tryAgain(notifier, [place]) { () throws(Failure) in
                try echo(.gone(place, node.id), .remove(target, isFolder: node.kind == .folder), gone: node, caller)
            }
        case .moved(let node, let from, let to):
            guard watched.contains(from.parent) || watched.contains(to.parent) || watched.contains(node),
                let (found, target) = try shown(to), found.id == node, let source = try located(from)
            else { return }
            try tryAgain(notifier, [from, to]) { () throws(Failure) in
                try echo(.moved(node, from: from, to: to), .move(source, to: target), caller)
            }
        case .modified(let id, let content):
            for place in try names(of: id) where watched.contains(id) || watched.contains(place.parent) {
                guard let (node, shown) = try shown(place) else { continue }
                _ = try echo(.touched, .setTimes(shown, to: node.modificationTime, both: !content), caller)
                if content, node.kind == .file { _ = try echo(.touched, .openAndClose(shown), caller) }
            }
        }
    }

    /// A name that is gone, and that somebody has looked for since, is known to the kernel as absent, which it has to forget.
    private func tryAgain(
        _ notifier: any KernelNotifier, _ places: [TreePlace], _ body: () throws(Failure) -> Int32
    ) throws(Failure) {
        for _ in 0..<Self.tries {
            guard try body() == ENOENT, !isOver else { return }
            for place in places { notifier.invalidateEntry(place.name, in: place.parent) }
            waitUntilTold(notifier)
        }
    }

    private func echo(
        _ kind: Echo.Kind, _ call: EchoCall, gone: Node? = nil, _ caller: any EchoCaller
    ) throws(Failure) -> Int32 {
        let isReady = caller.start()
        table.process = caller.process
        guard isReady else { throw Failure(.notSupported, "promisefs-echo cannot be started now") }
        table.begin(Echo(kind), gone: gone)
        defer { table.end() }
        return caller.call(call)
    }

    // MARK: What the index says now

    private func located(_ place: TreePlace) throws(Failure) -> EchoPlace? {
        let path = try index.read { transaction throws(Failure) in try transaction.path(of: place.parent) }
        return path.map { EchoPlace(parent: place.parent, path: $0, name: place.name) }
    }

    private func shown(_ place: TreePlace) throws(Failure) -> (Node, EchoPlace)? {
        let node: Node? = try index.read { transaction throws(Failure) in
            guard let entry = try transaction.entry(in: place.parent, named: place.name) else { return nil }
            return try transaction.node(entry.node)
        }
        guard let node, let located = try located(place) else { return nil }
        return (node, located)
    }

    private func names(of id: NodeID) throws(Failure) -> [TreePlace] {
        try index.read { transaction throws(Failure) in
            try transaction.entries(of: id).map { TreePlace($0.name, in: $0.parent) }
        }
    }
}
