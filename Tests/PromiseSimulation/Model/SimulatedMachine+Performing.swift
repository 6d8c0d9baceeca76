import PromiseContent
import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseSync
import PromiseSystem

extension SimulatedMachine {
    /// Does what the kernel would pass on. The number of bytes that were written.
    func perform(_ operation: ModelOperation, _ open: inout [Int: OpenFile]) async throws(Failure)
        -> Int
    {
        switch operation {
        case .create(let path, let slot): open[slot] = try await create(path)
        case .makeFolder(let path): try await makeFolder(path)
        case .makeLink(let path, let target): try await makeLink(path, to: target)
        case .makeFifo(let path): try await makeFifo(path)
        case .addName(let path, let other): try await addName(path, to: other)
        case .unlink(let path): try await unlink(path) { _ in }
        case .removeFolder(let path): try await removeFolder(path)
        case .rename(let path, let other, let flags): try await rename(path, other, flags)
        case .open(let path, let slot, let truncates):
            let known = try await node(at: path).node
            open[slot] = try await self.open(known, flags: truncates ? 0o1002 : 2)
        case .write(let slot, let offset, let bytes):
            return try await put(bytes, open[slot]!, offset)
        case .allocate(let slot, let offset, let count, let mode):
            let position = FilePosition(
                node: open[slot]!.node, handle: open[slot]!.handle, offset: UInt64(offset))
            _ = try await call(stamping: { _ in position.node }) {
                filesystem.allocate(
                    position, count: UInt64(count), mode: mode, caller: caller, reply: $0)
            }
        case .copy(let slot, let other, let count):
            return try await copy(open[slot]!, open[other]!, count)
        case .truncate(let path, let size):
            try await change(path, AttributeChanges(size: UInt64(size)))
        case .setMode(let path, let mode):
            try await change(path, AttributeChanges(permissions: mode))
        case .setAttribute(let path, let name, let value):
            try filesystem.setExtendedAttribute(
                Array(name.utf8), of: try await node(at: path).node, to: value, mode: .any,
                clearsSetGroupID: false,
                caller: caller)
        case .removeAttribute(let path, let name):
            try filesystem.removeExtendedAttribute(
                Array(name.utf8), of: try await node(at: path).node, caller: caller)
        case .synchronize(let slot): try await synchronize(open[slot]!)
        case .close(let slot): close(open.removeValue(forKey: slot)!)
        case .evict(let path): _ = try engine.evict(try await node(at: path).node)
        }
        return 0
    }

    private func makeFifo(_ path: [FileName]) async throws(Failure) {
        let (parent, name) = try await folder(of: path)
        _ = try await call {
            filesystem.makeNode(
                name, in: parent, kind: .fifo, permissions: 0o644, deviceNumber: 0, caller: caller,
                reply: $0)
        }
    }

    private func addName(_ path: [FileName], to other: [FileName]) async throws(Failure) {
        let (parent, name) = try await folder(of: path)
        let node = try await node(at: other).node
        _ = try await call {
            filesystem.addName(name, in: parent, to: node, caller: caller, reply: $0)
        }
    }

    private func rename(_ path: [FileName], _ other: [FileName], _ flags: RenameFlags)
        async throws(Failure)
    {
        let (parent, name) = try await folder(of: path)
        let (newParent, newName) = try await folder(of: other)
        _ = try await call {
            filesystem.rename(
                name, in: parent, to: newName, in: newParent, flags: flags, caller: caller,
                reply: $0)
        }
    }

    private func put(_ bytes: [UInt8], _ file: OpenFile, _ offset: Int) async throws(Failure) -> Int
    {
        try await call(stamping: { _ in file.node }) { (reply: @escaping Reply<Int>) in
            bytes.withUnsafeBytes {
                filesystem.write(
                    FilePosition(node: file.node, handle: file.handle, offset: UInt64(offset)), $0,
                    clearsSetID: false, isPageWrite: false, caller: caller, reply: reply)
            }
        }
    }

    private func copy(_ source: OpenFile, _ target: OpenFile, _ count: Int) async throws(Failure)
        -> Int
    {
        try await call(stamping: { _ in target.node }) {
            filesystem.copyRange(
                from: FilePosition(node: source.node, handle: source.handle, offset: 0),
                to: FilePosition(node: target.node, handle: target.handle, offset: 0), count: count,
                caller: caller,
                reply: $0)
        }
    }

    private func change(_ path: [FileName], _ changes: AttributeChanges) async throws(Failure) {
        let node = try await node(at: path).node
        _ = try await call(stamping: { _ in changes.size != nil ? node : nil }) {
            filesystem.setAttributes(of: node, handle: nil, changes, caller: caller, reply: $0)
        }
    }

    // MARK: Lines

    /// The tree and what is open, as `ReferenceTree` writes them. Only what is here in part is fetched for it.
    func lines(_ open: [Int: OpenFile], _ store: Store) async throws(Failure) -> [String] {
        var result: [String] = []
        try await add(.root, "", store, &result)
        for (slot, file) in open {
            let node = try index.read { transaction throws(Failure) in
                try transaction.node(file.node)
            }
            guard let node, node.linkCount == 0 else { continue }
            result.append("open \(slot) \(ReferenceTree.content(try await bytes(of: node, store)))")
        }
        return result.sorted()
    }

    private func add(_ folder: NodeID, _ path: String, _ store: Store, _ result: inout [String])
        async throws(Failure)
    {
        let children = try index.read { transaction throws(Failure) in
            try transaction.children(of: folder)
        }
        for entry in children {
            let row = try index.read { transaction throws(Failure) in
                try transaction.node(entry.node)
            }
            guard let row else { throw Failure(.invalid, "the name \(entry.name) has no node") }
            let place = path + entry.name.display
            result.append(try await line(of: row, place, store))
            if row.kind == .folder { try await add(row.id, place + "/", store, &result) }
        }
    }

    private func line(of row: Node, _ place: String, _ store: Store) async throws(Failure) -> String
    {
        let shown = try filesystem.entry(of: row.id).attributes
        var attributes: [String: [UInt8]] = [:]
        for name in try filesystem.extendedAttributeNames(of: row.id) {
            let text = String(decoding: name, as: UTF8.self)
            guard text.hasPrefix("user.a") else { continue }
            attributes[text] = try filesystem.extendedAttribute(name, of: row.id, caller: caller)
        }
        let bytes = row.kind == .file ? try await bytes(of: row, store) : []
        if row.kind == .file && UInt64(bytes.count) != shown.size {
            throw Failure(
                .invalid, "\(place) has \(bytes.count) bytes and shows a size of \(shown.size)")
        }
        return ReferenceTree.line(
            place, row.kind, mode: shown.permissions, names: Int(shown.links),
            attributes: attributes, bytes: bytes,
            target: row.target ?? [])
    }

    private func bytes(of row: Node, _ store: Store) async throws(Failure) -> [UInt8] {
        if row.content == .partial { return try await contents(of: row.id) }
        if let local = try localContents(of: row.id) { return local }
        guard let version = row.version, let known = store.contents[version.rawValue] else {
            throw Failure(
                .invalid, "\(row.id) is not here, and the store does not have its version")
        }
        return known
    }
}
