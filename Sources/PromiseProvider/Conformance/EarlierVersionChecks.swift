import PromiseCore

// What a file was before, where the storage says that it keeps it: in its order, whole, and no
// harm to what the file is.

enum EarlierVersionChecks {
    /// More of one file are not listed.
    private static let countMax = 10_000

    static let all: [ConformanceCheck] = [
        check("an earlier version is read whole, as long as it is said to be") { file in
            for version in try await file.kept() {
                let bytes = try await file.read(version)
                try file.context.require(
                    UInt64(bytes.count) == version.size,
                    "\(bytes.count) bytes came of a version of \(version.size)")
                guard let age = file.contents.firstIndex(where: { areEqual($0, bytes) }) else {
                    throw ConformanceFailure("what came of a version the file never was")
                }
                // Not every storage calls it what it was called when it was the current one.
                let named = file.versions.firstIndex(of: version.version)
                try file.context.require(
                    named == nil || named == age, "what came of a version is another version's")
            }
        },
        check("earlier versions are listed the newest first, each once") { file in
            let kept = try await file.kept()
            try file.context.require(
                kept.count <= countMax, "\(kept.count) versions of one file are listed")
            try file.context.require(
                Set(kept.map(\.identifier)).count == kept.count, "a version is listed twice")
            for (newer, older) in zip(kept, kept.dropFirst()) {
                try file.context.require(
                    newer.modificationTime >= older.modificationTime,
                    "a version is listed before one that is newer by its time")
                // Of what was saved within one tick nobody knows which was first.
                guard newer.modificationTime > older.modificationTime,
                    let first = file.age(newer), let second = file.age(older)
                else { continue }
                try file.context.require(
                    first > second, "a version is listed before one that was saved later")
            }
        },
        check("what a file is now is no earlier version of it") { file in
            for version in try await file.kept() {
                try file.context.require(
                    file.age(version) != file.contents.count - 1
                        && version.version != file.item.version,
                    "what the file is now is listed as what it was")
            }
        },
        check("an earlier version that is not kept is not found") { file in
            let unknown = EarlierVersion(
                identifier: "no-such-version", version: ContentVersion("no-such-version"), size: 3,
                modificationTime: ConformanceContext.metadata.modificationTime)
            try await file.context.expect(.notFound, "reading a version that is not kept") {
                _ = try await file.read(unknown)
            }
        },
        check("reading an earlier version changes nothing") { file in
            let kept = try await file.kept()
            for version in kept { _ = try await file.read(version) }
            let seen = try await file.context.provider.item(for: file.reference)
            try file.context.require(seen == file.item, "the file is another one after it")
            try await file.context.checkContent(file.item, is: file.contents.last ?? [])
            try file.context.require(
                try await file.list() == kept, "other versions are listed after it")
        },
        ConformanceCheck("what is not there has no earlier versions", needs: .versions) { context in
            let name = FileName(trusted: Array("nothing".utf8))
            let nothing = ItemReference(
                identifier: ItemIdentifier("promisefs-check-nothing"),
                path: context.folder.path + [name])
            var listed: [EarlierVersion] = []
            do throws(ProviderError) {
                listed = try await context.provider.earlierVersions(of: nothing)
            } catch where error.code != .notFound {
                throw ConformanceFailure(
                    "they must be none or notFound, not \(error.code): \(error.message)")
            } catch {}
            try context.require(listed.isEmpty, "\(listed.count) are listed")
        },
    ]

    private static func check(
        _ sentence: String, _ body: @escaping @Sendable (EditedFile) async throws -> Void
    ) -> ConformanceCheck {
        ConformanceCheck(sentence, needs: .versions) { context in
            try await body(try await EditedFile(context))
        }
    }
}

/// A file that had other contents before, each of another size.
private struct EditedFile {
    private static let sizes = [5000, 3, 70_000, 9]

    let context: ConformanceContext
    let item: Item
    let reference: ItemReference
    /// The oldest first; the last is what it has now.
    let contents: [[UInt8]]
    /// What each was called when it was the current one.
    let versions: [ContentVersion]

    /// Its name was never there: some storages keep what a place had.
    init(_ context: ConformanceContext) async throws {
        let contents = EditedFile.sizes.map { pattern($0, seed: UInt64($0)) }
        var metadata = ConformanceContext.metadata
        let name = "file-" + String(UInt64.random(in: 0 ... .max), radix: 36)
        var item = try await context.makeFile(name, contents[0], metadata: metadata)
        var versions = [item.version]
        for bytes in contents.dropFirst() {
            metadata.modificationTime = metadata.modificationTime.advanced(by: .seconds(100))
            item = try await context.provider.modify(
                context.reference(item), changes: ItemChanges(metadata: metadata),
                contents: try context.source(bytes), baseVersion: item.version)
            versions.append(item.version)
        }
        (self.context, self.item) = (context, item)
        (self.contents, self.versions) = (contents, versions)
        reference = context.reference(item)
    }

    func list() async throws -> [EarlierVersion] {
        try await context.provider.earlierVersions(of: reference)
    }

    /// A storage may keep what it likes.
    func kept() async throws -> [EarlierVersion] {
        let kept = try await list()
        guard !kept.isEmpty else {
            throw ConformanceLack("of a file that was modified three times nothing is kept")
        }
        return kept
    }

    func read(_ version: EarlierVersion) async throws -> [UInt8] {
        let sink = ConformanceSink()
        try await context.provider.fetchContents(of: reference, earlier: version, into: sink)
        try context.require(
            sink.repeatedByteCount == 0, "\(sink.repeatedByteCount) bytes came more than once")
        let bytes = sink.bytes
        try context.require(
            sink.takenByteCount == UInt64(bytes.count), "a part in the middle did not come")
        return bytes
    }

    /// Which of the contents it is by what it says; nil: none that the file had.
    func age(_ version: EarlierVersion) -> Int? {
        contents.firstIndex { UInt64($0.count) == version.size }
    }
}
