package import PromiseContent
package import PromiseCore
package import PromiseIndex
package import PromiseSystem

/// Compares the index with the content store, and mends what can be mended without losing what
/// exists only here.
///
/// May run while the mount serves: what changes meanwhile is looked at twice before it is called a
/// problem. Blocks.
package struct ContentVerification {
    package struct Report: Sendable {
        /// A sentence for each problem that is left.
        package var problems: [String] = []
        /// A sentence for each one that was mended.
        package var repaired: [String] = []

        package init() {}
    }

    private let index: Index
    private let content: ContentStore
    private let clock: any TimeSource
    private let isRepairing: Bool
    /// Whether a program has the node open; such nodes are left alone.
    private let isOpen: (NodeID) -> Bool
    /// Whether a content file that the index does not know of may be about to get its row.
    private let isInMaking: (NodeID) -> Bool
    /// The content of a node is not what it was.
    private let onChange: (NodeID) -> Void
    private var report = Report()

    package init(
        index: Index, content: ContentStore, clock: any TimeSource, isRepairing: Bool,
        isOpen: @escaping (NodeID) -> Bool,
        isInMaking: @escaping (NodeID) -> Bool = { _ in false },
        onChange: @escaping (NodeID) -> Void
    ) {
        self.index = index
        self.content = content
        self.clock = clock
        self.isRepairing = isRepairing
        self.isOpen = isOpen
        self.isInMaking = isInMaking
        self.onChange = onChange
    }

    /// Every file with local content, and every content file.
    package mutating func run() throws(Failure) -> Report {
        // What a row should name is found before the row is taken for one of missing content.
        try checkOrphans()
        let nodes: [Node] = try index.read { transaction throws(Failure) in
            try transaction.nodesWithContent(in: .whole)
                + transaction.nodesWithContent(in: .partial)
        }
        for node in nodes where node.linkCount > 0 && !isOpen(node.id) { try check(node) }
        try checkRemoved()
        return report
    }

    // MARK: Files that the index names

    private mutating func check(_ node: Node) throws(Failure) {
        let status = try content.status(node.id, node.generation)
        if let status, status.size == node.size { return }
        // Asked again: a file that is removed or written while we look is no violation.
        guard try current(node.id) == node, !isOpen(node.id) else { return }
        let name = try shownName(of: node.id)
        if let status {
            try mendSize(
                of: node, status,
                "the content of \(name) has \(status.size) bytes instead of \(node.size)")
        } else {
            try mendMissing(node, "the content of \(name) is missing")
        }
    }

    private func current(_ id: NodeID) throws(Failure) -> Node? {
        try index.read { transaction throws(Failure) in try transaction.node(id) }
    }

    private func shownName(of id: NodeID) throws(Failure) -> String {
        let path = try index.read { transaction throws(Failure) in try transaction.path(of: id) }
        return path.map { "'" + $0.map(\.display).joined(separator: "/") + "'" } ?? "node \(id)"
    }

    /// Edits make the content file the truth; without any the provider's content is, and the file
    /// is put aside, as something has written to it that nobody knows of.
    private mutating func mendSize(of node: Node, _ status: FileStatus, _ problem: String)
        throws(Failure)
    {
        guard isRepairing else { return report.problems.append(problem) }
        if let item = try sentItem(of: node) {
            return try fetchAgain(node, of: item, problem)
        }
        try index.write { transaction throws(Failure) in
            try transaction.takeSize(of: node.id, status, now: clock.now())
        }
        onChange(node.id)
        report.repaired.append(problem + "; what is there is taken")
    }

    private mutating func mendMissing(_ node: Node, _ problem: String) throws(Failure) {
        if let item = try sentItem(of: node) {
            guard isRepairing, try becomePlaceholder(node, of: item) else {
                return report.problems.append(problem)
            }
            return report.repaired.append(problem + "; it will be fetched again")
        }
        let older = try index.read { transaction throws(Failure) in
            try transaction.agreedItem(of: node.id)
        }
        guard let older else {
            return report.problems.append(
                problem + ", and nobody else has it: remove the file or put another in its place")
        }
        let loss = problem + " with edits that the provider has not seen"
        guard isRepairing, try becomePlaceholder(node, of: older) else {
            return report.problems.append(loss)
        }
        report.repaired.append(loss + "; the provider's version takes its place")
    }

    /// What the provider has of exactly this content.
    private func sentItem(of node: Node) throws(Failure) -> SyncedItem? {
        let agreed = try index.read { transaction throws(Failure) in
            try transaction.agreedItem(of: node.id)
        }
        return agreed.flatMap {
            $0.edits == node.edits && $0.item.version == node.version ? $0 : nil
        }
    }

    /// The index forgets the content, durably, before anybody touches the file. False when the node
    /// has changed meanwhile.
    private func becomePlaceholder(_ node: Node, of agreed: SyncedItem) throws(Failure) -> Bool {
        let isDone: Bool = try index.writeFreeing { transaction throws(Failure) in
            guard try transaction.node(node.id) == node, !isOpen(node.id) else { return false }
            var changed = node
            try transaction.setRanges(of: node.id, to: ByteRangeSet())
            changed.becomePlaceholder(of: agreed)
            try transaction.update(changed)
            return true
        }
        guard isDone else { return false }
        onChange(node.id)
        try index.synchronize()
        return true
    }

    /// A content file that the provider has other bytes for.
    package mutating func replaceDiffering(_ node: Node, _ problem: String) throws(Failure) {
        guard isRepairing, let item = try sentItem(of: node) else {
            return report.problems.append(problem)
        }
        try fetchAgain(node, of: item, problem)
    }

    /// Keeps the content file first and lets the index forget it then: a file that the index has
    /// forgotten is removed at the next start. What cannot be kept stays as it is.
    private mutating func fetchAgain(_ node: Node, of item: SyncedItem, _ problem: String)
        throws(Failure)
    {
        let place: [UInt8]?
        do throws(Failure) {
            place = try content.keep(node.id, node.generation)
        } catch {
            return report.problems.append(problem + ", and cannot be kept: \(error.message)")
        }
        guard try becomePlaceholder(node, of: item) else {
            if let place { try content.forgetKept(place) }
            return report.problems.append(problem)
        }
        try content.remove(node.id, node.generation)
        let kept = place.map { ", and is kept as '\(escapedForDisplay($0))'" } ?? ""
        report.repaired.append(problem + "; it will be fetched again" + kept)
    }

    // MARK: Files that were removed and can come back

    private mutating func checkRemoved() throws(Failure) {
        let items = try index.read { transaction throws(Failure) in try RemovedRows.all(transaction) }
        for item in items where item.kind == .file && item.isKept && !isOpen(item.node) {
            if try content.status(item.node, item.generation)?.size == item.size { continue }
            var kept: [String] = []
            let isLost = try index.write { transaction throws(Failure) in
                guard let known = try RemovedRows.item(item.id, transaction), known.node == item.node,
                    try transaction.node(item.node) == nil
                else { return false }
                if isRepairing {
                    // Its row may be wrong, and no other one names the file any more.
                    kept = try content.keepAll(of: item.node)
                    try RemovedRows.delete(known, transaction)
                }
                return true
            }
            guard isLost else { continue }
            let name = item.path.map(\.display).joined(separator: "/")
            let problem = "the content of '\(name)', which was removed, is not what was kept"
            if isRepairing {
                let places = kept.map { "'\($0)'" }.joined(separator: " and ")
                let end = places.isEmpty ? "" : ", and is kept as " + places
                report.repaired.append(problem + "; it is not in the trash any more" + end)
            } else {
                report.problems.append(problem)
            }
        }
    }

    // MARK: Files that the index does not name

    private mutating func checkOrphans() throws(Failure) {
        let mayBeUsed = { [isOpen, isInMaking] (node: NodeID) in isOpen(node) || isInMaking(node) }
        let orphans = try ContentOrphans(index: index, content: content).find(isOpen: mayBeUsed)
        if isRepairing, !orphans.isEmpty { try index.synchronize() }
        for orphan in orphans {
            if orphan.isContent {
                try takeContent(orphan, mayBeUsed)
                continue
            }
            let problem =
                "the content file \(content.name(of: orphan.node, orphan.generation)) belongs to nothing"
            // What was forgotten on purpose is removed at the next start in any case, and is no
            // sign of anything.
            guard orphan.mayHoldEdits || isRepairing else { continue }
            guard isRepairing else {
                report.problems.append(problem + " and may hold edits")
                continue
            }
            if let place = try ContentOrphans(index: index, content: content).clear(
                orphan, isOpen: mayBeUsed)
            {
                report.repaired.append(
                    problem + " and may hold edits; it is kept as '\(escapedForDisplay(place))'")
            } else {
                report.repaired.append(problem + "; it was removed")
            }
        }
    }

    private mutating func takeContent(
        _ orphan: ContentOrphans.Orphan, _ isOpen: (NodeID) -> Bool
    ) throws(Failure) {
        let name = try shownName(of: orphan.node)
        let problem = "the content of \(name) is here, but the index does not know it"
        guard isRepairing else { return report.problems.append(problem) }
        _ = try ContentOrphans(index: index, content: content).clear(orphan, isOpen: isOpen)
        onChange(orphan.node)
        report.repaired.append(problem + "; it is taken")
    }
}
