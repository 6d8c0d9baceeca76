package import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem
import Synchronization

// opendir, readdir, and what they cost: one snapshot of names per open, attributes as they are read.

/// Open folders. A reader sees the names that were there when it started (or rewound), each once.
final class FolderHandles: Sendable {
    struct Listing {
        var node: NodeID
        var entries: [Entry]?
    }

    private let state = Mutex<(listings: [HandleID: Listing], next: UInt64)>(([:], 1))

    func open(_ node: NodeID) -> HandleID {
        state.withLock { state in
            let id = HandleID(state.next)
            state.next += 1
            state.listings[id] = Listing(node: node, entries: nil)
            return id
        }
    }

    func entries(_ id: HandleID) -> [Entry]? { state.withLock { $0.listings[id]?.entries } }
    func setEntries(_ entries: [Entry], of id: HandleID) { state.withLock { $0.listings[id]?.entries = entries } }
    func close(_ id: HandleID) { state.withLock { $0.listings[id] = nil } }
}

extension FileSystem {
    package func openFolder(_ id: NodeID, caller: Caller, reply: @escaping Reply<OpenFolderReply>) -> ParkedRequest? {
        withListing(of: id, reply: reply) { [self] () throws(Failure) in
            guard let node = try known(id) else { throw Failure(.notFound, "the folder was removed") }
            guard node.kind == .folder else { throw Failure(.notFolder, "it is not a folder") }
            guard node.isPopulated else { return nil }
            return OpenFolderReply(handle: folders.open(id), cachesListing: true, keepsCache: true)
        }
    }

    package func readFolder(
        _ id: NodeID, handle: HandleID, after cookie: UInt64, withAttributes: Bool, add: (FolderEntry) -> Bool
    ) throws(Failure) {
        let entries: [Entry]
        if cookie > 0, let known = folders.entries(handle) {
            entries = known
        } else {
            entries = try index.read { transaction throws(Failure) in try transaction.children(of: id) }
            folders.setEntries(entries, of: handle)
        }
        var position = cookie
        while position < 2 {
            let isSelf = position == 0
            let parent = isSelf || id == .root ? id : try parentFolder(of: id)
            let line = FolderEntry(name: isSelf ? [0x2E] : [0x2E, 0x2E], node: parent, kind: .folder, nextCookie: position + 1)
            guard add(line) else { return }
            position += 1
        }
        // Nodes are read in portions: the index's lock is held once for many, and not for all of a large folder.
        while position - 2 < UInt64(entries.count) {
            let start = Int(position - 2)
            let portion = entries[start..<min(start + 256, entries.count)]
            let lines: [FolderEntry?] = try index.read { transaction throws(Failure) in
                var result: [FolderEntry?] = []
                result.reserveCapacity(portion.count)
                for entry in portion {
                    // A line with attributes becomes a name in the kernel's cache, so it must still be true.
                    if withAttributes, try transaction.entry(in: id, named: entry.name)?.node != entry.node {
                        result.append(nil)
                    } else {
                        result.append(try transaction.node(entry.node).map { line(entry, $0, withAttributes: withAttributes) })
                    }
                }
                return result
            }
            for line in lines {
                position += 1
                // A name that went since the listing was made is not shown.
                guard var line else { continue }
                line.nextCookie = position
                // Counted first: the kernel may forget as soon as it has the line.
                if withAttributes { references.withLock { $0.lookups[line.node, default: 0] += 1 } }
                guard add(line) else {
                    if withAttributes { forget(line.node, lookups: 1) }
                    return
                }
            }
        }
    }

    private func line(_ entry: Entry, _ node: Node, withAttributes: Bool) -> FolderEntry {
        FolderEntry(
            name: entry.name.bytes, node: node.id, kind: node.kind, nextCookie: 0,
            entry: withAttributes ? entryReply(for: node) : nil)
    }

    private func parentFolder(of id: NodeID) throws(Failure) -> NodeID {
        try index.read { transaction throws(Failure) in try transaction.entries(of: id).first?.parent ?? .root }
    }

    package func synchronizeFolder(_ id: NodeID, handle: HandleID, reply: @escaping Reply<Void>) -> ParkedRequest? {
        // Only the disk is waited for, so nothing is there to interrupt.
        let request = parking.enter { reply(.failure($0)) }
        workers.submit { [self] in
            let result: Result<Void, Failure>
            do throws(Failure) {
                try index.synchronize()
                result = .success(())
            } catch {
                result = .failure(error)
            }
            if parking.claim(request) { reply(result) }
        }
        return request
    }

    package func releaseFolder(_ id: NodeID, handle: HandleID) { folders.close(handle) }
}
