import Logging
import PromiseCore
package import PromiseFilesystem
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
    package let grants: Grants
    package let audit: AuditLog
    package let views: Views
    package let windows: FolderWindows
    package let adoption: Adoption
    package let reversal: Reversal
    package let sharing: Sharing
    package let removed: RemovedItems
    package var removedAtProvider: RemovedAtProvider { RemovedAtProvider(tree: tree) }
    package let attributes: AttributeTravel
    package let moveWatch: MoveWatch
    let moveNotes: MoveNotes
    private let configuration: DomainConfiguration
    private let transfers: [UInt8]

    init(
        _ tree: DomainTree, _ state: StateFolder, _ configuration: DomainConfiguration,
        _ audit: AuditLog, _ logger: Logger
    ) {
        self.audit = audit
        self.configuration = configuration
        self.tree = tree
        transfers = state.file(TransferHistory.fileName)
        reversal = Reversal(index: tree.index, engine: tree.engine)
        sharing = Sharing(tree: tree)
        removed = RemovedItems(tree: tree)
        attributes = AttributeTravel(tree, folder: state.file("attributes"), configuration, logger)
        moveWatch = MoveWatch(tree: tree, configuration: configuration)
        moveNotes = MoveNotes(tree, folder: state.file("moves"), configuration, logger)
        search = ItemSearch(tree: tree, pollInterval: configuration.pollInterval)
        windows = FolderWindows(tree)
        let door = AccessDoor(logger: logger, audit: audit)
        containers = Containers(
            tree: tree, search: search, notes: moveNotes, file: state.file("containers.json"),
            configuration: configuration, door: door, logger: logger)
        references = References(
            tree: tree, search: search, notes: moveNotes, configuration: configuration, door: door,
            storage: StorageIdentity(tree: tree, configuration: configuration),
            former: FormerItems(tree: tree, configuration: configuration))
        let key = StateKey(path: state.file(StateKey.fileName))
        grants = Grants(tree: tree, search: search, key: key, containers: containers, door: door)
        grants.load()
        bookmarks = Bookmarks(tree: tree, search: search, notes: moveNotes, grants: grants, door: door, key: key)
        views = Views(
            filesystem: tree.filesystem, grants: grants, domainName: tree.domainName, door: door,
            echoProgram: configuration.echoProgram, isReadOnly: configuration.isReadOnly, logger: logger)
        adoption = Adoption(tree: tree, door: door, pool: BlockingPool(name: "adopt", threads: 2))
        tree.filesystem.linkTargets.memory?.whenMissed { [search] in search.begin($0) }
        tree.filesystem.linkTargets.memory?.whenGone { [moveNotes] in moveNotes.askSoon() }
    }

    /// Who knows the other domains of this user.
    package func meet(_ others: any OtherDomains) {
        tree.filesystem.linkTargets.memory?.otherDomains = others
    }

    func start() {
        // The engine ends it, with the last transfer.
        tree.engine.hydrator.transfers.begin(file: transfers)
        containers.start()
        attributes.start()
        moveWatch.start()
        moveNotes.start()
        GrantNaming.start(for: grants, pollInterval: configuration.pollInterval)
        views.start()
    }

    /// Others follow what was moved here also when this machine is away for long.
    func tellMoves() async { await moveNotes.tell(within: DocumentServices.farewell) }

    private static let farewell = Duration.seconds(2)

    func stop() {
        views.stop()
        containers.stop()
        attributes.stop()
        moveWatch.stop()
        moveNotes.stop()
        bookmarks.stop()
        grants.stop()
        audit.stop()
        adoption.pool.stop()
    }

    /// For `status`.
    var troubles: [String] { containers.troubles + grants.troubles + attributes.troubles }
}
