import PromiseCore
import PromiseIndex
import PromiseSync
import Synchronization

/// The attribute `user.promisefs.excluded`, by which a person says that a file or folder stays on this machine. Thread-safe.
final class StayingMarks: Sendable {
    static let name = Array("user.promisefs.excluded".utf8)
    /// Of links, whose `user.` attributes the kernel lets nobody read.
    static let nameOfLinks = Array("system.promisefs.excluded".utf8)
    static let value = Array("true".utf8)
    private static let setting = "marks.excluded"
    /// How long a document is remembered that was removed, or became a backup, before it is made anew.
    private static let leftSeconds: Int64 = 60
    private static let leftCountMax = 1_000

    private struct State {
        /// Nil until somebody asked the index. Most domains have none, and are not searched.
        var areThere: Bool?
        /// Names that marked files had until just now.
        var left: [TreePlace: Timestamp] = [:]
    }
    private let state = Mutex(State())

    static func isName(_ name: [UInt8]) -> Bool { name == StayingMarks.name || name == nameOfLinks }

    /// Whether the item itself has the attribute.
    func isMarked(_ id: NodeID, _ transaction: borrowing Transaction) throws(Failure) -> Bool {
        guard try areThere(transaction) else { return false }
        if try transaction.attribute(StayingMarks.name, of: id) != nil { return true }
        return try transaction.attribute(StayingMarks.nameOfLinks, of: id) != nil
    }

    /// Whether a folder, or one above it, has the attribute.
    func cover(_ folder: NodeID, _ transaction: borrowing Transaction) throws(Failure) -> Bool {
        guard try areThere(transaction) else { return false }
        var folder = folder
        while folder != .root {
            if try isMarked(folder, transaction) { return true }
            guard let entry = try transaction.entries(of: folder).first else { return false }
            folder = entry.parent
        }
        return false
    }

    private func areThere(_ transaction: borrowing Transaction) throws(Failure) -> Bool {
        if let known = state.withLock({ $0.areThere }) { return known }
        let areThere = try transaction.setting(StayingMarks.setting) != nil
        // One that was set meanwhile stays known.
        state.withLock { if $0.areThere == nil { $0.areThere = areThere } }
        return areThere
    }

    /// Called before it is committed; if it is not, every look costs a little.
    func note(_ transaction: borrowing Transaction) throws(Failure) {
        state.withLock { $0.areThere = true }
        if try transaction.setting(StayingMarks.setting) == nil {
            try transaction.setSetting(StayingMarks.setting, "yes")
        }
    }

    /// It is renamed to a backup's name.
    func noteLeft(
        _ entry: Entry, as name: FileName, at now: Timestamp, _ exclusion: Exclusion, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard entry.isExcluded, exclusion.rules.excludes(name) else { return }
        try noteLeft(entry, at: now, transaction)
    }

    /// An entry loses its name.
    func noteLeft(_ entry: Entry, at now: Timestamp, _ transaction: borrowing Transaction) throws(Failure) {
        guard entry.isExcluded, try isMarked(entry.node, transaction) else { return }
        state.withLock { state in
            if state.left.count >= StayingMarks.leftCountMax { state.left = [:] }
            state.left[TreePlace(entry.name, in: entry.parent)] = now
        }
    }

    /// The attribute was taken away: what is made under the name later is no marked document of before.
    func forgetLeft(_ place: TreePlace) { state.withLock { _ = $0.left.removeValue(forKey: place) } }

    /// Whether what is made now under a name is the marked document of before, made anew. It stays so for a while: whoever
    /// asks may fail, and try again.
    func isLeft(_ place: TreePlace, at now: Timestamp) -> Bool {
        guard let left = state.withLock({ $0.left[place] }) else { return false }
        return now.nanoseconds(since: left) < StayingMarks.leftSeconds * 1_000_000_000
    }
}

extension Exclusion {
    var marks: StayingMarks { ignores.marks }

    /// The attribute is set on a node. What the provider has stays there: a file is refused, and of a folder only what it does
    /// not have stays here.
    func keep(_ node: Node, _ transaction: borrowing Transaction) throws(Failure) {
        if node.id == .root { throw Failure(.notPermitted, "the whole domain cannot stay on this machine") }
        let entries = try transaction.entries(of: node.id)
        guard node.kind == .folder || entries.allSatisfy({ $0.identifier == nil }) else {
            throw Failure(.exists, "the provider has it, and its copy stays there: mark a copy, and remove this one")
        }
        let staying = entries.filter { $0.identifier == nil && !$0.isExcluded }
        if node.kind == .folder, !staying.isEmpty,
            let sent = try sentItem(below: node.id, transaction)
        {
            throw Exclusion.cannotStay(sent)
        }
        try marks.note(transaction)
        for var entry in staying {
            entry.isExcluded = true
            try transaction.update(entry)
            try transaction.deletePending(.entry(entry.id))
        }
        guard node.kind == .folder else { return }
        try spread(true, below: node.id, transaction) { _ throws(Failure) in }
    }

    /// The attribute is gone. `tell` puts an entry in line for the provider.
    func release(
        _ node: Node, _ transaction: borrowing Transaction, tell: (Entry) throws(Failure) -> Void
    ) throws(Failure) {
        for var entry in try transaction.entries(of: node.id) where entry.isExcluded {
            marks.forgetLeft(TreePlace(entry.name, in: entry.parent))
            if try covers(entry.name, node.kind, in: entry.parent, of: node.id, transaction) { continue }
            entry.isExcluded = false
            try transaction.update(entry)
            try tell(entry)
        }
        guard node.kind == .folder, try !covers(node.id, transaction), try !marks.cover(node.id, transaction)
        else { return }
        try spread(false, below: node.id, transaction, tell: tell)
    }

    /// Whether the provider has an item, or what a folder holds that is to be made there.
    func isThere(
        _ entry: Entry, _ node: Node, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        if entry.identifier != nil || node.kind != .folder { return entry.identifier != nil }
        return try sentItem(below: node.id, transaction) != nil
    }

    /// What the provider has of that which is in a folder that it does not have yet. It was moved
    /// there just now, and its place is made with the folder: if that stays here it waits for ever.
    private func sentItem(
        below folder: NodeID, _ transaction: borrowing Transaction
    ) throws(Failure) -> Entry? {
        var waiting = [folder]
        while let folder = waiting.popLast() {
            for child in try transaction.children(of: folder) {
                if child.identifier != nil { return child }
                guard try transaction.node(child.node)?.kind == .folder else { continue }
                waiting.append(child.node)
            }
        }
        return nil
    }

    private static func cannotStay(_ item: Entry) -> Failure {
        let what = "the provider has '\(item.name)', which is in it, and its copy stays there"
        return Failure(.exists, "\(what): mark a copy, and remove this one")
    }

    /// A folder stays here from now on, or no longer, and so does what is below it that the provider
    /// does not have. Throws where what it has would be left in a folder that it never gets.
    func spread(
        _ isExcluded: Bool, below folder: NodeID, _ transaction: borrowing Transaction,
        tell: (Entry) throws(Failure) -> Void
    ) throws(Failure) {
        // No recursion: programs nest folders deeper than any stack. `isNew`: it was to be sent.
        var waiting = [(folder: folder, isExcluded: isExcluded, isNew: false)]
        while let (folder, isExcluded, isNew) = waiting.popLast() {
            for var child in try transaction.children(of: folder) {
                guard let node = try transaction.node(child.node) else { continue }
                if isNew, child.identifier != nil { throw Exclusion.cannotStay(child) }
                var (stays, isNews) = (isExcluded, false)
                if child.identifier == nil {
                    if try coversByName(child.name, node.kind, in: folder, transaction) {
                        stays = true
                    }
                    if try marks.isMarked(node.id, transaction) { stays = true }
                    isNews = stays && !child.isExcluded
                    child.isExcluded = stays
                    try transaction.update(child)
                    if stays {
                        try transaction.deletePending(.entry(child.id))
                    } else {
                        try tell(child)
                    }
                }
                if node.kind == .folder { waiting.append((node.id, stays, isNews)) }
            }
        }
    }

    /// A new file is renamed over a marked one: that is how it is saved.
    func handOn(
        from target: Entry, to source: Entry, _ kind: NodeKind, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard target.isExcluded, source.identifier == nil, kind != .folder,
            try marks.isMarked(target.node, transaction)
        else { return }
        try mark(source.node, kind, transaction)
    }

    /// The same of one that was removed just before.
    func handOn(
        left place: TreePlace, to source: Entry, _ kind: NodeKind, at now: Timestamp, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard source.identifier == nil, kind == .file, marks.isLeft(place, at: now) else { return }
        try mark(source.node, kind, transaction)
    }

    /// A name goes. `newName`: by a rename.
    func noteLeft(
        _ entry: Entry, _ kind: NodeKind, as newName: FileName? = nil, at now: Timestamp,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        try NotedName.noteLeft(entry, kind, at: now, transaction)
        if let newName {
            try marks.noteLeft(entry, as: newName, at: now, self, transaction)
        } else {
            try marks.noteLeft(entry, at: now, transaction)
        }
    }

    func mark(_ id: NodeID, _ kind: NodeKind, _ transaction: borrowing Transaction) throws(Failure) {
        let name = kind == .link ? StayingMarks.nameOfLinks : StayingMarks.name
        try transaction.setAttribute(name, of: id, to: StayingMarks.value)
    }
}
