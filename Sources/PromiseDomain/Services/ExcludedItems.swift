import PromiseCore
import PromiseIndex

extension PendingWork {
    /// What stays on this machine, for people who look for it at the provider.
    static func excluded(
        below scope: NodeID?, limit: Int, _ transaction: borrowing Transaction
    ) throws(Failure) -> [PendingWork] {
        let prefix = try scope.flatMap { scope throws(Failure) in try transaction.path(of: scope) } ?? []
        var result: [PendingWork] = []
        for entry in try transaction.excludedEntries(limit: limit) {
            guard let node = try transaction.node(entry.node), let folder = try transaction.path(of: entry.parent)
            else { continue }
            let path = folder + [entry.name]
            guard path.starts(with: prefix) else { continue }
            result.append(
                PendingWork(
                    kind: .excluded, node: node.id, path: path, isRunning: false, size: node.size, progress: nil,
                    since: node.changeTime, attempts: 0, error: nil))
        }
        return result
    }
}

extension DomainStatus {
    /// What nobody works on: items that stay here, and documents whose conflicts wait for somebody to decide.
    mutating func countApart(in index: Index) {
        let counts = try? index.read { transaction throws(Failure) in try transaction.countsApart() }
        if let counts { (excluded, conflicts) = counts }
        let attributed = try? index.read { transaction throws(Failure) in try LocalAttributes.itemCount(transaction) }
        if let attributed { localAttributes = attributed }
    }
}
