import Logging
import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseProvider
import PromiseSync
import PromiseSystem

/// What applications keep in a domain besides values, and find again.
package struct DocumentServices: Sendable {
    let tree: DomainTree
    let search: ItemSearch
    package let containers: Containers
    package let references: References
    package let bookmarks: Bookmarks
    package let adoption: Adoption

    init(
        _ tree: DomainTree, _ state: StateFolder, _ configuration: DomainConfiguration,
        _ logger: Logger
    ) {
        self.tree = tree
        search = ItemSearch(tree: tree, pollInterval: configuration.pollInterval)
        let door = AccessDoor(logger: logger)
        containers = Containers(
            tree: tree, search: search, file: state.file("containers.json"), configuration: configuration,
            door: door, logger: logger)
        references = References(
            tree: tree, search: search, configuration: configuration, door: door)
        bookmarks = Bookmarks(
            tree: tree, search: search, containers: containers, door: door,
            keyFile: state.file("bookmark.key"))
        adoption = Adoption(tree: tree, door: door, pool: BlockingPool(name: "adopt", threads: 2))
        tree.filesystem.linkTargets.memory?.whenMissed { [search] in search.begin($0) }
    }

    func start() { containers.start() }

    func stop() {
        containers.stop()
        bookmarks.stop()
        adoption.pool.stop()
    }

    /// For `status`.
    var troubles: [String] { containers.troubles }
}
