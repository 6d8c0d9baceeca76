import PromiseAccess
import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseSync
import PromiseSystem

// What `reference list` and `info` say of documents that are missed here.

extension References {
    /// So long they wait; what takes longer is known the next time.
    private static let settleTime = Duration.seconds(2)
    /// So many places that nobody has looked into are looked into.
    private static let placeCountMax = 200

    /// The same, after what is missed was looked for: at the provider, and where other machines say
    /// that they have moved it to. Who reads a link cannot wait for that.
    package func settled(_ standings: [ReferenceStanding]) async -> [ReferenceStanding] {
        let missed = standings.filter { $0.elsewhere == nil && $0.fate != .found }
        if missed.isEmpty || tree.engine.connectionFailure != nil { return standings }
        // What goes on longer goes on: the next who asks has its answer.
        _ = await Attempt { [self] in await look(for: missed) }.outcome(within: References.settleTime)
        return standings.map { one in
            one.elsewhere == nil && one.fate != .found
                ? ((try? standing(of: one.node)) ?? nil) ?? one : one
        }
    }

    private func look(for missed: [ReferenceStanding]) async {
        if missed.contains(where: { $0.fate.mayHaveMoved }) { await notes.ask() }
        let now = missed.compactMap { (try? standing(of: $0.node)) ?? nil }
        let unknown = Set(now.filter { $0.fate == .unknown }.map(\.target))
        for place in unknown.prefix(References.placeCountMax) { _ = try? await tree.node(at: place) }
        await search.settle(now.filter { $0.fate != .found }.compactMap { noted($0.node) })
    }

    private func noted(_ reference: NodeID) -> (key: ItemKey, bound: EntryID?)? {
        guard let record = (try? record(of: reference)) ?? nil else { return nil }
        let bound = try? tree.index.read { transaction throws(Failure) in
            try ItemFinder.bound(of: reference, transaction)
        }
        return (record.key, bound ?? nil)
    }
}
