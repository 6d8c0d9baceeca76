import PromiseCore

/// The rules of `Provider` that can be checked without changing anything, on what is there. A check for which nothing fit is
/// there is skipped.
package struct ReadingChecks: Sendable {
    private let provider: any Provider
    /// Larger files are not fetched.
    private static let byteCountMax: UInt64 = 16 << 20
    /// So many items are looked at one by one.
    private static let itemsMax = 20

    package init(provider: any Provider) { self.provider = provider }

    package func run() async -> ConformanceReport {
        var results: [ConformanceResult] = []
        var root: Item?
        var items: [Item] = []
        results.append(
            await check("the root is a folder") {
                let item = try await provider.root()
                root = item
                try require(item.kind == .folder && item.parent == nil, "the root is a \(item.kind)")
            })
        guard let root else { return report(results) }
        let folder = ItemReference(identifier: root.identifier, path: [])
        results.append(
            await check("the root lists, each name once") {
                items = try await list(folder)
                try require(Set(items.map(\.name)).count == items.count, "a name is listed twice")
                try require(Set(items.map(\.identifier)).count == items.count, "two items have one identifier")
            })
        results.append(
            await check("items are found as they are listed") {
                for item in items.prefix(ReadingChecks.itemsMax) {
                    var seen = try await provider.item(for: reference(item))
                    // A listing may leave for later what it does not tell.
                    if item.isGuess { (seen.metadata, seen.isGuess) = (item.metadata, true) }
                    try require(seen == item, "'\(item.name.display)' differs from its listing")
                }
            })
        results.append(
            await check("what is not there is not found") {
                let name = FileName(trusted: Array(".promisefs-check-nothing".utf8))
                let nothing = ItemReference(identifier: ItemIdentifier("/.promisefs-check-nothing"), path: [name])
                try await expect(.notFound, "looking at what is not there") { _ = try await provider.item(for: nothing) }
            })
        let file = items.first { $0.kind == .file && (1...ReadingChecks.byteCountMax).contains($0.size) }
        results += await contentChecks(file)
        return report(results)
    }

    private func contentChecks(_ file: Item?) async -> [ConformanceResult] {
        guard let file else {
            return [ConformanceResult(name: "content can be read", outcome: .skipped("no file of up to 16 MiB in the root"))]
        }
        var whole: [UInt8] = []
        var results = [
            await check("content has the size that is listed") {
                whole = try await fetch(file, nil)
                try require(UInt64(whole.count) == file.size, "\(whole.count) bytes came of \(file.size)")
            },
            await check("an old version is stale") {
                var old = file
                old.version = ContentVersion("no version of this file")
                try await expect(.stale, "fetching a version that is not there") { _ = try await fetch(old, nil) }
            },
        ]
        if provider.capabilities.contains(.ranges) {
            results.append(
                await check("a range is a part of the content") {
                    let range = ByteRange(file.size / 2, file.size)
                    let part = try await fetch(file, range)
                    try require(part.dropFirst(Int(range.lower)).elementsEqual(whole[Int(range.lower)...]), "other bytes came")
                })
        }
        return results
    }

    // MARK: Means

    private func check(_ name: String, _ body: () async throws -> Void) async -> ConformanceResult {
        do {
            try await body()
            return ConformanceResult(name: name, outcome: .passed)
        } catch let error as ConformanceFailure {
            return ConformanceResult(name: name, outcome: .failed(error.sentence))
        } catch let error as ProviderError {
            return ConformanceResult(name: name, outcome: .failed("\(error.code): \(error.message)"))
        } catch {
            return ConformanceResult(name: name, outcome: .failed("\(error)"))
        }
    }

    private func list(_ folder: ItemReference) async throws(ProviderError) -> [Item] {
        var items: [Item] = []
        var page: PageToken?
        repeat {
            let answer = try await provider.enumerateItems(in: folder, page: page)
            items += answer.items
            page = answer.next
        } while page != nil
        return items
    }

    private func reference(_ item: Item) -> ItemReference { ItemReference(identifier: item.identifier, path: [item.name]) }

    private func fetch(_ item: Item, _ range: ByteRange?) async throws(ProviderError) -> [UInt8] {
        let sink = ConformanceSink()
        try await provider.fetchContents(of: reference(item), version: item.version, range: range, into: sink)
        return sink.bytes
    }

    private func require(_ condition: Bool, _ sentence: @autoclosure () -> String) throws {
        guard condition else { throw ConformanceFailure(sentence()) }
    }

    private func expect(_ code: ProviderError.Code, _ what: String, _ body: () async throws -> Void) async throws {
        do {
            try await body()
        } catch let error as ProviderError {
            return try require(error.code == code, "\(what) must be \(code), not \(error.code): \(error.message)")
        }
        throw ConformanceFailure("\(what) must be \(code), but it was done")
    }

    private func report(_ results: [ConformanceResult]) -> ConformanceReport {
        ConformanceReport(provider: provider.name, capabilities: provider.capabilities, results: results)
    }
}
