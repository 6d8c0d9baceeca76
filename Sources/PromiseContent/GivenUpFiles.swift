import Glibc
package import PromiseCore
import PromiseSystem

/// What changes held that somebody has given up, until the cache needs room: two files each, the content, which is a link to
/// what the content file was, and whose it was.
package struct GivenUpFiles: Sendable {
    package struct File: Sendable {
        /// Names it for people and calls; sorts by time.
        package var name: String
        /// From the root of the mount.
        package var path: [FileName]
        package var size: UInt64
        package var modificationTime: Timestamp
    }

    private let store: ContentStore
    private var folder: [UInt8] { store.folder + Array("/given-up".utf8) }
    private static let pathMark = ".path"

    init(_ store: ContentStore) { self.store = store }

    /// Writes that go on through an open file go there, too. On the disk when it returns its name: what
    /// is given up is forgotten next.
    package func keep(
        _ node: NodeID, _ generation: Generation, of path: [FileName], at now: Timestamp
    ) throws(Failure) -> String {
        let name = "given-up-\(now.rawValue)-\(node.rawValue)"
        let place = folder + [0x2F] + Array(name.utf8)
        do throws(SystemError) {
            try makeFolders(folder, label: "content.givenUp.folder")
            try writeWhole(Array(path.map(\.bytes).joined(separator: [0x2F])), to: place + Array(GivenUpFiles.pathMark.utf8))
            try PromiseSystem.link(
                store.path(node, generation), in: store.root.number, to: place, label: "content.givenUp.link")
            try settle(place, O_RDONLY)
            try settle(folder, O_RDONLY | O_DIRECTORY)
            try settle(store.folder, O_RDONLY | O_DIRECTORY)
            return name
        } catch {
            // Nothing is given up, then.
            forget(name)
            throw Failure(error)
        }
    }

    /// It was not given up after all.
    package func forget(_ name: String) {
        for text in [name, name + GivenUpFiles.pathMark] { try? unlink(place(text), label: "content.givenUp.undo") }
    }

    private func writeWhole(_ bytes: [UInt8], to path: [UInt8]) throws(SystemError) {
        let file = try Descriptor.open(path, flags: O_WRONLY | O_CREAT | O_TRUNC, mode: 0o600, label: "content.givenUp.make")
        try writeFully(file.number, bytes, at: 0, label: "content.givenUp.write")
        try synchronize(file.number, dataOnly: false, label: "content.givenUp.sync")
    }

    private func settle(_ path: [UInt8], _ flags: CInt) throws(SystemError) {
        let file = try Descriptor.open(path, flags: flags, label: "content.givenUp.settle")
        try synchronize(file.number, dataOnly: false, label: "content.givenUp.settled")
    }

    /// The oldest first.
    package func all() -> [File] {
        let names: [(name: [UInt8], inode: UInt64)]
        do throws(SystemError) {
            let listed = try Descriptor.open(folder, flags: O_RDONLY | O_DIRECTORY, label: "content.givenUp.open")
            names = try listFolder(listed, label: "content.givenUp.list")
        } catch {
            return []
        }
        var files: [File] = []
        for (bytes, _) in names {
            let name = String(decoding: bytes, as: UTF8.self)
            guard name.hasPrefix("given-up-"), !name.hasSuffix(GivenUpFiles.pathMark),
                let status = try? FileStatus.of(place(name), label: "content.givenUp.status"), let path = path(of: name)
            else { continue }
            files.append(File(name: name, path: path, size: status.size, modificationTime: status.modificationTime))
        }
        return files.sorted { $0.name < $1.name }
    }

    /// For `link`; nil when it is none, or has gone.
    package func find(_ name: String, of path: [FileName]) -> File? { all().first { $0.name == name && $0.path == path } }

    /// Makes it a file there.
    package func link(_ file: File, to path: [UInt8]) throws(Failure) {
        do throws(SystemError) {
            try PromiseSystem.link(place(file.name), to: path, label: "content.givenUp.take")
        } catch {
            throw Failure(error)
        }
    }

    /// The same of a content file of the store. Throws `.notFound` when it has gone.
    package func link(_ node: NodeID, _ generation: Generation, to path: [UInt8]) throws(Failure) {
        do throws(SystemError) {
            try PromiseSystem.link(
                store.path(node, generation), in: store.root.number, to: path, label: "content.givenUp.takeKept")
        } catch {
            throw Failure(error)
        }
    }

    /// The oldest go first. Returns how many bytes went.
    package func makeRoom(for byteCount: UInt64) -> UInt64 {
        var freed: UInt64 = 0
        for file in all() where freed < byteCount {
            try? unlink(place(file.name), label: "content.givenUp.remove")
            try? unlink(place(file.name + GivenUpFiles.pathMark), label: "content.givenUp.forget")
            freed += file.size
        }
        return freed
    }

    private func place(_ name: String) -> [UInt8] { folder + [0x2F] + Array(name.utf8) }

    private func path(of name: String) -> [FileName]? {
        guard let file = try? Descriptor.open(place(name + GivenUpFiles.pathMark), flags: O_RDONLY, label: "content.givenUp.path")
        else { return nil }
        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        let count = bytes.withUnsafeMutableBytes { try? readFully(file.number, into: $0, at: 0, label: "content.givenUp.read") }
        let parts = bytes[..<(count ?? 0)].split(separator: 0x2F).map { FileName(Array($0)) }
        return parts.contains { $0 == nil } ? nil : parts.compactMap { $0 }
    }
}

extension ContentStore {
    package var givenUp: GivenUpFiles { GivenUpFiles(self) }
}
