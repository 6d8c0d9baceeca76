import PromiseContent
package import PromiseCoordination
package import PromiseCore
import PromiseFilesystem
import PromiseIndex
package import PromiseQuery
import PromiseSync
import PromiseSystem

/// Questions about items, and what is done with their content by command.
package struct Items: Sendable {
    let tree: DomainTree
    let hub: QueryHub
    let attributes: AttributeTravel
    let coordination: Coordination
    let clock: any TimeSource

    var index: Index { tree.index }
    private var engine: SyncEngine { tree.engine }
    private var filesystem: FileSystem { tree.filesystem }

    /// Names from the root of the mount to a node. Lists folders at the provider when they are not
    /// known yet.
    package func node(at path: [FileName]) async throws(Failure) -> NodeID {
        try await item(at: path).node
    }

    package func item(at path: [FileName]) async throws(Failure) -> NamedItem {
        try await tree.item(at: path)
    }

    package func information(of item: NamedItem) throws(Failure) -> ItemInformation {
        let (facts, id) = (try filesystem.facts(of: item.node, named: item.entry), item.node)
        let path = try index.read { transaction throws(Failure) in try item.path(transaction) }
        guard let path else { throw Failure(.gone, "the item was removed meanwhile") }
        let shown = try filesystem.attributes(of: id, handle: nil).attributes
        let node = facts.node
        var result = ItemInformation(
            node: id, path: path, kind: node.kind, size: shown.size, localBytes: node.localBytes,
            mode: node.mode,
            owner: node.owner, group: node.group, accessTime: node.accessTime,
            modificationTime: shown.modificationTime,
            changeTime: shown.changeTime, birthTime: node.birthTime, links: node.linkCount,
            identifier: facts.identifier,
            version: node.version, state: facts.state, pin: node.pin, progress: facts.progress,
            error: facts.error,
            isConflict: facts.entry?.conflictsWith != nil,
            linkTarget: node.target == nil ? nil : try? filesystem.linkTarget(of: id))
        result.values = try values(of: [item], AttributeKey.allCases).first?.values ?? [:]
        (result.localAttributes, result.attributes) = try attributes.names(of: id)
        return result
    }

    /// Promised values of many items, in their order, placeholders or not; those that have gone are
    /// left out. The root has none but its path. Of an item with several names those of the one
    /// that was asked for.
    package func values(of items: [NamedItem], _ keys: [AttributeKey]) throws(Failure)
        -> [PromisedValues]
    {
        try ValueReader(index, hub).values(of: items, keys)
    }

    /// Everything below a node, itself included, parents first. Folders that are not known are
    /// listed when `listing` is set.
    func descendants(of id: NodeID, listing: Bool) async throws(Failure) -> [Node] {
        let found = try await Descent.below(id, tree, listing: listing)
        if let trouble = found.troubles.first { throw trouble.failure }
        return found.nodes
    }

    /// Nil for what has no name any more.
    func path(of id: NodeID) -> [FileName]? {
        (try? index.read { transaction throws(Failure) in try transaction.path(of: id) }) ?? nil
    }

    // MARK: Fetching

    private static let parallelFetches = 8

    /// Brings content here, of everything below a folder; `progress` is called now and then and at
    /// the end.
    package func fetch(
        _ id: NodeID, progress: @escaping @Sendable (FetchProgress) -> Void
    ) async throws(Failure) -> FetchProgress {
        let found = try await Descent.below(id, tree, listing: true)
        let files = found.nodes.filter { $0.kind == .file && $0.content != .whole }
        var state = FetchProgress(
            filesDone: 0, filesTotal: files.count, bytesDone: 0,
            bytesTotal: files.reduce(0) { $0.plus($1.size) },
            failures: found.troubles.compactMap { trouble in
                path(of: trouble.folder).map { ($0, trouble.failure) }
            })
        progress(state)
        await withTaskGroup(of: (Node, Failure?).self) { group in
            var next = 0
            func startOne() {
                guard next < files.count, !Task.isCancelled else { return }
                let node = files[next]
                next += 1
                group.addTask { (node, await self.hydrate(node.id)) }
            }
            for _ in 0..<Items.parallelFetches { startOne() }
            var reported = clock.uptime()
            for await (node, failure) in group {
                startOne()
                if let failure {
                    // What is gone meanwhile is not missed.
                    if let path = path(of: node.id) { state.failures.append((path, failure)) }
                } else {
                    state.filesDone += 1
                    state.bytesDone = state.bytesDone.plus(node.size)
                }
                if clock.uptime() - reported > .milliseconds(100) {
                    reported = clock.uptime()
                    progress(state)
                }
            }
        }
        progress(state)
        return state
    }

    func hydrate(_ id: NodeID) async -> Failure? {
        if let failure = engine.connectionFailure { return failure }
        let wait = HydrationWait(hydrator: engine.hydrator, node: id)
        let alarm = Task { [clock, limit = tree.patience] in await wait.watch(limit, clock) }
        defer { alarm.cancel() }
        return await wait.outcome()
    }

    // MARK: Evicting and pinning

    package func evict(
        _ id: NodeID, purpose: Purpose? = nil
    ) async throws(Failure) -> EvictionReport {
        var report = EvictionReport(evicted: 0, bytesFreed: 0, kept: [])
        let deadline = clock.uptime() + Coordination.evictionPatience
        for node in try await descendants(of: id, listing: false)
        where node.kind == .file && node.content != .absent {
            switch try await evictInTurn(node.id, purpose, deadline) {
            case .evicted(let bytes):
                report.evicted += 1
                report.bytesFreed += bytes
            case .kept(let reason):
                if let path = path(of: node.id) {
                    report.kept.append(KeptItem(path, reason, isAsked: node.id == id))
                }
            case .nothing:
                break
            }
        }
        if report.evicted > 0 {
            engine.remover.flush()
            try index.shrink()
        }
        return report
    }

    /// Waits for who reads or writes the item, and asks who shows it.
    private func evictInTurn(
        _ id: NodeID, _ purpose: Purpose?, _ deadline: Duration
    ) async throws(Failure) -> SyncEngine.EvictionOutcome {
        guard filesystem.coordinator.isActive else { return try engine.evict(id) }
        let claim: GrantedClaim
        do throws(Failure) {
            let patience = max(deadline - clock.uptime(), .zero)
            claim = try await coordination.claim(
                node: id, .write(.forEvicting), purpose: purpose, timeout: patience)
        } catch  where error.code == .timedOut {
            return .kept(.claimed)
        }
        defer { coordination.release(claim.id) }
        return try engine.evict(id, evenUsed: true)
    }

    package func setPin(_ pin: Pin, of id: NodeID) async throws(Failure) -> PinReport {
        try await PinSetting(tree: tree).set(pin, below: id)
    }
}
