package import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem
import Synchronization

// readdir: pages of a folder's entries in the order of their numbers, which a reader's place is made of, so that no reader
// has anything of its own here. The kernel keeps what it was told and answers later readers by itself. A folder that nobody has
// looked into is told page by page as the provider tells it: what comes later has higher numbers.

extension FileSystem {
    /// Numbers 1 and 2 are the places after `.` and `..`; an entry's is its own number and two.
    private static let dotCount: UInt64 = 2
    /// Entries are read in portions: the index's lock is held once for many, and not for all of a large folder.
    private static let portionCount = 64

    package func readFolder(
        _ id: NodeID, after cookie: UInt64, withAttributes: Bool, add: @escaping @Sendable (FolderEntry) -> Bool,
        reply: @escaping Reply<Void>
    ) -> ParkedRequest? {
        engine.used?.note(id)
        if cookie == 0 { engine.folderIsRead(id) }
        return withListing(of: { id }, extent: .more, reply: reply) { [self] () throws(Failure) in
            guard let node = try known(id) else { throw Failure(.notFound, "the folder was removed") }
            guard node.kind == .folder else { throw Failure(.notFolder, "it is not a folder") }
            let order = try order(of: id, after: cookie, isWhole: node.isPopulated)
            if order.isEmpty && !node.isPopulated { return nil }
            var isEmpty = true
            do throws(Failure) {
                try fillPage(of: id, order, after: cookie, withAttributes: withAttributes) { line in
                    guard add(line) else { return false }
                    isEmpty = false
                    return true
                }
            } catch {
                // What the page has counts as looked up, so it is sent; the next page fails.
                if isEmpty { throw error }
            }
            return ()
        }
    }

    /// Calls `add` with the lines after `cookie`, of which `order` has the entries, until it returns false.
    private func fillPage(
        of id: NodeID, _ order: ArraySlice<EntryID>, after cookie: UInt64, withAttributes: Bool, add: (FolderEntry) -> Bool
    ) throws(Failure) {
        for place in cookie..<max(cookie, Self.dotCount) {
            let node = place == 0 ? id : try parentFolder(of: id)
            let name: [UInt8] = place == 0 ? [0x2E] : [0x2E, 0x2E]
            guard add(FolderEntry(name: name, node: node, kind: .folder, nextCookie: place + 1)) else { return }
        }
        var start = order.startIndex
        while start < order.endIndex {
            let portion = order[start..<min(start + Self.portionCount, order.endIndex)]
            start = portion.endIndex
            for line in try lines(of: id, portion, withAttributes: withAttributes) {
                // Counted first: the kernel may forget as soon as it has the line.
                if withAttributes { references.withLock { $0.lookups[line.node, default: 0] += 1 } }
                guard add(line) else {
                    if withAttributes { forget(line.node, lookups: 1) }
                    return
                }
            }
        }
    }

    /// The numbers of the entries after `cookie`. Read again where a listing starts, so that it has all names of that time; and
    /// at the end of a folder of which not all is known, where there may be more now.
    private func order(of id: NodeID, after cookie: UInt64, isWhole: Bool) throws(Failure) -> ArraySlice<EntryID> {
        guard cookie < UInt64(Int64.max) else { return [] }
        let last = EntryID(Int64(max(cookie, Self.dotCount) - Self.dotCount))
        var order = cookie > 0 ? orders.order(of: id) : nil
        if order == nil {
            let numbers = try index.read { transaction throws(Failure) in try transaction.childNumbers(of: id) }
            orders.keep(numbers, isWhole: isWhole, of: id)
            order = (numbers, isWhole)
        }
        guard let order else { return [] }
        let rest = order.numbers[order.numbers.partitioningIndex { $0.rawValue > last.rawValue }...]
        guard rest.isEmpty, cookie > 0 else { return rest }
        let more = order.isWhole ? [] : try index.read { transaction throws(Failure) in
            try transaction.childNumbers(of: id, after: last)
        }
        if !more.isEmpty { orders.append(more, to: id) }
        if more.isEmpty && isWhole { orders.drop(id) }
        return more[...]
    }

    /// With attributes a line becomes a name in the kernel's cache, so all of it is of one moment.
    private func lines(
        of id: NodeID, _ portion: ArraySlice<EntryID>, withAttributes: Bool
    ) throws(Failure) -> [FolderEntry] {
        try index.read { transaction throws(Failure) in
            try transaction.children(of: id, numbered: portion).map { child in
                FolderEntry(
                    name: child.name.bytes, node: child.node.id, kind: child.node.kind,
                    nextCookie: UInt64(child.id.rawValue) + Self.dotCount,
                    entry: withAttributes ? entryReply(for: child.node) : nil)
            }
        }
    }

    /// A folder that was removed is in itself: whoever has it open finds nothing else by its `..`.
    func parentFolder(of id: NodeID) throws(Failure) -> NodeID {
        if id == .root { return id }
        return try index.read { transaction throws(Failure) in try transaction.entries(of: id).first?.parent ?? id }
    }
}

extension Array {
    /// Where the elements begin for which `isAfter` is true; it is false for all before them.
    fileprivate func partitioningIndex(where isAfter: (Element) -> Bool) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = low + (high - low) / 2
            if isAfter(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
