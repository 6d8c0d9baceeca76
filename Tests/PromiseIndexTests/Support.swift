import Glibc
import PromiseCore
import PromiseIndex
import PromiseSystem
import PromiseTestSupport
import Testing

typealias Index = PromiseIndex.Index

extension TemporaryFolder {
    var database: [UInt8] { path("index.sqlite") }

    func open(cacheCountMax: Int = 1_000) throws -> Index { try Index(path: database, cacheCountMax: cacheCountMax) }

    /// What a kill leaves at this moment, in a folder of its own: the kernel has every byte that was written. Returns the
    /// path of the copied database. No other thread may write meanwhile.
    func copyOfDatabase(_ name: String, from source: [UInt8]? = nil) throws -> [UInt8] {
        try makeFolder(name)
        let copy = path(name + "/index.sqlite")
        for suffix in ["", "-wal", "-redo-a", "-redo-b"] {
            guard let bytes = try? readFile((source ?? database) + Array(suffix.utf8)) else { continue }
            try writeFile(bytes, to: copy + Array(suffix.utf8))
        }
        return copy
    }

    /// A file on the disk that the database is on.
    func fileBeside() throws -> Descriptor {
        try Descriptor.open(path("beside"), flags: O_RDWR | O_CREAT, label: "test")
    }

    var flushesWithAnyFile: Bool {
        get throws {
            let descriptor = try fileBeside()
            return try FileSystemFacts.of(descriptor: descriptor.number, label: "test").flushesWithAnyFile
        }
    }
}

func name(_ text: String) -> FileName { FileName(text)! }

func time(_ nanoseconds: Int64) -> Timestamp { Timestamp(nanoseconds: nanoseconds) }

func item(
    _ identifier: String, in parent: String?, named name: FileName, kind: NodeKind = .file, mode: UInt32 = 0o644,
    version: String = "1"
) -> Item {
    Item(
        identifier: ItemIdentifier(identifier), parent: parent.map { ItemIdentifier($0) }, name: name, kind: kind, size: 3,
        metadata: Metadata(mode: mode, owner: 0, group: 0, modificationTime: time(5)), version: ContentVersion(version))
}

extension Transaction {
    /// A node with one entry, as `create` and `mkdir` make it.
    @discardableResult
    func make(
        _ kind: NodeKind = .file, in parent: NodeID = .root, named name: FileName, identifier: String? = nil,
        change: (inout Node) -> Void = { _ in }
    ) throws(Failure) -> (node: Node, entry: Entry) {
        var node = Node(id: .root, kind: kind, mode: 0o644, owner: 0, group: 0, time: time(5))
        change(&node)
        let stored = try insert(node)
        let entry = try insertEntry(in: parent, named: name, node: stored.id, identifier: identifier.map { ItemIdentifier($0) })
        try record(.created, node: stored.id, parent: parent, name: name)
        return (stored, entry)
    }
}

/// The failure that `body` throws; nil when it throws none.
func failure(_ body: () throws -> Void) -> Failure.Code? {
    do {
        try body()
        return nil
    } catch {
        return (error as? Failure)?.code
    }
}
