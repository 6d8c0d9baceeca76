package import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseProvider
import PromiseSync

/// What the provider keeps of what was removed there, by whomever: listed, and brought back. So
/// comes back what was not on this machine when it was removed, and what others removed.
package struct RemovedAtProvider: Sendable {
    let tree: DomainTree

    /// The newest first.
    package func list(below path: [FileName]) async throws(Failure) -> [RemovedDescription] {
        try await all(below: path).map { item in
            RemovedDescription(
                path: item.path, kind: item.kind, size: item.size,
                modificationTime: item.modificationTime ?? item.removalTime,
                removalTime: item.removalTime, isKept: true)
        }
    }

    /// The newest that was removed at a path, a folder with what was removed with it; where nothing
    /// was, all that was removed below it. It is seen here when the provider has been looked at.
    /// Throws `.notFound` when nothing is kept, `.conflict` when the name is taken.
    package func restore(_ path: [FileName]) async throws(Failure) -> RestorationReport {
        try tree.demandWritable()
        let bin = try await bin()
        let items = RemovedItems.chosen(of: try await all(below: path), at: path)
        guard !items.isEmpty else {
            throw Failure(
                .notFound,
                "the provider keeps nothing that was removed there: 'promisefs trash list "
                    + "--provider' shows what it keeps")
        }
        var report = RestorationReport()
        for item in items {
            do throws(Failure) {
                // What was in it comes back into the folder that is there.
                if try await !isFolderThere(item) {
                    try await asking { () throws(ProviderError) in try await bin.restore(item) }
                }
                report.restored += 1
                report.place = path
            } catch {
                if items.count == 1 { throw error }
                report.failures.append((item.path, error))
                // What was in it does not find its place either, nor does a provider that is away
                // find the next one.
                if item.path == path || error.code == .offline { break }
            }
        }
        return report
    }

    private func bin() async throws(Failure) -> any ProviderBin {
        let bin = try await asking { [tree] () throws(ProviderError) in tree.provider.bin }
        if let bin { return bin }
        throw Failure(
            .refused,
            "'\(tree.provider.name)' keeps nothing of what is removed, or does not show it: "
                + "Nextcloud, ownCloud and some extensions do")
    }

    private func all(below path: [FileName]) async throws(Failure) -> [BinItem] {
        let bin = try await bin()
        let items = try await asking { () throws(ProviderError) in try await bin.list() }
        return items.filter { $0.path.starts(with: path) }
    }

    /// Throws `.conflict` when something else has the name, which would have to leave it.
    private func isFolderThere(_ item: BinItem) async throws(Failure) -> Bool {
        let node: NodeID
        do throws(Failure) {
            node = try await tree.node(at: item.path)
        } catch where error.code == .notFound {
            return false
        }
        let kind = try tree.index.read { transaction throws(Failure) in
            try transaction.node(node)?.kind
        }
        if kind == .folder, item.kind == .folder { return true }
        let name = item.path.last?.display ?? "/"
        throw Failure(.conflict, "there is a '\(name)' now: give that another name")
    }

    private func asking<Value: Sendable>(
        _ call: @escaping @Sendable () async throws(ProviderError) -> Value
    ) async throws(Failure) -> Value {
        try await tree.asking(telling: [.notFound: .notFound, .conflict: .conflict], call)
    }
}
