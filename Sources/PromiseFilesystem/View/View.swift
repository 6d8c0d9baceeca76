import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem
import Synchronization

/// One mount of the domain for one launch of an application: the same tree as the main mount, of
/// which only what the application may reach is there.
///
/// Its root has the application's own folders, and `granted`: what it was given, under names that
/// stay while the documents are renamed and moved, beside the files that it makes there while it
/// saves. Every call comes through one door, `demand`, that asks by identity and by what is so now:
/// the kernel keeps neither names nor attributes nor pages of a view.
///
/// Thread-safe. The lock is a leaf.
package final class View: FileSystemOperations {
    /// What the launch is to the view.
    package struct Launch: Sendable {
        /// Not 0; each of a daemon's views has another one.
        package var number: UInt16
        /// Whom everything in the view belongs to.
        package var user: UInt32
        package var group: UInt32
        package var folders: ViewFolders.Place

        package init(number: UInt16, user: UInt32, group: UInt32, folders: ViewFolders.Place) {
            self.number = number
            self.user = user
            self.group = group
            self.folders = folders
        }
    }

    let tree: FileSystem
    let launch: Launch
    let policy: any ViewPolicy
    let state = Mutex(ViewState())

    package init(of tree: FileSystem, for launch: Launch, policy: any ViewPolicy) {
        self.tree = tree
        self.launch = launch
        self.policy = policy
    }

    // MARK: Life

    package func mounted(_ connection: MountConnection) {}

    package func ended() {
        locking.end()
        let left = state.withLock { state in
            defer { state = ViewState() }
            return state
        }
        for (handle, file) in left.files { tree.release(file.node, handle: handle) }
        for (node, known) in left.known { tree.forget(node, lookups: known.lookups) }
    }

    package func interrupt(_ request: ParkedRequest) {
        if !locking.cancel(request) { tree.interrupt(request) }
    }

    /// How many nodes and files the view's kernel holds.
    package var counts: (nodes: Int, files: Int) {
        state.withLock { ($0.known.count, $0.files.count) }
    }

    // MARK: The door

    /// Every call that names a node asks here. Throws `.refused`.
    @discardableResult
    func demand(
        _ rights: ViewRights, of node: NodeID, _ operation: StaticString
    ) throws(Failure) -> Reach {
        let reach = try reach(node)
        if reach.rights >= rights { return reach }
        policy.refused(operation, node)
        throw Failure(.refused, "the application was not given \(reach.rights == .none ? "it" : "it for writing")")
    }

    func reach(_ node: NodeID) throws(Failure) -> Reach {
        // Asked first: the policy reads the index, too.
        let roots = roots
        let found = try index.read { transaction throws(Failure) in
            try roots.reach(node, transaction)
        }
        // Without a name it is what it was when it had one.
        return found ?? state.withLock { $0.known[node]?.reach } ?? Reach()
    }

    /// What was granted, and the launch's own folders.
    var roots: ViewRoots {
        var roots = policy.roots
        for root in launch.folders.roots { roots.add(root) }
        for root in state.withLock({ $0.followed.values }) { roots.add(root) }
        return roots
    }

    var index: Index { tree.index }
    var given: GrantedFolder { GrantedFolder(view: self) }

    // MARK: Callers and numbers

    /// What a program makes belongs to whom the domain belongs to; the request's number is one that
    /// no other kernel gives.
    func through(_ caller: Caller) -> Caller {
        var caller = caller
        caller.user = launch.folders.owner
        caller.group = launch.folders.group
        caller.request = 1 << 62 | UInt64(launch.number) << 44 | caller.request & (1 << 44 - 1)
        caller.isResent = false
        caller.isOfView = true
        return caller
    }

    /// As the view shows it, and counted.
    func shown(_ entry: EntryReply, reach: Reach) -> EntryReply {
        let node = entry.attributes.node
        state.withLock { state in
            state.known[node, default: ViewState.Known()].lookups += 1
            state.known[node]?.reach = reach
        }
        return EntryReply(
            shown(entry.attributes, reach.rights), entryLifetimeSeconds: 0,
            attributeLifetimeSeconds: 0)
    }

    func shown(_ attributes: NodeAttributes, _ rights: ViewRights) -> NodeAttributes {
        attributes.shown(to: launch, rights)
    }

    func ownFolder(_ node: ViewNode) -> NodeAttributes { .folder(node, of: launch, tree.clock.now()) }

    func ownEntry(_ node: ViewNode) -> EntryReply {
        EntryReply(ownFolder(node), entryLifetimeSeconds: 0, attributeLifetimeSeconds: 0)
    }

    func guarded<Value: Sendable>(
        _ reply: Reply<Value>, _ body: () throws(Failure) -> ParkedRequest?
    ) -> ParkedRequest? {
        do throws(Failure) {
            return try body()
        } catch {
            reply(.failure(error))
            return nil
        }
    }

    static let granted = FileName(trusted: Array("granted".utf8))
}
