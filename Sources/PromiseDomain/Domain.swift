package import PromiseCore
package import Logging

/// STUB: signatures only; to be implemented.
///
/// One domain: its provider, index, content, engine, filesystem and mount, wired together, and its life.
package final class Domain: Sendable {
    /// Locks the state folder, opens the index, connects the provider, mounts. When this returns the mount serves requests.
    /// Throws a sentence and leaves nothing half-mounted. Blocking; call before serving anything else.
    package static func start(_ configuration: DomainConfiguration, logger: Logger) async throws(StartFailure) -> Domain { fatalError("stub") }

    /// Waits until the mount has ended (unmounted by request, by umount(8), or by `stop`), then closes everything.
    package func waitUntilUnmounted() async { fatalError("stub") }

    /// Why a domain could not start; `exitStatus` as in the command line's contract (1 failed, 2 usage, 4 offline, 5 refused).
    package struct StartFailure: Error, Sendable {
        package var message: String
        package var exitStatus: Int32
        package init(_ message: String, exitStatus: Int32 = 1) {
            self.message = message
            self.exitStatus = exitStatus
        }
    }

    package var configuration: DomainConfiguration { fatalError("stub") }

    package func status() async -> DomainStatus { fatalError("stub") }

    /// Names from the root of the mount to a node. Lists folders at the provider when they are not known yet.
    package func node(at path: [FileName]) async throws(Failure) -> NodeID { fatalError("stub") }
    package func information(of node: NodeID) throws(Failure) -> ItemInformation { fatalError("stub") }

    /// Brings content here, of everything below a folder; `progress` is called now and then and at the end.
    package func fetch(_ node: NodeID, progress: @escaping @Sendable (FetchProgress) -> Void) async throws(Failure) -> FetchProgress { fatalError("stub") }
    package func evict(_ node: NodeID) async throws(Failure) -> EvictionReport { fatalError("stub") }
    /// Sets the pin of everything below a folder, and of what will appear there; returns how many items.
    package func setPin(_ pin: Pin, of node: NodeID) async throws(Failure) -> Int { fatalError("stub") }

    /// Work the provider has not seen, and downloads running; of everything below a node when given.
    package func pending(below node: NodeID?) throws(Failure) -> [PendingWork] { fatalError("stub") }

    /// Looks at the provider now; with `wait`, returns when nothing is pending below `node`, or throws `.timedOut` or `.offline`
    /// with a sentence saying what is left.
    package func synchronize(below node: NodeID?, wait: Bool, timeout: Duration?) async throws(Failure) { fatalError("stub") }

    package func verify(repair: Bool) async throws(Failure) -> VerifyReport { fatalError("stub") }

    /// Unmounts. With `wait`, first until nothing is pending or the timeout passes. Returns how many items are left pending;
    /// they are kept for the next mount. Throws `.busy` when files are open (not with `lazy`).
    package func unmount(wait: Bool, timeout: Duration?, lazy: Bool) async throws(Failure) -> Int { fatalError("stub") }
}
