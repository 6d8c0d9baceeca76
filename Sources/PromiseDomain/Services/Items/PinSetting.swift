import PromiseCore
import PromiseFilesystem
import PromiseIndex

/// Gives everything below an item its pin, and what will appear there. What cannot be done keeps nobody from the rest.
struct PinSetting {
    let tree: DomainTree

    func set(_ pin: Pin, below id: NodeID) async throws(Failure) -> PinReport {
        let found = try await Descent.below(id, tree, listing: pin == .pinned)
        var report = PinReport(items: 0, failures: found.troubles.compactMap { named($0.folder, $0.failure) })
        for node in found.nodes {
            do throws(Failure) {
                try tree.filesystem.setPin(pin, of: node.id)
                report.items += 1
            } catch where error.code == .stale {
                // What is gone meanwhile is not missed.
                continue
            } catch {
                // The local disk's, and so of all that follow.
                if let failure = named(node.id, error) { report.failures.append(failure) }
                break
            }
        }
        return report
    }

    private func named(_ id: NodeID, _ failure: Failure) -> (path: [FileName], failure: Failure)? {
        let path = (try? tree.index.read { transaction throws(Failure) in try transaction.path(of: id) }) ?? nil
        return path.map { ($0, failure) }
    }
}
