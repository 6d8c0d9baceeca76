package import PromiseCore
package import PromiseProvider
import PromiseSystem
import Synchronization

/// A provider in memory whose every call a test can make fail, and whose calls it can count.
package actor MemoryProvider: Provider {
    package struct Stored {
        package var item: Item
        package var bytes: [UInt8]
    }

    package nonisolated let name = "memory:"
    package nonisolated let capabilities: Capabilities
    package static let capabilities: Capabilities = [
        .stableIdentifiers, .atomicRename, .conditionalWrite, .changeFeed, .changePush, .ranges, .metadata, .links,
    ]
    package static let rootIdentifier = ItemIdentifier("root")

    package private(set) var items: [ItemIdentifier: Stored] = [:]
    package private(set) var fetches: [ByteRange?] = []
    package private(set) var createCount = 0
    package private(set) var moveIntoItselfCount = 0
    private var counter = 0
    private var changedFolders: [(number: Int, folder: ItemIdentifier)] = []
    private var fetchProblems: [ProviderError] = []
    private var lostAcknowledgements = 0
    private var movesLeftOut = 0
    private var gate: Gate?
    private var answerGate: Gate?
    private var listingGate: Gate?
    /// Everything fails with it, as when the network is gone.
    private var problem: ProviderError?

    package init(_ capabilities: Capabilities = MemoryProvider.capabilities) {
        self.capabilities = capabilities
        let item = Item(
            identifier: MemoryProvider.rootIdentifier, parent: nil, name: FileName("root")!, kind: .folder, size: 0,
            metadata: MemoryProvider.metadata(0o755), version: ContentVersion("folder"))
        items[item.identifier] = Stored(item: item, bytes: [])
    }

    package static func metadata(_ mode: UInt32) -> Metadata {
        Metadata(mode: mode, owner: 0, group: 0, modificationTime: Timestamp(seconds: 1_000_000, nanoseconds: 0))
    }

    // MARK: What tests do

    /// Puts a new item there, as another machine would.
    @discardableResult
    package func put(
        _ name: String, _ text: String = "", kind: NodeKind = .file,
        in parent: ItemIdentifier = rootIdentifier, time: Timestamp? = nil
    ) -> ItemIdentifier {
        counter += 1
        let bytes = kind == .file ? Array(text.utf8) : []
        var item = Item(
            identifier: ItemIdentifier("item-\(counter)"), parent: parent, name: FileName(name)!, kind: kind,
            size: UInt64(bytes.count), metadata: MemoryProvider.metadata(kind == .folder ? 0o755 : 0o644),
            version: ContentVersion("version-\(counter)"))
        if let time { item.metadata.modificationTime = time }
        items[item.identifier] = Stored(item: item, bytes: bytes)
        noteChange(in: parent)
        return item.identifier
    }

    /// Edits, renames or does both, as another machine would.
    package func change(
        _ identifier: ItemIdentifier, text: String? = nil, name: String? = nil, mode: UInt32? = nil,
        time: Int? = nil, target: String? = nil
    ) {
        guard var stored = items[identifier] else { return }
        if let target {
            counter += 1
            stored.item.target = Array(target.utf8)
            stored.item.version = ContentVersion("version-\(counter)")
        }
        if let text {
            counter += 1
            stored.bytes = Array(text.utf8)
            stored.item.size = UInt64(stored.bytes.count)
            stored.item.version = ContentVersion("version-\(counter)")
            stored.item.metadata.modificationTime = Timestamp(seconds: 1_000_000, nanoseconds: counter)
        }
        if let name { stored.item.name = FileName(name)! }
        if let mode { stored.item.metadata.mode = mode }
        if let time { stored.item.metadata.modificationTime = Timestamp(seconds: time, nanoseconds: 0) }
        items[identifier] = stored
        noteChange(in: stored.item.parent)
    }

    /// Moves, as another machine would.
    package func move(_ identifier: ItemIdentifier, to parent: ItemIdentifier = rootIdentifier, name: String) {
        guard var stored = items[identifier] else { return }
        noteChange(in: stored.item.parent)
        stored.item.parent = parent
        stored.item.name = FileName(name)!
        items[identifier] = stored
        noteChange(in: parent)
    }

    /// Puts something of another kind in an item's place, under the same identifier.
    package func replace(_ identifier: ItemIdentifier, by kind: NodeKind, _ text: String = "") {
        guard var stored = items[identifier] else { return }
        counter += 1
        stored.bytes = Array(text.utf8)
        stored.item.kind = kind
        stored.item.size = UInt64(stored.bytes.count)
        stored.item.version = ContentVersion("version-\(counter)")
        items[identifier] = stored
        noteChange(in: stored.item.parent)
    }

    /// Removes an item with everything below it, as another machine would.
    package func remove(_ identifier: ItemIdentifier) {
        for child in items.values where child.item.parent == identifier { remove(child.item.identifier) }
        noteChange(in: items.removeValue(forKey: identifier)?.item.parent)
    }

    /// What is there, by names: `folder/` and `file=text`.
    package func names(in parent: ItemIdentifier = rootIdentifier) -> [String] {
        items.values.filter { $0.item.parent == parent }.map { stored in
            stored.item.name.display + (stored.item.kind == .folder ? "/" : "=" + String(decoding: stored.bytes, as: UTF8.self))
        }.sorted()
    }

    package func fail(_ problem: ProviderError?) { self.problem = problem }
    package func failFetches(_ problems: [ProviderError]) { fetchProblems = problems }
    /// The next creations, changes and deletions happen, but their answers get lost.
    package func loseAcknowledgements(_ count: Int) { lostAcknowledgements = count }

    /// The next changes of content and place end between the two.
    package func breakOffBeforeMoves(_ count: Int) { movesLeftOut = count }

    /// By place, from the root. `folding`: a name finds one that differs in case only, too.
    package func item(at path: [FileName], folding: Bool = false) -> Stored? {
        var current = items[MemoryProvider.rootIdentifier]
        for name in path {
            let parent = current?.item.identifier
            let beside = items.values.filter { $0.item.parent == parent }
            current = beside.first { $0.item.name == name }
            if current == nil, folding { current = beside.first { $0.item.name.isTwin(of: name) } }
        }
        return current
    }

    package func countFetches() -> Int { fetches.count }
    package func holdFetches(at gate: Gate?) { self.gate = gate }
    package func holdListings(at gate: Gate?) { listingGate = gate }
    /// What changes something has happened and is not answered yet.
    package func holdAnswers(at gate: Gate?) { answerGate = gate }

    private func noteChange(in folder: ItemIdentifier?) {
        counter += 1
        if let folder { changedFolders.append((counter, folder)) }
    }

    private func check() throws(ProviderError) { if let problem { throw problem } }

    private func stored(_ identifier: ItemIdentifier) throws(ProviderError) -> Stored {
        try check()
        guard let stored = items[identifier] else { throw ProviderError(.notFound, "there is no item \(identifier)") }
        return stored
    }

    // MARK: Provider

    package func connect() async throws(ProviderError) { try check() }
    package func root() async throws(ProviderError) -> Item { try stored(MemoryProvider.rootIdentifier).item }
    package func item(for reference: ItemReference) async throws(ProviderError) -> Item { try stored(reference.identifier).item }

    package func enumerateItems(in folder: ItemReference, page: PageToken?) async throws(ProviderError) -> ItemPage {
        await listingGate?.pass()
        _ = try stored(folder.identifier)
        return ItemPage(items: items.values.map(\.item).filter { $0.parent == folder.identifier })
    }

    package func currentAnchor() async throws(ProviderError) -> Anchor {
        try check()
        return Anchor(rawValue: "\(counter)")
    }

    package func changes(since anchor: Anchor) async throws(ProviderError) -> ChangePage {
        try check()
        let since = Int(anchor.rawValue) ?? 0
        let folders = Set(changedFolders.filter { $0.number > since }.map(\.folder))
        return ChangePage(foldersToList: folders, anchor: Anchor(rawValue: "\(counter)"))
    }

    package func waitForChanges(since anchor: Anchor) async throws(ProviderError) {
        let since = Int(anchor.rawValue) ?? 0
        while !changedFolders.contains(where: { $0.number > since }) {
            try check()
            do { try await Task.sleep(for: .milliseconds(5)) } catch { throw ProviderError(.cancelled, "nobody waits any more") }
        }
    }

    package func fetchContents(
        of reference: ItemReference, version: ContentVersion, range: ByteRange?, into sink: any ContentSink
    ) async throws(ProviderError) {
        fetches.append(range)
        await gate?.pass()
        let problem = fetchProblems.isEmpty ? nil : fetchProblems.removeFirst()
        if let problem, problem.code != .corrupted { throw problem }
        let stored = try stored(reference.identifier)
        guard stored.item.version == version else { throw ProviderError(.stale, "there is another version") }
        let range = range ?? ByteRange(0, stored.item.size)
        var bytes = Array(stored.bytes[Int(range.lower)..<Int(range.upper)])
        if problem != nil { bytes = bytes.map { ~$0 } }
        let result: Result<Void, ProviderError> = bytes.withUnsafeBytes { bytes in
            do throws(ProviderError) { return .success(try sink.write(bytes, at: range.lower)) } catch { return .failure(error) }
        }
        try result.get()
        if let problem { throw problem }
    }

    package func create(
        _ item: NewItem, in folder: ItemReference, contents: (any ContentSource)?
    ) async throws(ProviderError) -> Item {
        createCount += 1
        try checkFolder(folder)
        if items.values.contains(where: { $0.item.parent == folder.identifier && $0.item.name == item.name }) {
            throw ProviderError(.conflict, "the name is taken")
        }
        let bytes = try contents.map { source throws(ProviderError) in try read(source) } ?? []
        counter += 1
        let made = Item(
            identifier: ItemIdentifier("item-\(counter)"), parent: folder.identifier, name: item.name, kind: item.kind,
            size: UInt64(bytes.count), metadata: item.metadata, version: ContentVersion("version-\(counter)"),
            target: item.target)
        items[made.identifier] = Stored(item: made, bytes: bytes)
        noteChange(in: folder.identifier)
        try await answer()
        return made
    }

    package func modify(
        _ reference: ItemReference, changes: ItemChanges, contents: (any ContentSource)?, baseVersion: ContentVersion?
    ) async throws(ProviderError) -> Item {
        var stored = try stored(reference.identifier)
        let isBased = contents != nil || changes.target != nil || baseVersion != nil
        if isBased, stored.item.version != baseVersion { throw ProviderError(.conflict, "there is another version") }
        if let contents {
            stored.bytes = try read(contents)
            stored.item.size = UInt64(stored.bytes.count)
            counter += 1
            stored.item.version = ContentVersion("version-\(counter)")
        }
        if contents != nil, changes.place != nil, movesLeftOut > 0 {
            movesLeftOut -= 1
            if let metadata = changes.metadata(over: stored.item.metadata) { stored.item.metadata = metadata }
            items[reference.identifier] = stored
            noteChange(in: stored.item.parent)
            throw ProviderError(.retry, "the connection broke off")
        }
        if let place = changes.place {
            try checkFolder(place.parent)
            let holder = items.values.first { $0.item.parent == place.parent.identifier && $0.item.name == place.name }
            if let holder, holder.item.identifier != reference.identifier { throw ProviderError(.conflict, "the name is taken") }
            if isInside(place.parent.identifier, reference.identifier) {
                moveIntoItselfCount += 1
                throw ProviderError(.conflict, "the folder would be in itself")
            }
            noteChange(in: stored.item.parent)
            stored.item.parent = place.parent.identifier
            stored.item.name = place.name
        }
        if let metadata = changes.metadata(over: stored.item.metadata) { stored.item.metadata = metadata }
        if let target = changes.target {
            counter += 1
            stored.item.target = target
            stored.item.version = ContentVersion("version-\(counter)")
        }
        items[reference.identifier] = stored
        noteChange(in: stored.item.parent)
        try await answer()
        return stored.item
    }

    private func checkFolder(_ reference: ItemReference) throws(ProviderError) {
        guard try stored(reference.identifier).item.kind == .folder else {
            throw ProviderError(.notFound, "there is no folder \(reference.identifier)")
        }
    }

    private func isInside(_ item: ItemIdentifier, _ folder: ItemIdentifier) -> Bool {
        var current: ItemIdentifier? = item
        while let identifier = current {
            if identifier == folder { return true }
            current = items[identifier]?.item.parent
        }
        return false
    }

    package func delete(_ reference: ItemReference, baseVersion: ContentVersion?) async throws(ProviderError) {
        try check()
        guard let stored = items[reference.identifier] else { return }
        if let baseVersion, stored.item.version != baseVersion { throw ProviderError(.conflict, "there is another version") }
        if items.values.contains(where: { $0.item.parent == reference.identifier }) {
            throw ProviderError(.conflict, "it is not empty")
        }
        items[reference.identifier] = nil
        noteChange(in: stored.item.parent)
        try await answer()
    }

    /// What was asked for has happened.
    private func answer() async throws(ProviderError) {
        await answerGate?.pass()
        guard lostAcknowledgements > 0 else { return }
        lostAcknowledgements -= 1
        throw ProviderError(.retry, "the answer got lost")
    }

    private func read(_ source: any ContentSource) throws(ProviderError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: Int(source.size))
        let count: Result<Int, SystemError> = bytes.withUnsafeMutableBytes { buffer in
            do throws(SystemError) {
                return .success(try readFully(source.descriptor, into: buffer, at: 0, label: "test.upload"))
            } catch {
                return .failure(error)
            }
        }
        guard (try? count.get()) == bytes.count else { throw ProviderError(.sourceChanged, "the source is shorter") }
        try source.validate()
        return bytes
    }
}

/// Holds tasks up until it is opened.
package final class Gate: Sendable {
    package init() {}
    private let waiting = Mutex<(isOpen: Bool, continuations: [CheckedContinuation<Void, Never>])>((false, []))

    package func pass() async {
        await withCheckedContinuation { continuation in
            let isOpen = waiting.withLock { state in
                if !state.isOpen { state.continuations.append(continuation) }
                return state.isOpen
            }
            if isOpen { continuation.resume() }
        }
    }

    package func open() {
        let continuations = waiting.withLock { state in
            state.isOpen = true
            defer { state.continuations = [] }
            return state.continuations
        }
        continuations.forEach { $0.resume() }
    }
}
