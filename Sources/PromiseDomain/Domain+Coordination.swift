package import PromiseCoordination
package import PromiseCore
package import PromiseFilesystem
import PromiseIndex
import PromiseSync
import PromiseSystem

// Claims and presenters of programs that coordinate, by the control API.

/// A claim that somebody wants.
package struct ClaimRequest: Sendable {
    package var items: [(path: [FileName], access: Access)]
    package var purpose: Purpose?
    /// The claims that it is nested in; nil: nobody said.
    package var within: Set<ClaimID>?
    /// Nobody is kept out: presenters are asked for all claims that are nested in it.
    package var isPreparation = false
    /// Links out of the mount are not followed, wherever they lead.
    package var isConfined = false
    /// The process that is to get at the items, with its children; 0: nobody in particular.
    package var process: Int32
    package var timeout: Duration?
    /// Called whenever others have waited for its end for as long as a presenter may take for an answer. From any thread; it
    /// is not to wait.
    package var whenOverdue: (@Sendable (ClaimID) -> Void)?
    /// How whoever holds the claim is told that it is over. Of anybody, once at most; it is not to wait.
    package private(set) var ending: (@Sendable () -> Void)?

    package init(items: [(path: [FileName], access: Access)], purpose: Purpose?, process: Int32, timeout: Duration?) {
        self.items = items
        self.purpose = purpose
        self.process = process
        self.timeout = timeout
    }

    package func ended(by ending: @escaping @Sendable () -> Void) -> ClaimRequest {
        var request = self
        request.ending = ending
        return request
    }
}

/// A claim that was granted: the nodes of its items, in the order in which they were asked for.
package struct GrantedClaim: Sendable {
    package var id: ClaimID
    package var nodes: [NodeID]
    /// The places of what is to be replaced, and of what was not there: what is elsewhere is not what its writer wants.
    var places: [Int: TreePlace]
    /// The names that were asked for, of files with several.
    var names: [Int: EntryID]

    package init(id: ClaimID, nodes: [NodeID]) { self.init(id: id, nodes: nodes, places: [:], names: [:]) }

    init(id: ClaimID, nodes: [NodeID], places: [Int: TreePlace], names: [Int: EntryID]) {
        self.id = id
        self.nodes = nodes
        self.places = places
        self.names = names
    }

    package func isAboutPlace(_ number: Int) -> Bool { places[number] != nil }

    /// The item; or the folder and the name in it that nothing has yet.
    package func holder(_ number: Int) -> (node: NodeID, missing: FileName?)? {
        let node = nodes[number]
        return node.isVacancy ? places[number].map { ($0.parent, $0.name) } : (node, nil)
    }

    fileprivate func paths(_ transaction: borrowing Transaction) throws(Failure) -> [[FileName]] {
        var result: [[FileName]] = []
        for (number, node) in nodes.enumerated() {
            let path: [FileName]?
            if let place = places[number] {
                path = try transaction.path(of: place.parent).map { $0 + [place.name] }
            } else if let name = names[number] {
                // Another name of the file is another item.
                let entry = try transaction.entry(name)
                path = try entry.flatMap { entry throws(Failure) in
                    try transaction.path(of: entry.parent).map { $0 + [entry.name] }
                }
            } else {
                path = try transaction.path(of: node)
            }
            guard let path else { throw Failure(.gone, "an item was removed while the claim waited for it") }
            result.append(path)
        }
        return result
    }
}

extension Domain {
    /// How long a claim to write waits for programs that have the item open for writing and know nothing of claims.
    private static let openWriterLimit = Duration.seconds(5)
    /// How long one command to evict waits for claims and presenters in all: longer than a presenter may take for its answer.
    package static let evictionPatience = Duration.seconds(10)

    package var isCoordinated: Bool { filesystem.coordinator.isActive }

    /// Waits for a claim. Throws `.notFound`, `.timedOut`, and `.busy` where waiting would never end; `.interrupted` when
    /// the task is cancelled, and then there is no claim.
    package func claim(_ request: ClaimRequest) async throws(Failure) -> GrantedClaim {
        let position = try lastChange()
        let finder = ClaimFinder(
            tree: services.tree, mountPoint: configuration.mountPoint, isConfined: request.isConfined)
        var intents: [Intent] = []
        var places: [Int: TreePlace] = [:]
        var names: [Int: EntryID] = [:]
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
            if !request.isPreparation { try await waitForWriters(of: claim) }
        } catch {
            release(claim)
            throw error
        }
        let nodes = Array(filesystem.coordinator.nodes(of: claim).prefix(intents.count))
        let granted = GrantedClaim(id: claim, nodes: nodes, places: places, names: names)
        await KernelSight(index: index, filesystem: filesystem, clock: clock).settle(granted)
        return granted
    }

    /// A claim of the daemon's own on one item.
    func claim(node: NodeID, _ access: Access, timeout: Duration) async throws(Failure) -> GrantedClaim {
        let position = try lastChange()
        let intent = Intent(node: node, folders: try folders(above: node), access: access)
        let request = ClaimRequest(items: [], purpose: nil, process: 0, timeout: timeout)
        return GrantedClaim(id: try await claim([intent], request, isOwn: true, from: position), nodes: [node])
    }

    /// `position`: of the change feed, before the items were looked for.
    private func claim(
        _ intents: [Intent], _ request: ClaimRequest, isOwn: Bool = false, from position: Int64
    ) async throws(Failure) -> ClaimID {
        let (outcomes, continuation) = AsyncStream.makeStream(of: Coordinator.ClaimOutcome.self)
        let id = try filesystem.coordinator.claim(
            intents, purpose: request.purpose, within: request.within, isPreparation: request.isPreparation,
            process: request.process, isOwn: isOwn, patience: request.whenOverdue.map { _ in Coordinator.answerLimit },
            timeout: request.timeout
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
            case .refused(.timedOut): throw Failure(.timedOut, "others did not let go of the items in time")
            case .refused(.deadlock):
                throw Failure(.busy, "this claim would wait for somebody who waits for a claim of the same purpose")
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

    /// Where the items of a claim are now. Throws `.gone` when one is no more, or the folder of a place.
    package func paths(of claim: GrantedClaim) throws(Failure) -> [[FileName]] {
        try index.read { transaction throws(Failure) in try claim.paths(transaction) }
    }

    package func release(_ claim: ClaimID) { filesystem.coordinator.release(claim) }

    /// Adds a presenter of an item. `events` hears everything in order, from any thread, and must not wait;
    /// it returns whether anybody listens still.
    package func present(
        _ path: [FileName], purpose: Purpose?, events: @escaping @Sendable (Coordinator.PresenterEvent) -> Bool
    ) async throws(Failure) -> (id: PresenterID, node: NodeID) {
        let position = try lastChange()
        let node = try await node(at: path)
        let folders = try folders(above: node)
        let id = try filesystem.coordinator.addPresenter(of: node, in: folders, purpose: purpose, handler: events)
        hub.wake(from: position)
        try filesystem.settlePlaces(of: [Intent(node: node, folders: folders, access: .read([]))])
        return (id, node)
    }

    package func removePresenter(_ id: PresenterID) { filesystem.coordinator.removePresenter(id) }

    package func answered(_ number: UInt64, by presenter: PresenterID, hasFailed: Bool) -> Bool {
        filesystem.coordinator.answered(number, by: presenter, hasFailed: hasFailed)
    }

    /// Where a node is now; nil when it has gone.
    package func currentPath(of node: NodeID) throws(Failure) -> [FileName]? {
        try index.read { transaction throws(Failure) in try transaction.path(of: node) }
    }

    /// Of several names the one that is below the folder, where one is.
    package func currentPath(of node: NodeID, inside folder: NodeID) throws(Failure) -> [FileName]? {
        try index.read { transaction throws(Failure) in
            let names = try transaction.entries(of: node)
            for name in names where names.count > 1 {
                guard try transaction.foldersAbove(name)?.contains(folder) == true else { continue }
                return try transaction.path(of: name.parent).map { $0 + [name.name] }
            }
            return try transaction.path(of: node)
        }
    }

    /// What a presenter presents stays the same name of a document, whatever node that has: nil for the root. Of several
    /// names that at `path`.
    package func entry(of node: NodeID, at path: [FileName]) throws(Failure) -> EntryID? {
        try index.read { transaction throws(Failure) in
            let entries = try transaction.entries(of: node)
            for entry in entries where entries.count > 1 && entry.name == path.last {
                if try transaction.path(of: entry.parent) == Array(path.dropLast()) { return entry.id }
            }
            return entries.first?.id
        }
    }

    /// Nil when the name has gone.
    package func currentNode(of entry: EntryID) throws(Failure) -> NodeID? {
        try index.read { transaction throws(Failure) in try transaction.entry(entry)?.node }
    }

    /// Of the name itself, where the item has several; nil when it has gone.
    package func currentPath(of entry: EntryID) throws(Failure) -> [FileName]? {
        try index.read { transaction throws(Failure) in
            guard let entry = try transaction.entry(entry) else { return nil }
            return try transaction.path(of: entry.parent).map { $0 + [entry.name] }
        }
    }

    // MARK: - Below

    private func lastChange() throws(Failure) -> Int64 {
        try index.read { transaction throws(Failure) in try transaction.lastChange() }
    }

    private func folders(above node: NodeID) throws(Failure) -> [NodeID] {
        let folders = try index.read { transaction throws(Failure) in try transaction.foldersAbove(node) }
        guard let folders else { throw Failure(.stale, "the item is gone") }
        return folders
    }

    /// A program that opened an item before the claim may be in the middle of writing it. From now on no other one opens it.
    private func waitForWriters(of claim: ClaimID) async throws(Failure) {
        guard filesystem.coordinator.mode == .wait else { return }
        let start = clock.uptime()
        while clock.uptime() - start < Domain.openWriterLimit {
            guard filesystem.coordinator.nodes(of: claim).contains(where: filesystem.isWritten) else { return }
            try? await Task.sleep(for: .milliseconds(10))
            if Task.isCancelled { throw Failure(.interrupted, "the claim was given up") }
        }
    }
}
