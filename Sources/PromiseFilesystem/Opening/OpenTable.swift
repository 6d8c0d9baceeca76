import PromiseCore
import PromiseSync
import PromiseSystem

/// What is open, and how the kernel has it.
///
/// The lock is a leaf: taken after the index's, held over no call but the registration of a backing file.
final class OpenTable: Sendable {
    struct Handle {
        var node: NodeID
        var isWritable: Bool
        /// Nil for a read-only passthrough open: the kernel needs nothing more from us; and for one of pages until the kernel
        /// asks for one.
        var file: SharedDescriptor?
        /// Where it is noted for a successor.
        var position: MountRecord.Position?
        /// Another kernel has it: it takes no part in the mode of the main mount's.
        var isOfView = false
    }

    struct OpenNode {
        var mode = OpenMode()
        var handles = 0
        /// Opens announced and not yet granted or given up.
        var announced = 0
        var writers = 0
        /// The content file while somebody writes, for its size and times.
        var writeFile: SharedDescriptor?
        /// When the present run of writers began.
        var writingSince: Timestamp?
        /// The index on the disk knows that somebody writes: after a crash the content file is looked at.
        var isWritingDurable = false
        /// Of the content file that is registered.
        var generation = Generation(0)
        /// Somebody could write since the content file was registered.
        var wasWritable = false
        /// Somebody has had it open by passthrough for reading and writing, as a shared mapping that writes needs (mmap(2)).
        var mayBeMapped = false
        /// Nobody has it open, and there may be such a mapping all the same. Counts as a writer.
        var lingers = false
        /// `writeFile` is open for reading only.
        var isFileReadOnly = false

        /// What was written and could not be noted yet counts as a use.
        var isUnused: Bool { handles == 0 && announced == 0 && writeFile == nil }
    }

    struct State {
        var nodes: [NodeID: OpenNode] = [:]
        var handles: [HandleID: Handle] = [:]
        var nextHandle: UInt64 = 1
        var recentUses: [NodeID: Timestamp] = [:]
        var resting = RestingBackings(countMax: OpenTable.restingCountMax)
        /// Where registered backing files are noted for a successor.
        var backingPositions: [BackingID: MountRecord.Position] = [:]
        /// Handles that the daemon before opened, by the request: it may not have answered.
        var inherited: [UInt64: HandleID] = [:]
    }

    let state: RankedMutex<State>
    /// For a successor of this daemon; nil when there will be none.
    let record: MountRecord?

    /// With what the daemon before has left in `record`.
    init(record: MountRecord? = nil) {
        self.record = record
        var initial = State()
        if let record { initial.inherit(record.inherited) }
        state = RankedMutex(.leaf, initial)
    }

    /// Nil for a view's caller: it has no successor.
    func record(for caller: Caller) -> MountRecord? { caller.isOfView ? nil : record }

    /// The kernel keeps an open file for each, of about a kilobyte with what hangs on it.
    private static let restingCountMax = 8_192
    /// Beyond that the index is told when files were last used, as there may be no eviction that asks.
    private static let recentUseCountMax = 4_096

    // MARK: Opening

    /// From here on the engine sees the node as open. Ends with `grant` or `withdraw`.
    func announce(_ node: NodeID) { state.withLock { $0.nodes[node, default: OpenNode()].announced += 1 } }

    func withdraw(_ node: NodeID) { state.withLock { $0.nodes[node]?.announced -= 1 } }

    /// Whether a content file will have to be registered or served, so that it must be opened before `grant`.
    func mode(of node: NodeID) -> OpenMode { state.withLock { $0.nodes[node]?.mode ?? OpenMode() } }

    /// Turns an announced open into a handle, in the mode that the node's other opens have. `generation` is the one of
    /// `file`, the content file.
    func grant(
        _ node: NodeID, access: OpenRequest.Access, file: SharedDescriptor, generation: Generation,
        backings: (any BackingRegistrar)?, now: Timestamp, _ caller: Caller
    ) -> (handle: HandleID, backing: BackingID?) {
        state.withLock { state in
            let isWritable = access != .read
            var open = state.nodes[node, default: OpenNode()]
            var grant = caller.isOfView ? .cached : open.mode.open(passthroughPossible: backings != nil)
            if grant == .register {
                var backing = state.resting.take(node, generation)
                if backing == nil, let made = backings?.register(descriptor: file.number) {
                    backing = made
                    state.backingPositions[made] = record?.note(
                        MountRecord.Open(handle: 0, node: node, generation: generation, backing: made, isWritable: false))
                }
                grant = open.mode.opened(with: backing)
                open.generation = generation
            }
            open.announced -= 1
            open.handles += 1
            if isWritable {
                open.writers += 1
                open.wasWritable = true
                if open.writeFile == nil || open.isFileReadOnly {
                    open.writeFile = file
                    open.writingSince = now
                    open.isFileReadOnly = false
                }
                open.lingers = false
            }
            var backing: BackingID?
            if case .passthrough(let registered) = grant { backing = registered }
            if let backing, access == .readWrite, !open.mayBeMapped {
                open.mayBeMapped = true
                noteMapping(by: backing, node, open.generation, &state)
            }
            state.nodes[node] = open
            let keepsFile = isWritable || backing == nil
            var handle = Handle(node: node, isWritable: isWritable, file: keepsFile ? file : nil)
            handle.isOfView = caller.isOfView
            return (enter(handle, open.generation, backing, caller.request, &state), backing)
        }
    }

    /// As `grant`, for reading what the kernel has registered already: no content file is needed. Nil when it has not; then
    /// the open stays announced.
    func grantRegistered(
        _ node: NodeID, generation: Generation, request: UInt64
    ) -> (handle: HandleID, backing: BackingID)? {
        state.withLock { state in
            var open = state.nodes[node, default: OpenNode()]
            if open.mode.isIdle {
                guard let known = state.resting.take(node, generation) else { return nil }
                _ = open.mode.opened(with: known)
                open.generation = generation
            } else {
                guard open.mode.isPassthrough else { return nil }
                _ = open.mode.open(passthroughPossible: true)
            }
            guard case .passthrough(_, let backing) = open.mode.state else { preconditionFailure("it was granted so") }
            open.announced -= 1
            open.handles += 1
            state.nodes[node] = open
            let handle = Handle(node: node, isWritable: false, file: nil)
            return (enter(handle, generation, backing, request, &state), backing)
        }
    }

    /// As `grant`, for reading by the kernel's pages, which stay from one such open to the next: every open for passthrough
    /// throws them away. No content file is needed before the kernel asks for a page it does not have. Nil while the kernel has
    /// the content file itself, or may have it in a mapping; then the open stays announced.
    func grantPages(_ node: NodeID, generation: Generation, request: UInt64) -> HandleID? {
        state.withLock { state in
            var open = state.nodes[node, default: OpenNode()]
            guard !open.mode.isPassthrough, !open.lingers else { return nil }
            _ = open.mode.open(passthroughPossible: false)
            open.announced -= 1
            open.handles += 1
            state.nodes[node] = open
            return enter(Handle(node: node, isWritable: false, file: nil), generation, nil, request, &state)
        }
    }

    /// The content file of a handle that `grantPages` gave, for all its reads: the one that is kept.
    func keep(_ file: SharedDescriptor, for id: HandleID) -> SharedDescriptor {
        state.withLock { state in
            if let known = state.handles[id]?.file { return known }
            state.handles[id]?.file = file
            return file
        }
    }

    private func enter(
        _ handle: Handle, _ generation: Generation, _ backing: BackingID?, _ request: UInt64, _ state: inout State
    ) -> HandleID {
        let number: UInt64
        var handle = handle
        if let record, handle.isOfView {
            number = record.nextHandle()
        } else if let record {
            number = record.nextHandle()
            handle.position = record.note(
                MountRecord.Open(
                    handle: number, node: handle.node, generation: generation, request: request, backing: backing,
                    isWritable: handle.isWritable))
        } else {
            number = state.nextHandle
            state.nextHandle += 1
        }
        state.handles[HandleID(number)] = handle
        return HandleID(number)
    }

    /// The node's content file goes, or has gone: nothing may keep its room on the disk. To be released by the caller.
    func dropResting(_ node: NodeID) -> BackingID? {
        state.withLock { state in
            guard let backing = state.resting.drop(node) else { return nil }
            forget([backing], &state)
            return backing
        }
    }

    /// A successor need not know of what is released now.
    private func forget(_ backings: [BackingID], _ state: inout State) {
        guard let record else { return }
        for backing in backings {
            if let position = state.backingPositions.removeValue(forKey: backing) { record.clear(position) }
        }
    }

    // MARK: Closing

    struct Closed {
        var handle: Handle
        var releasedBackings: [BackingID]
        var isLastWriter: Bool
        var isLast: Bool
        var mayBeMapped: Bool
        /// So many uses are kept that the index is to have them.
        var usesAreDue: Bool
    }

    func close(_ id: HandleID, now: Timestamp) -> Closed? {
        state.withLock { state in
            guard let handle = state.handles.removeValue(forKey: id), var open = state.nodes[handle.node] else { return nil }
            if let position = handle.position { record?.clear(position) }
            state.recentUses[handle.node] = now
            var released: [BackingID] = []
            if !handle.isOfView, case .lastClose(let backing?) = open.mode.close() {
                // A disk keeps room ahead of the end of a file until its last writer has closed it.
                released =
                    open.wasWritable || open.mayBeMapped ? [backing] : state.resting.rest(backing, handle.node, open.generation)
                open.wasWritable = false
                forget(released, &state)
            }
            open.handles -= 1
            var isLastWriter = false
            if handle.isWritable {
                open.writers -= 1
                isLastWriter = open.writers == 0
            }
            state.nodes[handle.node] = open
            return Closed(
                handle: handle, releasedBackings: released, isLastWriter: isLastWriter, isLast: open.handles == 0,
                mayBeMapped: open.mayBeMapped,
                usesAreDue: state.recentUses.count >= OpenTable.recentUseCountMax)
        }
    }

    /// Nobody writes any more: the content file is not asked for size and times from here on.
    func endWriting(_ node: NodeID) {
        state.withLock { state in
            // Its last close came meanwhile.
            guard state.nodes[node]?.lingers != true else { return }
            state.nodes[node]?.writeFile = nil
            state.nodes[node]?.isFileReadOnly = false
            state.nodes[node]?.writingSince = nil
            state.nodes[node]?.isWritingDurable = false
        }
    }

    /// What `endWriting` was told could not be stored. When the file was first written to is not
    /// known any more.
    func resumeWriting(_ node: NodeID, _ file: SharedDescriptor) {
        state.withLock { state in
            guard state.nodes[node]?.writeFile == nil else { return }
            state.nodes[node, default: OpenNode()].writeFile = file
            // It tells size and times, and may be open for no more than that.
            state.nodes[node]?.isFileReadOnly = true
        }
    }

    /// The node has a new name, of which the index on the disk does not know yet.
    func noteRenamed(_ node: NodeID) { state.withLock { $0.nodes[node]?.isWritingDurable = false } }

    /// The index was synchronized while `file` was the one written to.
    func noteWritingDurable(_ node: NodeID, _ file: SharedDescriptor) {
        state.withLock { state in
            if state.nodes[node]?.writeFile === file { state.nodes[node]?.isWritingDurable = true }
        }
    }

    /// The file somebody writes to, if the index on the disk knows of it.
    func durablyWrittenFile(of node: NodeID) -> SharedDescriptor? {
        state.withLock { state in
            guard let open = state.nodes[node], open.isWritingDurable, open.writers > 0 else { return nil }
            return open.writeFile
        }
    }

    func forgetIfUnused(_ node: NodeID) {
        state.withLock { if $0.nodes[node]?.isUnused == true { $0.nodes[node] = nil } }
    }

    // MARK: Questions

    func handle(_ id: HandleID) -> Handle? { state.withLock { $0.handles[id] } }
    func isOpen(_ node: NodeID) -> Bool { state.withLock { $0.nodes[node].map { !$0.isUnused } ?? false } }
    func hasHandles(_ node: NodeID) -> Bool { state.withLock { ($0.nodes[node]?.handles ?? 0) > 0 } }
    /// Somebody writes, or an open is under way that may be for writing.
    func mayBeWritten(_ node: NodeID) -> Bool {
        state.withLock { $0.nodes[node].map { $0.writers > 0 || $0.announced > 0 || $0.lingers } ?? false }
    }
    func hasWriters(_ node: NodeID) -> Bool { state.withLock { ($0.nodes[node]?.writers ?? 0) > 0 } }
    /// For its size and times.
    func writeFile(of node: NodeID) -> SharedDescriptor? { state.withLock { $0.nodes[node]?.writeFile } }
    /// For reading and writing.
    func writableFile(of node: NodeID) -> SharedDescriptor? {
        state.withLock { $0.nodes[node].flatMap { $0.isFileReadOnly ? nil : $0.writeFile } }
    }
    func writingSince(_ node: NodeID) -> Timestamp? { state.withLock { $0.nodes[node]?.writingSince } }
    /// A time that was given to the file hides its writes: whether there are more is doubtful at its last close.
    func doubtWriting(_ node: NodeID) { state.withLock { $0.nodes[node]?.writingSince = nil } }
    /// Some file is written to.
    var isWritten: Bool { state.withLock { $0.nodes.values.contains { $0.writeFile != nil } } }
    /// Nodes that are written to, and those whose last writes could not be noted yet.
    var writtenNodes: [NodeID] { state.withLock { $0.nodes.filter { $0.value.writeFile != nil }.map(\.key) } }
    var handleCount: Int { state.withLock { $0.handles.count } }
    var restingCount: Int { state.withLock { $0.resting.count } }

    /// When nodes were last used, since the last call.
    func takeRecentUses() -> [NodeID: Timestamp] {
        state.withLock { state in
            defer { state.recentUses = [:] }
            return state.recentUses
        }
    }
}
