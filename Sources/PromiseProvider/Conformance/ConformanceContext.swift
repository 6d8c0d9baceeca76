import PromiseCore
import PromiseSystem

/// What a check works with: the provider, a folder of its own, and the questions most checks ask.
struct ConformanceContext: Sendable {
    let provider: any Provider
    let folder: ItemReference
    let scratch: [UInt8]

    /// A mode and a time that every store keeps which keeps any, with a whole second for those that keep no more.
    static let metadata = Metadata(
        mode: 0o644, owner: 0, group: 0, modificationTime: Timestamp(seconds: 1_600_000_000, nanoseconds: 0))

    // MARK: Making

    func source(_ bytes: [UInt8]) throws -> ConformanceSource {
        try ConformanceSource(size: UInt64(bytes.count), pieces: [(0, bytes)], scratch: scratch)
    }

    func makeFile(
        _ name: String, _ bytes: [UInt8], in parent: ItemReference? = nil, metadata: Metadata = ConformanceContext.metadata
    ) async throws -> Item {
        try await makeFile(FileName(trusted: Array(name.utf8)), bytes, in: parent, metadata: metadata)
    }

    func makeFile(
        _ name: FileName, _ bytes: [UInt8], in parent: ItemReference? = nil, metadata: Metadata = ConformanceContext.metadata
    ) async throws -> Item {
        let new = NewItem(name: name, kind: .file, metadata: metadata)
        return try await provider.create(new, in: parent ?? folder, contents: try source(bytes))
    }

    func makeFolder(_ name: String, in parent: ItemReference? = nil) async throws -> Item {
        var metadata = ConformanceContext.metadata
        metadata.mode = 0o755
        let new = NewItem(name: FileName(trusted: Array(name.utf8)), kind: .folder, metadata: metadata)
        return try await provider.create(new, in: parent ?? folder, contents: nil)
    }

    func makeLink(_ name: String, to target: [UInt8]) async throws -> Item {
        let new = NewItem(
            name: FileName(trusted: Array(name.utf8)), kind: .link, metadata: ConformanceContext.metadata, target: target)
        return try await provider.create(new, in: folder, contents: nil)
    }

    func reference(_ item: Item, in parent: ItemReference? = nil) -> ItemReference {
        ItemReference(identifier: item.identifier, path: (parent ?? folder).path + [item.name])
    }

    // MARK: Asking

    /// Every page of a folder.
    func list(_ parent: ItemReference? = nil) async throws -> [Item] {
        var items: [Item] = []
        var page: PageToken?
        repeat {
            let answer = try await provider.enumerateItems(in: parent ?? folder, page: page)
            items += answer.items
            page = answer.next
        } while page != nil
        return items
    }

    func fetch(_ item: Item, in parent: ItemReference? = nil, range: ByteRange? = nil) async throws -> ConformanceSink {
        let sink = ConformanceSink()
        try await provider.fetchContents(of: reference(item, in: parent), version: item.version, range: range, into: sink)
        try require(sink.repeatedByteCount == 0, "\(sink.repeatedByteCount) bytes came more than once")
        return sink
    }

    func checkContent(_ item: Item, is bytes: [UInt8], in parent: ItemReference? = nil) async throws {
        let sink = try await fetch(item, in: parent)
        try require(sink.takenByteCount == UInt64(bytes.count), "\(sink.takenByteCount) bytes came of \(bytes.count)")
        try require(areEqual(sink.bytes, bytes), "the bytes that came are not those that were sent")
    }

    // MARK: Demanding

    func require(_ condition: Bool, _ sentence: @autoclosure () -> String) throws {
        guard condition else { throw ConformanceFailure(sentence()) }
    }

    /// Throws unless `body` throws a provider error with the code.
    func expect(_ code: ProviderError.Code, _ what: String, _ body: () async throws -> Void) async throws {
        do {
            try await body()
        } catch let error as ProviderError {
            return try require(error.code == code, "\(what) must be \(code), not \(error.code): \(error.message)")
        }
        throw ConformanceFailure("\(what) must be \(code), but it was done")
    }

    /// Removes the check's folder and what is in it.
    func removeEverything() async throws { try await remove(folder) }

    private func remove(_ parent: ItemReference) async throws {
        for item in try await list(parent) {
            let reference = reference(item, in: parent)
            if item.kind == .folder {
                try await remove(reference)
            } else {
                try await provider.delete(reference, baseVersion: nil)
            }
        }
        try await provider.delete(parent, baseVersion: nil)
    }
}
