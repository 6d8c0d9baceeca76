import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSync

/// A folder as one ZIP archive: every name below it, once, with its content, and nothing else. Several names of one file are
/// as many files there.
struct FolderArchive {
    private let index: Index
    private let content: ContentStore

    private let isGivenUp: () -> Bool

    init(_ index: Index, _ content: ContentStore, isGivenUp: @escaping () -> Bool) {
        self.index = index
        self.content = content
        self.isGivenUp = isGivenUp
    }

    /// A name to be archived, and the names from the folder's own to it.
    private struct Place {
        var names: [FileName]
        var node: Node
    }

    /// False when something was written, made, moved or removed meanwhile, or content is not here.
    func write(_ folder: NodeID, to descriptor: CInt) throws(Failure) -> Bool {
        let writer = try ArchiveWriter(descriptor, isGivenUp: isGivenUp)
        let places = try self.places(from: folder)
        for place in places {
            guard try add(place, to: writer) else { return false }
        }
        try writer.finish()
        // What was moved behind it would be in neither place, or in both.
        return try self.places(from: folder).elementsEqual(places) { $0.names == $1.names && $0.node.id == $1.node.id }
    }

    /// Each before what is below it. A folder at a time: calls on the mount wait for who reads the index.
    private func places(from folder: NodeID) throws(Failure) -> [Place] {
        let (root, name) = try index.read { transaction throws(Failure) in
            (try transaction.node(folder), try transaction.entries(of: folder).first?.name)
        }
        guard let root else { throw Failure(.gone, "the folder was removed meanwhile") }
        // Of the whole mount there is no name to begin with.
        var waiting = [Place(names: name.map { [$0] } ?? [], node: root)]
        var places: [Place] = []
        while let place = waiting.popLast() {
            places.append(place)
            if place.node.kind == .folder { waiting += try children(of: place).reversed() }
        }
        return places
    }

    private func children(of place: Place) throws(Failure) -> [Place] {
        try index.read { transaction throws(Failure) in
            var result: [Place] = []
            for entry in try transaction.children(of: place.node.id) {
                guard let node = try transaction.node(entry.node) else { continue }
                result.append(Place(names: place.names + [entry.name], node: node))
            }
            return result
        }
    }

    private func add(_ place: Place, to writer: ArchiveWriter) throws(Failure) -> Bool {
        guard !place.names.isEmpty, var archived = ArchivedNode(place.node) else { return true }
        let path = Array(place.names.map(\.bytes).joined(separator: [UInt8(ascii: "/")]))
        guard place.node.kind == .file else {
            try writer.add(path, archived)
            return true
        }
        guard place.node.content == .whole else { return false }
        let source = try UploadSource(content, node: place.node.id, generation: place.node.generation)
        archived.size = source.size
        try writer.add(path, archived, descriptor: source.descriptor)
        return (try? source.validate()) != nil
    }
}
