package import PromiseCore
package import PromiseSystem

// What the mount asks of the file system and what it offers in return: one method an operation, in terms of nodes, names
// and values. Nothing of FUSE is seen here; the mount knows nothing of the index, of content or of providers.
//
// Threads. Any method may be called on any serving thread, several at once; none may wait for the network, a task or an
// actor. A method with a `reply` calls it exactly once, from any thread, holding no lock: before it returns (then it
// returns nil), or later (then it returns a `ParkedRequest`). Calling it twice traps. A method that throws answers at once.
// Nil is also returned for a change that was made and whose answer waits for live queries, which nothing interrupts.
//
// Lookup counts. The kernel holds one reference more on a node for every `EntryReply` it was sent (lookup, the creating
// operations and link) and for every `FolderEntry` with an entry that `readFolder`'s `add` took. `forget` gives them back.

/// What the mount has to offer, known before the first operation.
package struct MountConnection: Sendable {
    package var notifier: any KernelNotifier
    /// Nil where nobody who watches can be told of the provider's changes.
    package var echoes: (any EchoCaller)?
    /// Nil where views have no locks.
    package var locks: (any LockKeeper)?
    /// Nil when files cannot be registered: everything is served in cached mode.
    package var backings: (any BackingRegistrar)?
    /// Why `backings` is nil: a sentence for people.
    package var passthroughProblem: String?
    /// The kernel's FUSE protocol, e.g. 7.45.
    package var protocolMajor: UInt32
    package var protocolMinor: UInt32

    package init(
        notifier: any KernelNotifier, echoes: (any EchoCaller)? = nil, locks: (any LockKeeper)? = nil,
        backings: (any BackingRegistrar)?,
        passthroughProblem: String?, protocolMajor: UInt32, protocolMinor: UInt32
    ) {
        self.notifier = notifier
        self.echoes = echoes
        self.locks = locks
        self.backings = backings
        self.passthroughProblem = passthroughProblem
        self.protocolMajor = protocolMajor
        self.protocolMinor = protocolMinor
    }
}

/// Tells the kernel that what it keeps is no longer right. Calls return at once and are delivered in order by a thread of
/// their own, as the kernel may make it wait for requests that are being served. What the kernel does not know is no error.
package protocol KernelNotifier: Sendable {
    /// Forgets a name, or that it was absent; the next use looks it up again.
    func invalidateEntry(_ name: FileName, in parent: NodeID)
    /// The next use looks the name up again; unlike `invalidateEntry` this harms no name that is right (a working directory
    /// stays what it is, and so does a mount on it). Linux 6.2; before, nothing happens.
    func expireEntry(_ name: FileName, in parent: NodeID)
    /// The name is gone: like `invalidateEntry`, but also for names in use, which show as deleted.
    func deleteEntry(_ name: FileName, of node: NodeID, in parent: NodeID)
    /// Forgets attributes, link target and ACLs; keeps content and listing.
    func invalidateAttributes(of node: NodeID)
    /// Forgets attributes and the pages of a range (nil: all pages, of a folder: the listing).
    func invalidateContent(of node: NodeID, range: ByteRange?)
    /// How many notices there were so far, and how many of them, the oldest, the kernel has taken. It takes none while a call on
    /// the same folder or pages is parked. All, when nothing more will be told.
    var progress: (noted: UInt64, told: UInt64) { get }
}

/// Registers content files with the kernel for passthrough.
package protocol BackingRegistrar: Sendable {
    /// Nil when the kernel refuses this file (a stacked file system below, say): the open is served in cached mode.
    /// The kernel keeps the file itself; the descriptor may be closed afterwards. One system call.
    func register(descriptor: Int32) -> BackingID?
    /// Open handles keep their file. Only once for each id.
    func release(_ backing: BackingID)
}

/// The meaning of the tree. Implemented by the file system, called by the mount.
package protocol FileSystemOperations: AnyObject, Sendable {
    typealias Reply<Value> = @Sendable (Result<Value, Failure>) -> Void

    // MARK: Life

    /// Once, before any other operation.
    func mounted(_ connection: MountConnection)
    /// Once, after the last operation, when every parked request has been answered (or given up). The kernel has
    /// forgotten every node and closed every handle without saying so; notifier and registrar do nothing any more.
    func ended()
    /// The caller of a parked request does not wait any more: answer it soon, with `.interrupted` as a rule. May come
    /// after the request was answered; then it does nothing.
    func interrupt(_ request: ParkedRequest)

    // MARK: Names

    func lookup(_ name: FileName, in parent: NodeID, caller: Caller, reply: @escaping Reply<LookupReply>) -> ParkedRequest?
    /// As an entry, for a file handle (name_to_handle_at(2)): by the number alone. Throws `.notFound` when the node is gone.
    func entry(of node: NodeID) throws(Failure) -> EntryReply
    /// The folder that holds this folder; the root holds itself.
    func parentEntry(of folder: NodeID) throws(Failure) -> EntryReply
    /// `lookups` references are given back; at 0 the kernel knows the node no more.
    func forget(_ node: NodeID, lookups: UInt64)
    /// `permissions` are 0 to 0o7777, before the caller's umask.
    func create(
        _ name: FileName, in parent: NodeID, permissions: UInt32, opening: OpenRequest, caller: Caller,
        reply: @escaping Reply<CreateReply>
    ) -> ParkedRequest?
    /// O_TMPFILE: a file without a name, open for writing; `addName` may give it one.
    func createNameless(
        in parent: NodeID, permissions: UInt32, opening: OpenRequest, caller: Caller, reply: @escaping Reply<CreateReply>
    ) -> ParkedRequest?
    func makeFolder(
        _ name: FileName, in parent: NodeID, permissions: UInt32, caller: Caller, reply: @escaping Reply<EntryReply>
    ) -> ParkedRequest?
    /// mknod(2): a file, fifo, socket or device.
    func makeNode(
        _ name: FileName, in parent: NodeID, kind: NodeKind, permissions: UInt32, deviceNumber: UInt64, caller: Caller,
        reply: @escaping Reply<EntryReply>
    ) -> ParkedRequest?
    func makeLink(
        _ name: FileName, in parent: NodeID, target: [UInt8], caller: Caller, reply: @escaping Reply<EntryReply>
    ) -> ParkedRequest?
    /// A hard link: one more name of a node.
    func addName(
        _ name: FileName, in parent: NodeID, to node: NodeID, caller: Caller, reply: @escaping Reply<EntryReply>
    ) -> ParkedRequest?
    func unlink(_ name: FileName, in parent: NodeID, caller: Caller, reply: @escaping Reply<Void>) -> ParkedRequest?
    func removeFolder(_ name: FileName, in parent: NodeID, caller: Caller, reply: @escaping Reply<Void>) -> ParkedRequest?
    func rename(
        _ name: FileName, in parent: NodeID, to newName: FileName, in newParent: NodeID, flags: RenameFlags, caller: Caller,
        reply: @escaping Reply<Void>
    ) -> ParkedRequest?
    func linkTarget(of node: NodeID) throws(Failure) -> [UInt8]
    /// The same, and why a reference leads nowhere; what leads into another domain is asked for there.
    func ask(
        _ what: LinkQuestion, of node: NodeID, _ caller: Caller, reply: @escaping LinkReply
    ) -> ParkedRequest?

    // MARK: Attributes

    func attributes(of node: NodeID, handle: HandleID?) throws(Failure) -> AttributesReply
    func setAttributes(
        of node: NodeID, handle: HandleID?, _ changes: AttributeChanges, caller: Caller, reply: @escaping Reply<AttributesReply>
    ) -> ParkedRequest?
    /// Throws `.noAttribute`. Names carry their prefix (`user.`, `system.posix_acl_access`).
    func extendedAttribute(_ name: [UInt8], of node: NodeID, caller: Caller) throws(Failure) -> [UInt8]
    func extendedAttributeNames(of node: NodeID) throws(Failure) -> [[UInt8]]
    /// Setting `system.posix_acl_access` changes the permission bits as well; the kernel leaves that to us, and says with
    /// `clearsSetGroupID` that the caller is not in the file's group.
    func setExtendedAttribute(
        _ name: [UInt8], of node: NodeID, to value: [UInt8], mode: AttributeWriteMode, clearsSetGroupID: Bool, caller: Caller
    ) throws(Failure)
    func removeExtendedAttribute(_ name: [UInt8], of node: NodeID, caller: Caller) throws(Failure)
    func space() throws(Failure) -> FileSystemSpace

    // MARK: Folders

    // The kernel opens folders by itself and keeps their listings (FOPEN_KEEP_CACHE, FOPEN_CACHE_DIR) until a name in them
    // changes through it, or the notifier invalidates the content of the folder: a listing has no handle.

    /// Calls `add` with the lines after `cookie` (0: from the start) until it returns false, which leaves that line for
    /// the next call, and then answers. With `withAttributes` the lines carry entries. Waits until the listing is known;
    /// then `add` is called on another thread, and never after `reply`.
    ///
    /// What is in the folder from the first page to the last comes in exactly one of them.
    func readFolder(
        _ node: NodeID, after cookie: UInt64, withAttributes: Bool, add: @escaping @Sendable (FolderEntry) -> Bool,
        reply: @escaping Reply<Void>
    ) -> ParkedRequest?
    func synchronizeFolder(_ node: NodeID, reply: @escaping Reply<Void>) -> ParkedRequest?

    // MARK: Files

    func open(_ node: NodeID, _ request: OpenRequest, caller: Caller, reply: @escaping Reply<OpenReply>) -> ParkedRequest?
    func read(
        _ position: FilePosition, count: Int, caller: Caller, reply: @escaping Reply<ReadReply>
    ) -> ParkedRequest?
    /// `bytes` are valid until this call returns: an implementation that parks copies them. Answers with the number of
    /// bytes written. `clearsSetID` as in `AttributeChanges`. Also brings pages that a shared mapping made dirty, which
    /// then have no caller of their own (`isPageWrite`).
    func write(
        _ position: FilePosition, _ bytes: UnsafeRawBufferPointer, clearsSetID: Bool, isPageWrite: Bool, caller: Caller,
        reply: @escaping Reply<Int>
    ) -> ParkedRequest?
    func synchronize(_ node: NodeID, handle: HandleID, dataOnly: Bool, reply: @escaping Reply<Void>) -> ParkedRequest?
    /// `mode` as in fallocate(2).
    func allocate(
        _ position: FilePosition, count: UInt64, mode: Int32, caller: Caller, reply: @escaping Reply<Void>
    ) -> ParkedRequest?
    /// Throws `.outOfRange` when there is no such place after the offset.
    func seek(_ position: FilePosition, to target: SeekTarget) throws(Failure) -> UInt64
    /// Answers with the number of bytes copied.
    func copyRange(
        from source: FilePosition, to target: FilePosition, count: Int, caller: Caller, reply: @escaping Reply<Int>
    ) -> ParkedRequest?
    /// The last descriptor of this open is closed. Comes some time after close(2) has returned; there is no flush.
    func release(_ node: NodeID, handle: HandleID)
}

extension FileSystemOperations {
    /// For mounts whose links lead nowhere that somebody else has to be asked for.
    package func ask(
        _ what: LinkQuestion, of node: NodeID, _ caller: Caller, reply: @escaping LinkReply
    ) -> ParkedRequest? {
        do throws(Failure) {
            switch what {
            case .target: reply(.success(try linkTarget(of: node)))
            case .state:
                let name = LinkTargets.stateName
                reply(.success(try extendedAttribute(name, of: node, caller: caller)))
            }
        } catch {
            reply(.failure(error))
        }
        return nil
    }
}
