import Logging
import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem
import Synchronization

/// Tells programs that watch in views by inotify what is done outside of them: on the mount, in
/// other views, by the provider. As `Echoes` does on the mount, with a process in the namespace of
/// each view in which somebody watches.
///
/// One thread for all views, from the first change on; nobody waits for it.
final class ViewEchoes: Sendable {
    private static let waitingMax = 16_384
    private static let gatheringTime = Duration.milliseconds(20)
    /// Looking who watches takes no more than a twentieth of a processor.
    private static let restFactor = 20

    private struct Member {
        let view: WatchedView
        let caller: any EchoCaller

        var isInQuestion: Bool { view.hasAsked.isRaised || view.isWatched.isRaised }
    }

    /// A change, and the view that has made it, whose kernel knows.
    private struct Waiting {
        var change: TreeChange
        var origin: UInt16?
    }

    private struct State {
        var members: [UInt16: Member] = [:]
        /// Of views that have ended.
        var left: [any EchoCaller] = []
        var waiting: [Waiting] = []
        var isOver = false
        var hasThread = false
    }

    private let state = Monitor(State())
    private let wanted = Flag()
    private let clock: any TimeSource
    private let logger: Logger

    init(clock: any TimeSource, logger: Logger) {
        self.clock = clock
        self.logger = logger
    }

    /// Somebody may watch in a view. What is changed while nobody can is not told.
    var isWanted: Bool { wanted.isRaised }

    /// By a view that was asked for something.
    func mayBeWatched() { wanted.raise() }

    func join(_ view: WatchedView, _ caller: any EchoCaller) {
        state.update { state in
            guard !state.isOver else { return }
            state.members[view.inner.launch.number] = Member(view: view, caller: caller)
        }
    }

    func leave(_ view: WatchedView) {
        state.update { state in
            guard let member = state.members.removeValue(forKey: view.inner.launch.number) else {
                return
            }
            if state.hasThread { state.left.append(member.caller) }
            if state.members.isEmpty { wanted.lower() }
        }
    }

    /// From any thread; returns at once. `origin`: the number of the view that has done it.
    func add(_ changes: [TreeChange], by origin: UInt16? = nil) {
        guard isWanted else { return }
        let isFirst = state.update { state in
            guard !state.isOver, !state.members.isEmpty else { return false }
            let room = Self.waitingMax - state.waiting.count
            state.waiting += changes.prefix(room).map { Waiting(change: $0, origin: origin) }
            defer { state.hasThread = true }
            return !state.hasThread
        }
        guard isFirst else { return }
        OwnedThread(name: "view-echoes") { [self] in
            // Whoever stops this waits for the thread; there is never a second one, and what came at its end is told.
            repeat { work() } while state.update { state in
                state.hasThread = !state.isOver && !state.members.isEmpty && !state.waiting.isEmpty
                return state.hasThread
            }
        }.detach()
    }

    /// What programs watch in views.
    func watchedNodes() -> WatchedNodes {
        let devices = state.withLock { state in
            state.members.values.filter(\.isInQuestion).compactMap { $0.caller.deviceNumber }
        }
        return WatchedNodes.find(on: devices).reduce(into: WatchedNodes()) { all, found in
            all.nodes.formUnion(found.nodes)
        }
    }

    /// Returns when nothing is told any more and the index is not asked.
    func stop() {
        state.update { state in
            state.isOver = true
            state.waiting = []
            state.members = [:]
        }
        wanted.lower()
        _ = state.wait { $0.hasThread ? nil : true }
    }

    // MARK: The thread

    private func work() {
        var running: [ObjectIdentifier: any EchoCaller] = [:]
        defer { for caller in running.values { caller.stop() } }
        while hasWork() {
            if rest(Self.gatheringTime) { return }
            let (left, waiting, members) = state.withLock { state in
                defer { (state.left, state.waiting) = ([], []) }
                return (state.left, state.waiting, Array(state.members.values))
            }
            for caller in left {
                caller.stop()
                running[ObjectIdentifier(caller)] = nil
            }
            let cost = tell(waiting, members, &running)
            if rest(cost * Self.restFactor) { return }
        }
    }

    /// Ends the thread when the last view has ended.
    private func hasWork() -> Bool {
        state.wait { state in
            if state.isOver || state.members.isEmpty && state.left.isEmpty { return false }
            return state.waiting.isEmpty && state.left.isEmpty ? nil : true
        } ?? false
    }

    /// True when the end came meanwhile.
    private func rest(_ time: Duration) -> Bool {
        state.wait(timeout: time) { $0.isOver ? true : nil } ?? false
    }

    /// Returns what looking who watches has cost.
    private func tell(
        _ waiting: [Waiting], _ members: [Member], _ running: inout [ObjectIdentifier: any EchoCaller]
    ) -> Duration {
        if waiting.isEmpty { return .zero }
        let start = clock.uptime()
        var devices: [(member: Member, device: DeviceNumber)] = []
        for member in members where member.isInQuestion {
            // Nothing to be told there.
            let number = member.view.inner.launch.number
            guard waiting.contains(where: { $0.origin != number }) else { continue }
            // In this order: nothing that is done meanwhile may be missed.
            member.view.isWatched.raise()
            member.view.hasAsked.lower()
            if let device = member.caller.deviceNumber { devices.append((member, device)) }
        }
        let found = WatchedNodes.find(on: devices.map(\.device))
        let cost = clock.uptime() - start
        for (position, (member, _)) in devices.enumerated() {
            let view = member.view
            let key = ObjectIdentifier(member.caller)
            if found[position].isEmpty {
                view.isWatched.lower()
                if running.removeValue(forKey: key) != nil { member.caller.stop() }
                view.table.process = member.caller.process
                continue
            }
            running[key] = member.caller
            let changes = waiting.filter { $0.origin != view.inner.launch.number }.map(\.change)
            ViewTelling(view, member.caller, found[position], logger).tell(changes.condensed)
        }
        rememberWhetherWanted()
        return cost
    }

    private func rememberWhetherWanted() {
        let isAny = { [state] in
            state.withLock { state in state.members.values.contains { $0.isInQuestion } }
        }
        if isAny() { return }
        wanted.lower()
        // Asked meanwhile.
        if isAny() { wanted.raise() }
    }
}

/// Makes the calls that changes would have been in one view.
private struct ViewTelling {
    let view: WatchedView
    let caller: any EchoCaller
    let watched: WatchedNodes
    let logger: Logger

    init(
        _ view: WatchedView, _ caller: any EchoCaller, _ watched: WatchedNodes, _ logger: Logger
    ) {
        self.view = view
        self.caller = caller
        self.watched = watched
        self.logger = logger
    }

    func tell(_ changes: [TreeChange]) {
        let sight = ViewSight(view.inner)
        var shown: [ViewSight.Shown] = []
        for change in withoutRepetitions(changes) {
            trying { () throws(Failure) in shown += try sight.shown(change) }
        }
        // That these were written to is part of that.
        let made = Set(shown.compactMap(\.madeNode))
        for one in shown {
            if case .modified(_, let node, _) = one, made.contains(node.id) { continue }
            // What cannot go there now is not tried again for each of thousands.
            guard trying({ () throws(Failure) in try tell(one) }) else { return }
        }
    }

    @discardableResult private func trying(_ body: () throws(Failure) -> Void) -> Bool {
        do throws(Failure) {
            try body()
            return true
        } catch {
            logger.debug(
                "a change was not told to who watches in a view",
                metadata: ["reason": "\(error.message)"])
            return false
        }
    }

    private struct Modification: Hashable {
        var node: NodeID
        var content: Bool
    }

    /// Of the same that became of one file several times, the last.
    private func withoutRepetitions(_ changes: [TreeChange]) -> [TreeChange] {
        var seen: Set<Modification> = []
        let kept = changes.reversed().filter { change in
            guard case .modified(let node, let content) = change else { return true }
            return seen.insert(Modification(node: node, content: content)).inserted
        }
        return kept.reversed()
    }

    private func isWatched(_ node: Node, _ places: EchoPlace...) -> Bool {
        watched.contains(ViewNode.tree(node.id).shown)
            || places.contains { watched.contains($0.parent) }
    }

    private func tell(_ shown: ViewSight.Shown) throws(Failure) {
        switch shown {
        case .made(let place, let node):
            guard isWatched(node, place) else { return }
            let make = EchoCall.make(
                place, kind: node.kind, permissions: node.mode, target: node.target ?? [])
            guard try echo(.appeared(place.inView), make, node) == 0 else { return }
            // Who writes still closes it later.
            if node.kind == .file, !node.isOpenForWriting {
                _ = try echo(.touched, .openAndClose(place), node)
            }
        case .gone(let place, let node):
            guard isWatched(node, place) else { return }
            let remove = EchoCall.remove(place, isFolder: node.kind == .folder)
            _ = try echo(.gone(place.inView, node.id), remove, node)
        case .moved(let from, let to, let node):
            guard isWatched(node, from, to) else { return }
            _ = try echo(
                .moved(node.id, from: from.inView, to: to.inView), .move(from, to: to), node)
        case .modified(let place, let node, let content):
            guard isWatched(node, place) else { return }
            let touch = EchoCall.setTimes(place, to: node.modificationTime, both: !content)
            _ = try echo(.touched, touch, node)
            if content, node.kind == .file, !node.isOpenForWriting {
                _ = try echo(.touched, .openAndClose(place), node)
            }
        }
    }

    private func echo(
        _ kind: Echo.Kind, _ call: EchoCall, _ node: Node
    ) throws(Failure) -> Int32 {
        let isReady = caller.start()
        view.table.process = caller.process
        guard isReady else { throw Failure(.notSupported, "promisefs-echo cannot go there now") }
        view.table.begin(Echo(kind), gone: node)
        defer { view.table.end() }
        return caller.call(call)
    }
}

extension ViewSight.Shown {
    /// Of what is there now, and is written no more.
    fileprivate var madeNode: NodeID? {
        if case .made(_, let node) = self, !node.isOpenForWriting { node.id } else { nil }
    }
}

extension EchoPlace {
    /// By the numbers that the view's kernel has.
    fileprivate var inView: TreePlace { TreePlace(name, in: parent) }
}
