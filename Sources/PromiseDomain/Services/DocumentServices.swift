import Logging
import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseProvider
import PromiseSync

/// What applications keep in a domain besides values, and find again.
package struct DocumentServices: Sendable {
    let tree: DomainTree
    let search: ItemSearch
    package let containers: Containers

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
    }

    func start() { containers.start() }
    func stop() { containers.stop() }

    /// For `status`.
    var troubles: [String] { containers.troubles }
}
