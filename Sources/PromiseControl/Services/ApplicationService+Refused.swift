import PromiseCore
import PromiseDomain
import PromiseFilesystem
import PromiseCoordination

// What no application may do. The routes are refused before; this holds when one is forgotten.

extension ApplicationService {
    private func refused(_ call: StaticString) -> Failure {
        grants.refuse(principal, call, "of the owner alone")
    }

    /// Its route is refused, and there is nothing in it that is secret from who reaches a mount.
    func status() async -> DomainStatus { await base.status() }

    func resolve(
        _ node: NodeID, _ action: VersionAction, version: NodeID?, purpose: Purpose?,
        decidedOn states: Set<String>?
    ) async throws(Failure) -> [ItemVersion] { throw refused("versions.resolve") }

    func earlierVersions(of node: NodeID) async throws(Failure) -> [ItemVersion] {
        throw refused("versions.earlier")
    }

    func contents(
        ofEarlier identifier: String, of node: NodeID
    ) async throws(Failure) -> Snapshot { throw refused("versions.content") }

    func contents(
        ofGivenUp identifier: String, of path: [FileName]
    ) async throws(Failure) -> Snapshot { throw refused("versions.content") }

    func evict(_ node: NodeID, purpose: Purpose?) async throws(Failure) -> EvictionReport { throw refused("items.evict") }
    func setPin(_ pin: Pin, of node: NodeID) async throws(Failure) -> PinReport { throw refused("items.pin") }
    func pending(below node: NodeID?) throws(Failure) -> PendingList { throw refused("pending") }
    func excluded(below node: NodeID?) throws(Failure) -> [PendingWork] { throw refused("pending") }
    func setPaused(_ isPaused: Bool) async throws(Failure) { throw refused("pause") }
    func setLimits(_ change: LimitsChange) async throws(Failure) { throw refused("limits") }
    func stepPending() async throws(Failure) -> PendingWork? { throw refused("pending") }

    func synchronize(below node: NodeID?, wait: Bool, timeout: Duration?) async throws(Failure) {
        throw refused("sync")
    }

    func verify(repair: Bool, provider: Bool) async throws(Failure) -> VerifyReport {
        throw refused("verify")
    }

    func unmount(wait: Bool, timeout: Duration?, lazy: Bool) async throws(Failure) -> Int {
        throw refused("unmount")
    }

    func restart() -> Failure { refused("restart") }

    func changes(
        since sequence: Int64, of journal: String?, limit: Int
    ) throws(Failure) -> ChangePage { throw refused("changes") }

    func waitForChange(after sequence: Int64, timeout: Duration) async {}
}
