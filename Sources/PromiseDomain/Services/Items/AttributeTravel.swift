import Glibc
import Logging
import PromiseAccess
import PromiseCore
import PromiseFilesystem
import PromiseHTTP
import PromiseIndex
import PromiseKeyValue
import PromiseProvider
import PromiseSync
import PromiseSystem
import Synchronization

/// `user.` attributes of items, on their way to other machines and from there. No provider keeps them
/// with an item, so all of a domain are in one private object: values under "PATH NAME" that merge as
/// those of applications do, of each the one that was written last. Nothing else of an item is sent
/// for them.
///
/// What is here is compared with what was agreed on last, which the index keeps with them: a
/// difference was made here and is told, what is otherwise there was made there and is taken over.
/// An attribute of what is not known here yet waits.
///
/// **Threads.** Rounds run one after the other, in a task. `state` is a leaf.
package final class AttributeTravel: Sendable {
    static let limits = ValueLimits(
        totalByteCount: 1 << 20, valueByteCount: 8 << 10, keyCount: 10_000, nameByteCount: 8 << 10)
    private static let store = "items"
    private static let setting = "attributes.agreed"
    private static let quietTime = Duration.milliseconds(300)
    private static let pause = Duration.seconds(2)
    private static let absence = Duration.seconds(60)

    private struct State {
        var isRunning = false
        var isWantedAgain = false
        var isOver = false
        var isWaiting = false
        /// Of the attributes here that travel.
        var count = 0
        /// Of how many there was no room.
        var leftOut = 0
        var trouble: String?
        /// What had some, and since when it is not where it was.
        var gone: [Key: ContinuousClock.Instant] = [:]
    }

    private let tree: DomainTree
    private let values: Values
    private let configuration: DomainConfiguration
    private let logger: Logger
    private let state = Mutex(State())

    init(_ tree: DomainTree, folder: [UInt8], _ configuration: DomainConfiguration, _ logger: Logger) {
        self.tree = tree
        self.configuration = configuration
        self.logger = logger
        let needs = Values.Needs(tree, .attributes, AttributeTravel.limits, configuration)
        values = Values(folder: folder, needs: needs, logger: logger)
    }

    // MARK: Life

    /// Looks at each poll interval, and when an attribute was changed here.
    func start() {
        tree.filesystem.attributeNews.whenChanged { [weak self] in self?.lookSoon() }
        Task { [weak self, interval = configuration.pollInterval] in
            // The first folder is shown before.
            try? await Task.sleep(for: min(AttributeTravel.pause, interval))
            while let self, !self.state.withLock({ $0.isOver }) {
                await self.look()
                try? await Task.sleep(for: interval)
            }
        }
    }

    func stop() {
        state.withLock { $0.isOver = true }
        values.stop()
    }

    private func lookSoon() {
        let isFirst = state.withLock { state in
            defer { state.isWaiting = true }
            return !state.isWaiting
        }
        guard isFirst else { return }
        Task { [weak self] in
            try? await Task.sleep(for: AttributeTravel.quietTime)
            self?.state.withLock { $0.isWaiting = false }
            await self?.look()
        }
    }

    /// What was made here is noted when it was made, also while the provider is away.
    func look() async {
        let begins = state.withLock { state in
            if state.isRunning || state.isOver { state.isWantedAgain = true }
            defer { state.isRunning = true }
            return !state.isRunning && !state.isOver
        }
        guard begins else { return }
        repeat {
            state.withLock { ($0.isWantedAgain, $0.isWaiting) = (false, false) }
            do throws(Failure) {
                try await tell()
                try await values.synchronize(AttributeTravel.store, by: AttributeTravel.ourselves)
                try await takeOver()
                note(nil)
            } catch {
                note(error.message)
            }
        } while state.withLock { state in
            if state.isWantedAgain, !state.isOver { return true }
            state.isRunning = false
            return false
        }
    }

    /// Compares the file with what is in memory.
    func check(isRepairing: Bool, _ shelf: RecordShelf) async throws(Failure) -> RecordFindings {
        try await values.check(isRepairing: isRepairing, shelf)
    }

    private static var ourselves: Principal { .owner(user: geteuid(), process: getpid()) }

    private func note(_ trouble: String?) {
        let isNews = state.withLock { state in
            defer { state.trouble = trouble }
            return trouble != nil && state.trouble != trouble && !state.isOver
        }
        guard isNews, let trouble else { return }
        logger.warning("attributes are not exchanged", metadata: ["reason": "\(trouble)"])
    }

    /// Of an item: those that stay here, and those that others have, too.
    func names(of node: NodeID) throws(Failure) -> (staying: [[UInt8]], shared: [[UInt8]]) {
        let isShared = tree.provider.privateObjects != nil
        return try tree.index.read { transaction throws(Failure) in
            var (staying, shared): ([[UInt8]], [[UInt8]]) = ([], [])
            let isSent = try transaction.entries(of: node).contains { $0.identifier != nil && !$0.isExcluded }
            for name in try transaction.attributeNames(of: node) {
                let value = try transaction.attribute(name, of: node) ?? []
                if isShared, isSent, AttributeTravel.travels(name, value) { shared.append(name) } else { staying.append(name) }
            }
            return (staying, shared)
        }
    }

    /// Items of which some attribute, or an ACL, stays here.
    var stayingItemCount: Int {
        let byteCountMax = tree.provider.privateObjects == nil ? nil : AttributeTravel.limits.valueByteCount
        let count = try? tree.index.read { transaction throws(Failure) in
            try LocalAttributes.itemCount(exceptUsers: byteCountMax, transaction)
        }
        return count ?? 0
    }

    /// 1 while the provider does not have what was changed here.
    package var unsentCount: Int {
        if tree.provider.privateObjects == nil || configuration.isReadOnly { return 0 }
        return state.withLock { $0.isWaiting } ? 1 : values.unsentCount
    }

    /// Sends what is new here; waits no longer than that. `looksAnyway`: the provider may have got
    /// items just now that have some.
    package func send(within limit: Duration, looksAnyway: Bool = false) async {
        if unsentCount == 0, !looksAnyway || tree.provider.privateObjects == nil || configuration.isReadOnly { return }
        _ = try? await withDeadline(limit, "the provider did not answer") { [weak self] () async throws(ProviderError) in
            // One that is under way may not have seen the latest.
            repeat {
                await self?.look()
                guard let self, self.unsentCount > 0, self.state.withLock({ $0.trouble == nil }) else { return }
                try? await Task.sleep(for: AttributeTravel.turnPause)
            } while !Task.isCancelled
        }
    }

    private static let turnPause = Duration.milliseconds(50)

    /// For `status`.
    var troubles: [String] {
        let (own, leftOut, count) = state.withLock { ($0.trouble, $0.leftOut, $0.count) }
        if count == 0 { return [] }
        var result = (own ?? values.trouble(of: AttributeTravel.store)).map { ["attributes are not exchanged: \($0)"] } ?? []
        if leftOut > 0 {
            result.append("\(leftOut) attributes stay on this machine: all together may have 1 MiB, and be 10,000")
        }
        return result
    }

    // MARK: Here and there

    private func tell() async throws(Failure) {
        if configuration.isReadOnly { return }
        let there = try await values.entries(of: AttributeTravel.store)
        let (here, agreed, gone) = try tree.index.read { transaction throws(Failure) in
            let (here, agreed) = (try AttributeTravel.attributes(transaction), try AttributeTravel.agreed(transaction))
            var gone: Set<Key> = []
            for key in agreed.keys where here[key] == nil {
                if try AttributePlace(key)?.node(transaction) == nil { gone.insert(key) }
            }
            return (here, agreed, gone)
        }
        let waiting = stillWaiting(gone)
        var changes: [Key: Value?] = [:]
        for (key, value) in here {
            // What is nowhere there was not removed by anybody: the file was lost, or is another storage's.
            let isNews = AttributeTravel.mark(value) != agreed[key] || there[key] == nil
            if isNews, there[key] != .some(.data(value)) { changes[key] = .some(.data(value)) }
        }
        for key in agreed.keys where here[key] == nil && !waiting.contains(key) {
            if case .some(.some) = there[key] { changes[key] = .some(nil) }
        }
        let refused = try await values.apply(changes, to: AttributeTravel.store)
        state.withLock { ($0.count, $0.leftOut) = (here.count, refused.count) }
        // What was changed meanwhile differs from this the next time.
        var marks = here.filter { !refused.contains($0.key) }.mapValues(AttributeTravel.mark)
        for key in waiting { marks[key] = agreed[key] }
        if marks == agreed { return }
        try tree.index.write { transaction throws(Failure) in try AttributeTravel.agree(on: marks, transaction) }
    }

    /// An item that is not where it was may be back in a moment, as when others move it to and fro: that its attributes are gone
    /// is told when it has been away for longer. Whoever follows would take them from whoever has them.
    private func stillWaiting(_ gone: Set<Key>) -> Set<Key> {
        let now = ContinuousClock.now
        return state.withLock { state in
            state.gone = state.gone.filter { gone.contains($0.key) }
            for key in gone where state.gone[key] == nil { state.gone[key] = now }
            return gone.filter { now - (state.gone[$0] ?? now) < AttributeTravel.absence }
        }
    }

    private func takeOver() async throws(Failure) {
        let there = try await values.entries(of: AttributeTravel.store)
        let isNews = try tree.index.read { transaction throws(Failure) in
            try !AttributeTravel.news(there, transaction).isEmpty
        }
        guard isNews else { return }
        let now = SystemClock().now()
        try tree.index.write { transaction throws(Failure) in
            var agreed = try AttributeTravel.agreed(transaction)
            for change in try AttributeTravel.news(there, transaction) {
                guard var node = try transaction.node(change.node) else { continue }
                if let value = change.value {
                    try transaction.setAttribute(change.place.name, of: node.id, to: value)
                } else {
                    _ = try transaction.removeAttribute(change.place.name, of: node.id)
                }
                node.changeTime = now
                try transaction.update(node)
                // Somebody has kept both versions of a conflict.
                if change.place.name == KeptVersion.attribute, change.value == KeptVersion.value {
                    for entry in try transaction.entries(of: node.id) { try transaction.keepAsDocument(entry) }
                }
                agreed[change.place.key] = change.value.map(AttributeTravel.mark)
            }
            try AttributeTravel.agree(on: agreed, transaction)
        }
    }

    /// What was made there since it was agreed on, of what is known here. What was changed here since is told at the next look.
    private static func news(
        _ there: [Key: Value?], _ transaction: borrowing Transaction
    ) throws(Failure) -> [(place: AttributePlace, node: NodeID, value: [UInt8]?)] {
        let (here, agreed) = (try attributes(transaction), try agreed(transaction))
        var result: [(place: AttributePlace, node: NodeID, value: [UInt8]?)] = []
        for (key, entry) in there {
            var value: [UInt8]?
            if case .data(let bytes) = entry { value = bytes }
            guard here[key].map(mark) == agreed[key], here[key] != value, let place = AttributePlace(key),
                let node = try place.node(transaction)
            else { continue }
            result.append((place, node.id, value))
        }
        return result
    }

    /// Of what the provider has, by every name.
    private static func attributes(_ transaction: borrowing Transaction) throws(Failure) -> [Key: [UInt8]] {
        var result: [Key: [UInt8]] = [:]
        for row in try LocalAttributes.ofUsers(transaction) where travels(row.name, row.value) {
            for entry in try transaction.entries(of: row.node) where entry.identifier != nil && !entry.isExcluded {
                guard let folder = try transaction.path(of: entry.parent) else { continue }
                result[AttributePlace(path: folder + [entry.name], name: row.name).key] = row.value
            }
        }
        return result
    }

    /// Whether others have it, too, where the provider keeps private objects.
    static func travels(_ name: [UInt8], _ value: [UInt8]) -> Bool {
        name.starts(with: AttributePlace.prefix) && !name.starts(with: AttributePlace.ownPrefix)
            && value.count <= limits.valueByteCount
    }

    // MARK: What was agreed on

    /// FNV-1a: to tell one value from the one before.
    private static func mark(_ value: [UInt8]) -> UInt64 {
        value.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    }

    private static func agreed(_ transaction: borrowing Transaction) throws(Failure) -> [Key: UInt64] {
        var result: [Key: UInt64] = [:]
        for line in try transaction.setting(setting)?.split(separator: "\n") ?? [] {
            guard let space = line.lastIndex(of: " "), let mark = UInt64(line[line.index(after: space)...], radix: 36)
            else { continue }
            result[Key(String(line[..<space]))] = mark
        }
        return result
    }

    private static func agree(on marks: [Key: UInt64], _ transaction: borrowing Transaction) throws(Failure) {
        let lines = marks.map { "\($0.key) \(String($0.value, radix: 36))" }
        try transaction.setSetting(setting, lines.sorted().joined(separator: "\n"))
    }
}

/// An attribute of what is at a path, as the name of a value.
struct AttributePlace: Hashable, Sendable {
    static let prefix = Array("user.".utf8)
    /// Of the state of an item on this machine.
    static let ownPrefix = Array("user.promisefs.".utf8)

    var path: [FileName]
    var name: [UInt8]

    init(path: [FileName], name: [UInt8]) {
        (self.path, self.name) = (path, name)
    }

    /// Nil for what is none, as a stranger may write it.
    init?(_ key: Key) {
        let halves = key.text.split(separator: " ", omittingEmptySubsequences: false)
        guard halves.count == 2, let name = PercentEncoding.decoded(halves[1]), name.starts(with: AttributePlace.prefix),
            !name.starts(with: AttributePlace.ownPrefix), name.count <= 255, !name.contains(0)
        else { return nil }
        self.name = name
        path = []
        for part in halves[0].split(separator: "/") {
            guard let bytes = PercentEncoding.decoded(part), let name = FileName(bytes) else { return nil }
            path.append(name)
        }
    }

    var key: Key {
        let path = path.map { PercentEncoding.encoded($0.bytes) }.joined(separator: "/")
        return Key(path + " " + PercentEncoding.encoded(name))
    }

    /// What is there now, if it is known here and may have such an attribute.
    func node(_ transaction: borrowing Transaction) throws(Failure) -> Node? {
        var current = NodeID.root
        for name in path {
            guard let entry = try transaction.entry(in: current, named: name), !entry.isExcluded else { return nil }
            current = entry.node
        }
        guard let node = try transaction.node(current), node.kind == .file || node.kind == .folder else { return nil }
        return node
    }
}
