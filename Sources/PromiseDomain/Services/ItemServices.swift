import Logging
import PromiseContent
import PromiseSystem

/// What is asked of a domain about its items, and what is done with them.
package struct ItemServices: Sendable {
    package let items: Items
    package let coordination: Coordination
    package let versions: Versions
    package let snapshots: Snapshots
    package let thumbnails: Thumbnails
    package let queries: Queries
    package let work: Work
    package let verification: Verification

    init(
        _ hub: QueryHub, _ content: ContentStore, _ state: StateFolder,
        _ documents: DocumentServices,
        _ keyValues: Values, _ configuration: DomainConfiguration, _ clock: any TimeSource,
        _ logger: Logger
    ) {
        let tree = documents.tree
        coordination = Coordination(
            tree: tree, hub: hub, mountPoint: configuration.mountPoint, clock: clock)
        items = Items(
            tree: tree, hub: hub, attributes: documents.attributes, coordination: coordination,
            clock: clock)
        snapshots = Snapshots(folder: state.file("snapshots"), items, content)
        versions = Versions(
            items: items, snapshots: snapshots, reversal: documents.reversal, content: content)
        thumbnails = Thumbnails(
            tree, content, folder: state.file("thumbnails"),
            pollInterval: configuration.pollInterval, logger)
        queries = Queries(index: tree.index, hub: hub, filesystem: tree.filesystem)
        work = Work(items: items, clock: clock)
        verification = Verification(
            tree: tree, content: content, stateFolder: configuration.stateFolder,
            keyValues: keyValues, documents: documents, thumbnails: thumbnails, clock: clock)
    }

    /// Once the mount serves, in a thread that may wait for the disk.
    func start(_ moves: MoveNotes) {
        thumbnails.sweep()
        thumbnails.resumeSending(moves)
    }

    func stop() {
        thumbnails.pool.stop()
        snapshots.pool.stop()
    }
}
