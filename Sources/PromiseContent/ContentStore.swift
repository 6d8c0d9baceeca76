import Glibc
package import PromiseCore
package import PromiseSystem
import Synchronization

/// The content files of one domain, named by node and generation: `FOLDER/af/12ab.3` holds node 0x12ab, generation 3.
///
/// Replacing content is a file of the next generation and an index commit, never an overwrite; what no index row names
/// is rubbish and is removed at start. Thread-safe: it has no state but the folder, and who is told of removals.
package final class ContentStore: Sendable {
    let folder: [UInt8]
    /// The same folder, open: files are reached from here, whatever the length of its path.
    let root: Descriptor
    private let partCount: Int
    /// A closure stored as a generic value itself would be wrapped once more at every access.
    private struct RemovalObserver { var body: @Sendable (NodeID) -> Void }
    private let removalObserver = Mutex<RemovalObserver?>(nil)

    /// Makes the folder and its parts when they are missing. A store is opened with as many parts as it was made with:
    /// 256, or fewer for who makes thousands of stores. A power of two.
    package init(folder: [UInt8], partCount: Int = 256) throws(Failure) {
        precondition(partCount <= 256 && partCount.nonzeroBitCount == 1, "a store has no \(partCount) parts")
        self.folder = folder
        self.partCount = partCount
        do throws(SystemError) {
            try makeFolders(folder, label: "content.folder.make")
            for part in 0..<partCount {
                let path = folder + [0x2F] + Array(hexadecimal(UInt8(part)).utf8)
                do throws(SystemError) { try makeFolder(path, label: "content.part") } catch  where error.errno == EEXIST {}
            }
            root = try Descriptor.open(folder, flags: O_RDONLY | O_DIRECTORY, label: "content.folder.open")
        } catch {
            throw Failure(error)
        }
    }

    /// A new content file of `size` zero bytes that take no disk. One that exists is rubbish of a crash and emptied.
    package func create(_ node: NodeID, _ generation: Generation, size: UInt64 = 0) throws(Failure) -> Descriptor {
        do throws(SystemError) {
            let file = try Descriptor.open(
                path(node, generation), in: root.number, flags: O_RDWR | O_CREAT | O_TRUNC, mode: 0o600, label: "content.create")
            if size > 0 { try truncate(file.number, to: size, label: "content.size") }
            return file
        } catch {
            throw Failure(error)
        }
    }

    /// A file without a name, gone with its last descriptor: O_TMPFILE of open(2).
    package func scratch() throws(Failure) -> Descriptor {
        do throws(SystemError) {
            // O_TMPFILE is __O_TMPFILE with O_DIRECTORY; glibc shows it only to GNU sources.
            return try Descriptor.open(
                [0x2E], in: root.number, flags: O_RDWR | 0o20000000 | O_DIRECTORY, mode: 0o600, label: "content.scratch")
        } catch {
            throw Failure(error)
        }
    }

    /// Throws `.corrupted` when the index names a file that is not there.
    package func open(_ node: NodeID, _ generation: Generation, writable: Bool = true) throws(Failure) -> Descriptor {
        do throws(SystemError) {
            return try Descriptor.open(
                path(node, generation), in: root.number, flags: writable ? O_RDWR : O_RDONLY, label: "content.open")
        } catch {
            if error.errno == ENOENT {
                throw Failure(.corrupted, "the local content of node \(node) is missing: run 'promisefs verify'")
            }
            throw Failure(error)
        }
    }

    /// Everything that is on its disk.
    package func synchronizeAll() throws(Failure) {
        do throws(SystemError) {
            try synchronizeFileSystem(root.number, label: "content.synchronize.all")
        } catch {
            throw Failure(error)
        }
    }

    /// Nil when there is no such file.
    package func status(_ node: NodeID, _ generation: Generation) throws(Failure) -> FileStatus? {
        do throws(SystemError) {
            return try FileStatus.of(path(node, generation), in: root.number, label: "content.status")
        } catch {
            if error.errno == ENOENT { return nil }
            throw Failure(error)
        }
    }

    /// `body` is called after each removal, on the thread that removed.
    package func onRemoval(_ body: @escaping @Sendable (NodeID) -> Void) {
        removalObserver.withLock { $0 = RemovalObserver(body: body) }
    }

    /// Removing what is not there is done. Readers that have the file open keep it.
    package func remove(_ node: NodeID, _ generation: Generation) throws(Failure) {
        defer { noteRemoval(of: node) }
        do throws(SystemError) {
            try unlink(path(node, generation), in: root.number, label: "content.remove")
        } catch {
            if error.errno != ENOENT { throw Failure(error) }
        }
    }

    func noteRemoval(of node: NodeID) { removalObserver.withLock { $0 }?.body(node) }

    /// For people: the file's place in the store.
    package func name(of node: NodeID, _ generation: Generation) -> String { escapedForDisplay(path(node, generation)) }

    /// Every content file with its node and generation, in no order; files with other names are skipped.
    package func forEachFile(_ body: (NodeID, Generation) throws(Failure) -> Void) throws(Failure) {
        for part in 0..<partCount { try forEachFile(inPart: UInt8(part), body) }
    }

    /// Which content files a node has; one, as a rule. Reads one of the parts.
    package func generations(of node: NodeID) throws(Failure) -> [Generation] {
        var found: [Generation] = []
        try forEachFile(inPart: part(of: node)) { id, generation throws(Failure) in
            if id == node { found.append(generation) }
        }
        return found
    }

    private func forEachFile(
        inPart part: UInt8, _ body: (NodeID, Generation) throws(Failure) -> Void
    ) throws(Failure) {
        let names: [(name: [UInt8], inode: UInt64)]
        do throws(SystemError) {
            let path = folder + [0x2F] + Array(hexadecimal(part).utf8)
            names = try listFolder(
                Descriptor.open(path, flags: O_RDONLY | O_DIRECTORY, label: "content.list.open"), label: "content.list.read")
        } catch {
            throw Failure(error)
        }
        for (name, _) in names {
            let parts = String(decoding: name, as: UTF8.self).split(separator: ".")
            guard parts.count == 2, let node = UInt64(parts[0], radix: 16), let generation = UInt64(parts[1]) else { continue }
            try body(NodeID(node), Generation(generation))
        }
    }

    /// Free and total bytes of the disk that holds the store, for this user. statvfs(3).
    package func space() -> (free: UInt64, total: UInt64) {
        var status = statvfs()
        let result = withCPath(folder) { path in statvfs(path, &status) }
        guard result == 0 else { return (0, 0) }
        let block = UInt64(status.f_frsize)
        return (UInt64(status.f_bavail) * block, UInt64(status.f_blocks) * block)
    }

    private func part(of node: NodeID) -> UInt8 { UInt8(node.rawValue & UInt64(partCount - 1)) }

    /// Relative to the folder. Made byte by byte: it is needed at every open.
    func path(_ node: NodeID, _ generation: Generation) -> [UInt8] {
        var path: [UInt8] = []
        path.reserveCapacity(40)
        let part = part(of: node)
        path.append(hexadecimalDigit(part >> 4))
        path.append(hexadecimalDigit(part & 15))
        path.append(0x2F)
        append(node.rawValue, radix: 16, to: &path)
        path.append(0x2E)
        append(generation.rawValue, radix: 10, to: &path)
        return path
    }
}

private func hexadecimalDigit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x57 + value }

private func append(_ number: UInt64, radix: UInt64, to path: inout [UInt8]) {
    let start = path.count
    var rest = number
    repeat {
        path.append(hexadecimalDigit(UInt8(rest % radix)))
        rest /= radix
    } while rest > 0
    path[start...].reverse()
}
