package import PromiseCore
import PromiseIndex
import Synchronization

// Listings. Those of the view's own folders are small and made anew for each page: a reader's place
// is the number of a line. `granted` goes on with the scratch folder, whose places are its own.

extension View {
    /// Places below are in the view's own lines, those above in the scratch folder.
    private static let ownMax: UInt64 = 1 << 32

    package func readFolder(
        _ node: NodeID, after cookie: UInt64, withAttributes: Bool,
        add: @escaping @Sendable (FolderEntry) -> Bool, reply: @escaping Reply<Void>
    ) -> ParkedRequest? {
        let own = ViewNode(node)
        guard case .tree(let folder) = own else {
            return guarded(reply) { () throws(Failure) in
                if cookie < Self.ownMax, try !addOwn(own, after: cookie, withAttributes, add) {
                    reply(.success(()))
                    return nil
                }
                guard own == .granted else {
                    reply(.success(()))
                    return nil
                }
                let place = cookie < Self.ownMax ? 2 : cookie - Self.ownMax
                return try read(
                    launch.folders.scratch, after: place, withAttributes, shift: Self.ownMax, add,
                    reply)
            }
        }
        return guarded(reply) { () throws(Failure) in
            try read(folder, after: cookie, withAttributes, shift: 0, add, reply)
        }
    }

    private func read(
        _ folder: NodeID, after place: UInt64, _ withAttributes: Bool, shift: UInt64,
        _ add: @escaping @Sendable (FolderEntry) -> Bool, _ reply: @escaping Reply<Void>
    ) throws(Failure) -> ParkedRequest? {
        let reach = try demand(.read, of: folder, "readFolder")
        return tree.readFolder(folder, after: place, withAttributes: withAttributes) { [self] line in
            var line = line
            let node = line.node
            line.node = ViewNode.tree(node).shown
            line.nextCookie += shift
            // Counted first: the kernel may forget as soon as it has the line.
            line.entry = line.entry.map { shown($0, reach: reach) }
            if add(line) { return true }
            if line.entry != nil { uncount(node) }
            return false
        } reply: {
            reply($0)
        }
    }

    /// The tree takes its own count back for a line that was not taken.
    private func uncount(_ node: NodeID) {
        state.withLock { state in
            guard let known = state.known[node] else { return }
            state.known[node]?.lookups -= 1
            if known.lookups == 1 { state.known[node] = nil }
        }
    }

    /// False when there was no room for all.
    private func addOwn(
        _ node: ViewNode, after cookie: UInt64, _ withAttributes: Bool,
        _ add: (FolderEntry) -> Bool
    ) throws(Failure) -> Bool {
        let dots: [[UInt8]] = [[0x2E], [0x2E, 0x2E]]
        var place: UInt64 = 0
        for name in dots {
            place += 1
            guard place > cookie else { continue }
            let line = FolderEntry(name: name, node: node.shown, kind: .folder, nextCookie: place)
            if !add(line) { return false }
        }
        for line in try given.lines(of: node) {
            place += 1
            let number = line.entry.attributes.node
            var isTaken = false
            if place > cookie {
                isTaken = add(
                    FolderEntry(
                        name: line.name.bytes, node: number, kind: line.entry.attributes.kind,
                        nextCookie: place, entry: withAttributes ? line.entry : nil))
                if !isTaken || !withAttributes { forget(number, lookups: 1) }
                if !isTaken { return false }
            } else {
                forget(number, lookups: 1)
            }
        }
        return true
    }

    package func synchronizeFolder(
        _ node: NodeID, reply: @escaping Reply<Void>
    ) -> ParkedRequest? {
        let folder: NodeID
        switch ViewNode(node) {
        case .tree(let node): folder = node
        // What is saved by `granted` is in the folders of documents.
        case .granted: folder = launch.folders.scratch
        case .root:
            reply(.success(()))
            return nil
        }
        return guarded(reply) { () throws(Failure) in
            try demand(.read, of: folder, "synchronizeFolder")
            return tree.synchronizeFolder(folder, reply: reply)
        }
    }
}
