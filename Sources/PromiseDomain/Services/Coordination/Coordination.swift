package import PromiseCoordination
package import PromiseCore
package import PromiseFilesystem
import PromiseIndex
import PromiseSync
import PromiseSystem

/// Claims and presenters of programs that coordinate, by the control API.
package struct Coordination: Sendable {
    let tree: DomainTree
    let hub: QueryHub
    let mountPoint: [UInt8]
    let clock: any TimeSource

    private var index: Index { tree.index }
    private var filesystem: FileSystem { tree.filesystem }

    /// How long a claim to write waits for programs that have the item open for writing and know
    /// nothing of claims.
    private static let openWriterLimit = Duration.seconds(5)
    /// How long one command to evict waits for claims and presenters in all: longer than a
    /// presenter may take for its answer.
    package static let evictionPatience = Duration.seconds(10)

    private static let lookCountMax = 5

    package var isActive: Bool { filesystem.coordinator.isActive }

    /// Waits for a claim. Throws `.notFound`, `.timedOut`, and `.busy` where waiting would never
    /// end; `.interrupted` when the task is cancelled, and then there is no claim.
    package func claim(_ request: ClaimRequest) async throws(Failure) -> GrantedClaim {
        filesystem.coordinator.beginEntering()
        defer { filesystem.coordinator.endEntering() }
        let position = try lastChange()
        let finder = ClaimFinder(
            tree: tree, mountPoint: mountPoint, isConfined: request.isConfined)
        var intents: [Intent] = []
        var places: [Int: TreePlace] = [:]
        var names: [Int: AskedName] = [:]
        var others: [Intent] = []
        for (number, item) in request.items.enumerated() {
            let found = try await finder.target(of: item.path, item.access)
            intents.append(found.intent)
            if found.isAboutPlace { places[number] = found.place }
            if let name = found.name { names[number] = name }
            others += found.otherNames
        }
        let claim = try await claim(intents + others, request, from: position)
        do throws(Failure) {
            if !request.isPreparation {
                try await waitForWriters(of: claim, request.items.map(\.access))
            }
        } catch {
            release(claim)
            throw error
        }
        let nodes = Array(filesystem.coordinator.nodes(of: claim).prefix(intents.count))
        let granted = GrantedClaim(id: claim, nodes: nodes, places: places, names: names)
        await KernelSight(index: index, filesystem: filesystem, clock: clock).settle(granted)
        return granted
    }

    /// A claim of the daemon's own on one item, for somebody of this purpose.
    func claim(
        node: NodeID, _ access: Access, purpose: Purpose?, timeout: Duration
    ) async throws(Failure) -> GrantedClaim {
        filesystem.coordinator.beginEntering()
        defer { filesystem.coordinator.endEntering() }
        let position = try lastChange()
        let chains = try index.read { transaction throws(Failure) in
            node == .root ? [[]] : try transaction.foldersOfNames(node)
        }
        guard !chains.isEmpty else { throw Failure(.stale, "the item is gone") }
        let intents = chains.map { Intent(node: node, folders: $0, access: access) }
        let request = ClaimRequest(items: [], purpose: purpose, process: 0, timeout: timeout)
        return GrantedClaim(
            id: try await claim(intents, request, isOwn: true, from: position), nodes: [node])
    }

    /// `position`: of the change feed, before the items were looked for.
    private func claim(
        _ intents: [Intent], _ request: ClaimRequest, isOwn: Bool = false, from position: Int64
    ) async throws(Failure) -> ClaimID {
        let (outcomes, continuation) = AsyncStream.makeStream(of: Coordinator.ClaimOutcome.self)
        let id = try filesystem.coordinator.claim(
            intents, purpose: request.purpose, within: request.within,
            isPreparation: request.isPreparation,
            process: request.process, isOwn: isOwn,
            patience: request.whenOverdue.map { _ in Coordinator.answerLimit },
            timeout: request.timeout, since: position + 1
        ) { id, outcome in
            if case .overdue = outcome { return request.whenOverdue?(id) ?? () }
            continuation.yield(outcome)
            continuation.finish()
        }
        // Claims follow what is moved, also while they were being entered.
        hub.wake(from: position)
        do throws(Failure) {
            try filesystem.settlePlaces(of: intents.map(\.settled))
            switch await outcomes.first(where: { _ in true }) {
            case .granted, .overdue: break
            case .refused(.timedOut):
                throw Failure(.timedOut, "others did not let go of the items in time")
            case .refused(.deadlock):
                throw Failure(
                    .busy,
                    "this claim would wait for somebody who waits for a claim of the same purpose")
            case .refused(.notPrepared):
                throw Failure(.busy, "a program that shows an item could not save it")
            case .ended: throw Failure(.interrupted, "the domain is being unmounted")
            case nil: throw Failure(.interrupted, "the claim was given up")
            }
        } catch {
            filesystem.coordinator.release(id)
            throw error
        }
        return id
    }

    /// Where the items of a claim are now. Throws `.gone` when one is no more, or the folder of a
    /// place.
    package func paths(of claim: GrantedClaim) throws(Failure) -> [[FileName]] {
        try index.read { transaction throws(Failure) in try claim.paths(transaction) }
    }

    package func release(_ claim: ClaimID) { filesystem.coordinator.release(claim) }

    /// Adds a presenter of an item. `events` hears everything in order, from any thread, and must
    /// not wait; it returns whether anybody listens still.
    package func present(
        _ path: [FileName], purpose: Purpose?,
        events: @escaping @Sendable (Coordinator.PresenterEvent) -> Bool
    ) async throws(Failure) -> (id: PresenterID, node: NodeID) {
        filesystem.coordinator.beginEntering()
        defer { filesystem.coordinator.endEntering() }
        let position = try lastChange()
        let (item, chains) = try await shown(path)
        let node = filesystem.coordinator.current(item.node, after: position + 1)
        let id = try filesystem.coordinator.addPresenter(
            of: node, named: item.entry, chains: chains, purpose: purpose, since: position + 1,
            handler: events)
        hub.wake(from: position)
        let intents = chains.map { Intent(node: node, folders: $0, access: .read([])) }
        try filesystem.settlePlaces(of: intents)
        return (id, node)
    }

    package func removePresenter(_ id: PresenterID) { filesystem.coordinator.removePresenter(id) }

    package func answered(_ number: UInt64, by presenter: PresenterID, hasFailed: Bool) -> Bool {
        filesystem.coordinator.answered(number, by: presenter, hasFailed: hasFailed)
    }

    // MARK: - Below

    private func lastChange() throws(Failure) -> Int64 {
        try index.read { transaction throws(Failure) in try transaction.lastChange() }
    }

    /// An item, with the folders above each of its names. A save may give its name to another one
    /// between the two looks.
    private func shown(_ path: [FileName]) async throws(Failure) -> (NamedItem, [[NodeID]]) {
        for _ in 0..<Coordination.lookCountMax {
            let item = try await tree.item(at: path)
            let chains = try index.read { transaction throws(Failure) in
                item.node == .root ? [[]] : try transaction.foldersOfNames(item.node)
            }
            if !chains.isEmpty { return (item, chains) }
        }
        throw Failure(.stale, "the item is gone")
    }

    /// A program that opened an item before the claim may be in the middle of writing it. From now
    /// on no other one opens it. Whoever asks for metadata only does not mind it.
    private func waitForWriters(of claim: ClaimID, _ accesses: [Access]) async throws(Failure) {
        guard filesystem.coordinator.mode == .wait else { return }
        let start = clock.uptime()
        while clock.uptime() - start < Coordination.openWriterLimit {
            let nodes = zip(filesystem.coordinator.nodes(of: claim), accesses)
            let isWritten = nodes.contains { !$1.isAboutMetadata && filesystem.isWritten($0) }
            guard isWritten else { return }
            try? await Task.sleep(for: .milliseconds(10))
            if Task.isCancelled { throw Failure(.interrupted, "the claim was given up") }
        }
    }
}
