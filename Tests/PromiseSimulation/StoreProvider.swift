import PromiseCore
import PromiseProvider
import PromiseSystem

/// How bad the line of one machine is, in percent of its calls.
struct Line {
    var lost = 0
    var answerLost = 0
    var doubled = 0
    var refused = 0
    var isOffline = false
    /// Fetches that end in their middle; and none comes at once.
    var broken = 0
    /// In milliseconds, at most.
    var delayMax = 50
}

/// What befalls the next call of a kind, where a situation wants it.
struct Snag {
    /// How what is noted of the call begins.
    let call: String
    var refuses = false
    var losesAnswer = false
    /// Before the call arrives, and before its answer does, in milliseconds.
    var delay = 0
    var pause = 0
    /// Between the parts of what is fetched, which come one by one then.
    var partPause = 0

    init(
        _ call: String, refuses: Bool = false, losesAnswer: Bool = false, delay: Int = 0, pause: Int = 0,
        partPause: Int = 0
    ) {
        (self.call, self.refuses, self.losesAnswer, self.delay, self.pause) = (call, refuses, losesAnswer, delay, pause)
        self.partPause = partPause
    }
}

/// One machine's way to the store: every call takes time, and what is asked may not arrive, arrive twice, or
/// be answered to nobody.
///
/// Unchecked, as only the simulation's thread touches it, which `Simulation.check` looks after.
final class StoreProvider: Provider, @unchecked Sendable {
    let name = "simulated:"
    let capabilities: Capabilities
    let executor: (any TaskExecutor)?
    private let store: Store
    private let simulation: Simulation
    private let machine: String
    var line = Line()
    /// Its machine is dead: what it asked for may still reach the store.
    var isGone = false
    var snags: [Snag] = []
    /// No change arrives.
    var losesChanges = false
    /// Of a listing; nil: all in one.
    var pageSize: Int?
    /// Folders that this machine has listed: where nothing is told, these are polled.
    private var listed: Set<ItemIdentifier> = []
    /// Versions of which more is known than a listing tells.
    private var known: Set<String> = []

    init(_ store: Store, _ simulation: Simulation, machine: String) {
        self.store = store
        self.simulation = simulation
        self.machine = machine
        capabilities = store.kind.capabilities
        executor = simulation.tasks
    }

    // MARK: The line

    private func carry<Value: Sendable>(
        _ what: String, isChange: Bool = false, _ body: () throws(ProviderError) -> Value
    ) async throws(ProviderError) -> Value {
        let snag = takeSnag(what)
        await simulation.sleep(.milliseconds(1 + simulation.pick(line.delayMax) + (snag?.delay ?? 0)))
        if line.isOffline { throw ProviderError(.offline, "the network is gone") }
        if simulation.chance(line.lost) { throw ProviderError(.retry, "the connection broke") }
        if isChange && losesChanges { throw ProviderError(.retry, "the connection broke") }
        if snag?.refuses ?? false { throw ProviderError(.refused, "it may not be changed") }
        if isChange, simulation.chance(line.refused) { throw ProviderError(.refused, "it may not be changed") }
        var result: Result<Value, ProviderError>
        do throws(ProviderError) { result = .success(try body()) } catch { result = .failure(error) }
        if isChange, simulation.chance(line.doubled) {
            // A request that is sent again by somebody in between: the second answer is the one that comes.
            do throws(ProviderError) { result = .success(try body()) } catch { result = .failure(error) }
        }
        if isChange { simulation.note("\(machine) \(what): \(describe(result))") }
        await simulation.sleep(.milliseconds(1 + simulation.pick(line.delayMax) + (snag?.pause ?? 0)))
        if line.isOffline { throw ProviderError(.offline, "the network is gone") }
        if snag?.losesAnswer ?? false { throw ProviderError(.retry, "the answer was lost") }
        if isChange, simulation.chance(line.answerLost) { throw ProviderError(.retry, "the answer was lost") }
        return try result.get()
    }

    private func takeSnag(_ what: String) -> Snag? {
        guard let index = snags.firstIndex(where: { what.hasPrefix($0.call) }) else { return nil }
        return snags.remove(at: index)
    }

    private func describe<Value>(_ result: Result<Value, ProviderError>) -> String {
        switch result {
        case .success(let item as Item): "done \(item.version.rawValue)"
        case .success: "done"
        case .failure(let problem): "\(problem.code)"
        }
    }

    // MARK: Names of items

    private func identifier(_ item: Store.Item) -> ItemIdentifier {
        if item.number == Store.root { return StoreProvider.rootIdentifier }
        guard store.kind.byPlace else { return ItemIdentifier("item-\(item.number)") }
        return ItemIdentifier("/" + store.path(of: item.number).map(\.display).joined(separator: "/"))
    }

    static let rootIdentifier = ItemIdentifier("root")

    private func find(_ reference: ItemReference) throws(ProviderError) -> Store.Item {
        if reference.identifier == StoreProvider.rootIdentifier { return store.items[Store.root]! }
        let found: Store.Item?
        if store.kind.byPlace {
            found = store.item(at: reference.path)
        } else {
            found = Int(reference.identifier.rawValue.dropFirst(5)).flatMap { store.items[$0] }
        }
        guard let found else { throw ProviderError(.notFound, "there is nothing there") }
        return found
    }

    private func told(_ item: Store.Item, isListed: Bool = false) -> Item {
        let parent = store.items[item.parent].map(identifier)
        var metadata = item.metadata
        let isGuess =
            isListed && store.kind.guesses && item.kind != .folder && !known.contains(item.version)
        if isGuess { lookLater(at: item.version) }
        let kind = isGuess && item.kind == .link ? .file : item.kind
        if isGuess || !store.kind.keepsTimes { metadata = Store.metadata(kind == .folder ? 0o755 : 0o644) }
        let size = item.target.map { UInt64($0.count) } ?? UInt64(item.bytes.count)
        var result = Item(
            identifier: identifier(item), parent: parent, name: item.name, kind: kind, size: size,
            metadata: metadata, version: ContentVersion(item.version), target: isGuess ? nil : item.target)
        result.isGuess = isGuess
        return result
    }

    /// What a listing does not tell is found afterwards.
    private func lookLater(at version: String) {
        simulation.after(.milliseconds(500 + simulation.pick(4_000))) { [self] in known.insert(version) }
    }

    // MARK: Reading

    func connect() async throws(ProviderError) { _ = try await root() }

    func root() async throws(ProviderError) -> Item {
        try await carry("root") { () throws(ProviderError) in told(store.items[Store.root]!) }
    }

    func item(for reference: ItemReference) async throws(ProviderError) -> Item {
        try await carry("item") { () throws(ProviderError) in told(try find(reference)) }
    }

    func enumerateItems(in folder: ItemReference, page: PageToken?) async throws(ProviderError) -> ItemPage {
        let what = "list " + folder.path.map(\.display).joined(separator: "/") + (page == nil ? "" : " after")
        return try await carry(what) { () throws(ProviderError) in
            let found = try find(folder)
            guard found.kind == .folder else { throw ProviderError(.notFound, "it is no folder") }
            listed.insert(folder.identifier)
            var items = store.children(of: found.number)
            guard let pageSize else { return ItemPage(items: items.map { told($0, isListed: true) }) }
            items.sort { $0.name < $1.name }
            if let page { items.removeAll { $0.name.display <= page.rawValue } }
            let next = items.count > pageSize ? PageToken(rawValue: items[pageSize - 1].name.display) : nil
            return ItemPage(items: items.prefix(pageSize).map { told($0, isListed: true) }, next: next)
        }
    }

    func currentAnchor() async throws(ProviderError) -> Anchor {
        try await carry("anchor") { () throws(ProviderError) in Anchor(rawValue: "\(store.changeCount)") }
    }

    func changes(since anchor: Anchor) async throws(ProviderError) -> ChangePage {
        try await carry("changes") { () throws(ProviderError) in
            let now = Anchor(rawValue: "\(store.changeCount)")
            if !store.kind.pushes { return ChangePage(foldersToList: listed, isGuess: true, anchor: now) }
            let since = Int(anchor.rawValue) ?? 0
            if store.kind.tellsItems {
                let numbers = store.changedItems(since: since)
                return ChangePage(
                    updated: numbers.compactMap { store.items[$0] }.map { told($0) },
                    deleted: numbers.filter { store.items[$0] == nil }.map { ItemIdentifier("item-\($0)") }, anchor: now)
            }
            let folders = store.changedFolders(since: since)
            return ChangePage(foldersToList: Set(folders.compactMap { store.items[$0].map(identifier) }), anchor: now)
        }
    }

    func waitForChanges(since anchor: Anchor) async throws(ProviderError) {
        await withUnsafeContinuation { continuation in
            store.whenChanged(since: Int(anchor.rawValue) ?? 0) { continuation.resume() }
        }
    }

    func fetchContents(
        of reference: ItemReference, version: ContentVersion, range: ByteRange?, into sink: any ContentSink
    ) async throws(ProviderError) {
        let what = "fetch " + reference.path.map(\.display).joined(separator: "/")
        let partPause = snags.first { what.hasPrefix($0.call) }?.partPause ?? 0
        let bytes = try await carry(what) { () throws(ProviderError) in
            let found = try find(reference)
            guard found.kind == .file else { throw ProviderError(.notFound, "it is no file") }
            guard found.version == version.rawValue else { throw ProviderError(.stale, "there is another version") }
            return found.bytes
        }
        // A dead machine's disk is another one's now.
        if isGone { throw ProviderError(.offline, "the machine is gone") }
        let range = range ?? ByteRange(0, UInt64(bytes.count))
        let part = Array(bytes[min(Int(range.lower), bytes.count)..<min(Int(range.upper), bytes.count)])
        guard line.broken > 0 || partPause > 0 else { return try give(part, at: range.lower, to: sink) }
        try await giveSlowly(part, at: range.lower, of: reference, version, to: sink, pause: partPause)
    }

    private func give(_ part: [UInt8], at offset: UInt64, to sink: any ContentSink) throws(ProviderError) {
        let result: Result<Void, ProviderError> = part.withUnsafeBytes { part in
            do throws(ProviderError) { return .success(try sink.write(part, at: offset)) } catch { return .failure(error) }
        }
        try result.get()
    }

    /// Of a file that is overwritten meanwhile the rest is what it has then, as in a folder, and only a look at the end tells.
    private func giveSlowly(
        _ part: [UInt8], at offset: UInt64, of reference: ItemReference, _ version: ContentVersion,
        to sink: any ContentSink, pause: Int
    ) async throws(ProviderError) {
        var position = 0
        while position < part.count {
            let end = min(position + 24 + simulation.pick(80), part.count)
            var bytes = Array(part[position..<end])
            if let now = try? find(reference), now.kind == .file, now.version != version.rawValue {
                bytes = Array(now.bytes.dropFirst(Int(offset) + position).prefix(end - position))
            }
            try give(bytes, at: offset + UInt64(position), to: sink)
            position = end
            await simulation.sleep(.milliseconds(1 + simulation.pick(line.delayMax) + pause))
            if isGone || line.isOffline { throw ProviderError(.offline, "the network is gone") }
            if simulation.chance(line.broken) { throw ProviderError(.retry, "the connection broke") }
        }
        guard try find(reference).version == version.rawValue else {
            throw ProviderError(.stale, "there is another version")
        }
    }

    // MARK: Changing

    func create(
        _ item: NewItem, in folder: ItemReference, contents: (any ContentSource)?
    ) async throws(ProviderError) -> Item {
        try await look { () throws(ProviderError) in
            let parent = try find(folder)
            guard parent.kind == .folder else { throw ProviderError(.notFound, "it is no folder") }
            if store.child(item.name, of: parent.number) != nil {
                throw ProviderError(.conflict, "the name is taken")
            }
        }
        return try await carry("create \(item.name)", isChange: true) { () throws(ProviderError) in
            let parent = try find(folder)
            guard parent.kind == .folder else { throw ProviderError(.notFound, "it is no folder") }
            try makeWay(at: item.name, in: parent, for: nil)
            let bytes = try contents.map { source throws(ProviderError) in try read(source) } ?? []
            let version = item.kind == .folder ? "folder" : store.version(of: bytes + (item.target ?? []))
            let made = Store.Item(
                number: store.nextNumber(), parent: parent.number, name: item.name, kind: item.kind, bytes: bytes,
                target: item.target, version: version, metadata: item.metadata)
            store.put(made)
            return told(made)
        }
    }

    func modify(
        _ reference: ItemReference, changes: ItemChanges, contents: (any ContentSource)?,
        baseVersion: ContentVersion?
    ) async throws(ProviderError) -> Item {
        let what = "modify \(reference.path.map(\.display).joined(separator: "/"))\(contents == nil ? "" : " content")"
            + (changes.place.map { " to \($0.parent.path.map(\.display).joined(separator: "/"))/\($0.name)" } ?? "")
        try await look { () throws(ProviderError) in
            let item = try find(reference)
            try check(item, baseVersion)
            if let place = changes.place {
                let holder = store.child(place.name, of: try find(place.parent).number)
                if let holder, holder.number != item.number { throw ProviderError(.conflict, "the name is taken") }
            }
        }
        return try await carry(what, isChange: true) { () throws(ProviderError) in
            var item = try find(reference)
            if store.kind.hasConditions { try check(item, baseVersion) }
            if !store.kind.hasConditions, contents != nil, item.version != baseVersion?.rawValue { store.overwrite(item) }
            if let contents {
                item.bytes = try read(contents)
                item.version = store.version(of: item.bytes)
                (item.kind, item.target) = (.file, nil)
            }
            if let target = changes.target {
                item.target = target
                item.version = store.version(of: target)
            }
            if let place = changes.place { try move(&item, to: place) }
            if let metadata = changes.metadata(over: item.metadata) { item.metadata = metadata }
            store.put(item)
            return told(item)
        }
    }

    private func move(
        _ item: inout Store.Item, to place: (parent: ItemReference, name: FileName)
    ) throws(ProviderError) {
        let parent = try find(place.parent)
        guard parent.kind == .folder else { throw ProviderError(.notFound, "it is no folder") }
        try makeWay(at: place.name, in: parent, for: item.number)
        if store.isInside(parent.number, item.number) {
            throw ProviderError(.conflict, "the folder would be in itself")
        }
        (item.parent, item.name) = (parent.number, place.name)
    }

    func delete(_ reference: ItemReference, baseVersion: ContentVersion?) async throws(ProviderError) {
        let what = "delete \(reference.path.map(\.display).joined(separator: "/"))"
        try await look { () throws(ProviderError) in
            if let item = try? find(reference) { try check(item, baseVersion) }
        }
        try await carry(what, isChange: true) { () throws(ProviderError) in
            guard let item = try? find(reference) else { return try checkFolder(of: reference) }
            if store.kind.hasConditions { try check(item, baseVersion) }
            if !store.kind.hasConditions, item.version != baseVersion?.rawValue { store.overwrite(item) }
            guard store.children(of: item.number).isEmpty else { throw ProviderError(.conflict, "it is not empty") }
            store.remove(item.number)
        }
    }

    /// What is gone is removed; what was in a folder that is gone may be elsewhere.
    private func checkFolder(of reference: ItemReference) throws(ProviderError) {
        guard store.kind.byPlace, reference.path.count > 1 else { return }
        guard store.item(at: Array(reference.path.dropLast())) != nil else {
            throw ProviderError(.notFound, "its folder is gone")
        }
    }

    private func check(_ item: Store.Item, _ version: ContentVersion?) throws(ProviderError) {
        if let version, item.version != version.rawValue { throw ProviderError(.conflict, "there is another version") }
    }

    /// What has to be asked beforehand where the change itself cannot depend on it.
    private func look(_ body: () throws(ProviderError) -> Void) async throws(ProviderError) {
        if !store.kind.hasConditions { try await carry("look", body) }
    }

    /// Something else has the name: that is a conflict, or it goes.
    private func makeWay(
        at name: FileName, in parent: Store.Item, for number: Int?
    ) throws(ProviderError) {
        guard let holder = store.child(name, of: parent.number), holder.number != number else { return }
        guard !store.kind.hasConditions, store.children(of: holder.number).isEmpty else {
            throw ProviderError(.conflict, "the name is taken")
        }
        store.overwrite(holder)
        store.remove(holder.number)
    }

    private func read(_ source: any ContentSource) throws(ProviderError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: Int(source.size))
        let count: Result<Int, SystemError> = bytes.withUnsafeMutableBytes { buffer in
            do throws(SystemError) {
                return .success(try readFully(source.descriptor, into: buffer, at: 0, label: "simulation.upload"))
            } catch {
                return .failure(error)
            }
        }
        guard (try? count.get()) == bytes.count else { throw ProviderError(.sourceChanged, "the source is shorter") }
        try source.validate()
        return bytes
    }
}
