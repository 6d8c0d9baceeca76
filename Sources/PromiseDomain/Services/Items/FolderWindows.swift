package import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseProvider
import PromiseQuery
import PromiseSync
import Synchronization

/// Gives windows of folders, however large: orders a folder once, and reads of it what is asked
/// for.
///
/// **Threads.** Any; `state` is a leaf. A folder is ordered without it.
package final class FolderWindows: Sendable {
    /// What one order is of.
    private struct Subject: Hashable {
        var scope: WindowRequest.Scope
        var key: WindowRequest.Key
        var isDescending: Bool
        var text: String
        var types: [String]
        var showsHidden: Bool
        var foldersOnly: Bool

        init(_ request: WindowRequest) {
            scope = request.scope
            key = request.key
            isDescending = request.isDescending
            text = request.text
            types = request.types
            showsHidden = request.showsHidden
            foldersOnly = request.foldersOnly
        }

        /// Nothing but what the change feed has a line of moves an item in it.
        var isOfNames: Bool { key == .name && scope != .recent }
    }

    private struct Order {
        var subject: Subject
        var entries: [EntryID]
        /// Of the list that is looked at now, so that a letter more or less reads nothing.
        var lines: [FolderLine]?
        /// The last change that it knows of.
        var change: Int64
        var age: Age
    }

    /// Of what items were ordered by. A tag, the date of a folder in it and the use of a document are
    /// no changes of the folder.
    private struct Age {
        private static let least = Duration.seconds(2)

        private let begun = ContinuousClock.now
        private var end = ContinuousClock.now

        /// It is ordered, and stays so for a while: who scrolls is not to wait for it all the time.
        mutating func ordered() {
            let now = ContinuousClock.now
            end = now + max(Age.least, (now - begun) * 10)
        }

        var isOver: Bool { ContinuousClock.now > end }
    }

    /// What of it is wanted.
    private struct Sieve {
        let subject: Subject
        private let folding: TextFolding = [.ignoresCase, .ignoresDiacritics]
        private let text: [UInt8]
        private let filter: TypeFilter

        init(_ subject: Subject) {
            self.subject = subject
            text = folding.fold(Array(subject.text.utf8))
            filter = TypeFilter(subject.types)
        }

        /// Nil: it is not.
        func folded(_ name: FileName, _ kind: NodeKind) -> [UInt8]? {
            guard subject.showsHidden || name.bytes.first != UInt8(ascii: ".") else { return nil }
            guard kind == .folder || !subject.foldersOnly else { return nil }
            guard filter.admits(name, kind) else { return nil }
            let folded = folding.fold(name.bytes)
            return contains(folded) ? folded : nil
        }

        /// Of a folded name.
        func contains(_ name: [UInt8]) -> Bool {
            guard name.count >= text.count, let first = text.first else { return text.isEmpty }
            for start in 0...(name.count - text.count) where name[start] == first {
                if name[start..<(start + text.count)].elementsEqual(text) { return true }
            }
            return false
        }
    }

    /// A person looks at few folders at a time.
    private static let orderCountMax = 6
    /// Rows read while the index's lock is held.
    private static let pageCount = 1_000
    private static let recentCountMax = 200
    /// Who finds more looks for something narrower.
    private static let foundCountMax = 5_000
    /// Changes that are looked through for those of the folder; when there are more it is ordered
    /// again.
    private static let changeCountMax = 1_000
    private static let patience = Duration.seconds(10)
    private static let tags = Array("user.xdg.tags".utf8)

    private let tree: DomainTree
    private let reader: AttributeReader
    private let state = Mutex<[Order]>([])

    init(_ tree: DomainTree) {
        self.tree = tree
        reader = AttributeReader(
            domainName: tree.domainName, filesystem: tree.filesystem, engine: tree.engine)
    }

    /// Asks the provider for a folder that was never listed; why that could not be, if not. Content
    /// is never fetched.
    package func list(_ folder: NodeID) async -> String? {
        let outcome: Result<Void, Failure>? = try? await withDeadline(
            FolderWindows.patience, "the provider did not answer",
            { [tree] () async throws(ProviderError) -> Result<Void, Failure> in
                do throws(Failure) {
                    return .success(try await tree.list(folder))
                } catch {
                    return .failure(error)
                }
            })
        switch outcome {
        case .success?: return nil
        case .failure(let failure)?: return failure.message
        case nil: return "the provider has not told yet what is in it"
        }
    }

    /// Blocks for as long as the index takes.
    package func window(_ request: WindowRequest, reason: String? = nil) throws(Failure)
        -> FolderWindow
    {
        let entries = try order(Subject(request))
        let start = min(max(0, request.offset), entries.count)
        let part = entries[start..<min(entries.count, start + max(0, request.limit))]
        let items = try tree.index.read { transaction throws(Failure) in
            try self.items(part, transaction)
        }
        return FolderWindow(total: entries.count, items: items, reason: reason)
    }

    private func items(
        _ entries: ArraySlice<EntryID>, _ transaction: borrowing Transaction
    ) throws(Failure) -> [FoundItem] {
        var result: [FoundItem] = []
        for id in entries {
            guard let entry = try transaction.entry(id), let node = try transaction.node(entry.node)
            else { continue }
            let item = IndexedItem(entry: entry, node: node)
            let known = try reader.attributes(of: item, .all, transaction)
            guard let path = known.path, let state = known.state else { continue }
            var values: [AttributeKey: QueryValue] = [:]
            for key in [AttributeKey.contentType, .userTags, .percentDownloaded, .isDownloading] {
                let value = known.value(of: key)
                if value != .null { values[key] = value }
            }
            result.append(
                FoundItem(
                    id: id, node: node.id, path: path, kind: node.kind, size: node.size,
                    modificationTime: node.modificationTime, identifier: entry.identifier,
                    state: state,
                    isUploaded: known.value(of: .isUploaded) == .truth(true), values: values))
        }
        return result
    }

    // MARK: Order

    private func order(_ subject: Subject) throws(Failure) -> [EntryID] {
        let now = try tree.index.read { transaction throws(Failure) in try transaction.lastChange()
        }
        if let known = try known(subject, now) { return known.entries }
        guard subject.scope.isFolder, !subject.text.isEmpty else {
            return try ordered(subject, now).entries
        }
        // A part of the folder's list, which is kept for the next letter.
        var whole = subject
        whole.text = ""
        var list = try known(whole, now)
        if list?.lines == nil { list = try ordered(whole, now) }
        guard let list, let lines = list.lines else { return [] }
        let sieve = Sieve(subject)
        let entries = lines.filter { sieve.contains($0.name) }.map(\.entry)
        keep(Order(subject: subject, entries: entries, lines: nil, change: now, age: list.age))
        return entries
    }

    private func ordered(_ subject: Subject, _ now: Int64) throws(Failure) -> Order {
        var age = Age()
        let isDescending = subject.isDescending && subject.scope != .recent
        let lines = try lines(subject).sorted(isDescending: isDescending)
        age.ordered()
        // What a search has found is no list that a filter is of.
        let order = Order(
            subject: subject, entries: lines.map(\.entry),
            lines: subject.scope.isFolder ? lines : nil, change: now, age: age)
        keep(order)
        return order
    }

    private func known(_ subject: Subject, _ now: Int64) throws(Failure) -> Order? {
        guard var known = state.withLock({ orders in orders.first { $0.subject == subject } }),
            try isCurrent(known, now)
        else { return nil }
        known.change = now
        keep(known)
        return known
    }

    private func keep(_ order: Order) {
        state.withLock { orders in
            orders.removeAll { $0.subject == order.subject }
            if order.lines != nil { for index in orders.indices { orders[index].lines = nil } }
            orders.insert(order, at: 0)
            if orders.count > FolderWindows.orderCountMax { orders.removeLast() }
        }
    }

    /// Nothing has changed in the folder since.
    private func isCurrent(_ order: Order, _ now: Int64) throws(Failure) -> Bool {
        if !order.subject.isOfNames, order.age.isOver { return false }
        if order.change == now { return true }
        guard case .folder(let folder) = order.subject.scope,
            now - order.change < FolderWindows.changeCountMax
        else { return false }
        let changes = try tree.index.read { transaction throws(Failure) in
            try transaction.changes(since: order.change, limit: FolderWindows.changeCountMax)
        }
        return !changes.contains { $0.parent == folder }
    }

    private func lines(_ subject: Subject) throws(Failure) -> FolderLines {
        let sieve = Sieve(subject)
        switch subject.scope {
        case .recent:
            return try tree.index.read { transaction throws(Failure) in
                let newest = try RecentDocuments.newest(FolderWindows.recentCountMax, transaction)
                return try self.lines(newest, sieve, transaction)
            }
        case .everywhere:
            return try tree.index.read { transaction throws(Failure) in
                let found = try transaction.search(
                    names: subject.text, limit: FolderWindows.foundCountMax)
                // A document with two such names is found twice.
                let nodes = Set(found.map(\.node)).sorted()
                return try self.lines(try transaction.items(of: nodes), sieve, transaction)
            }
        case .folder(let folder): return try lines(of: folder, sieve)
        }
    }

    private func lines(of folder: NodeID, _ sieve: Sieve) throws(Failure) -> FolderLines {
        let key = sieve.subject.key
        let extra: FolderRows.Extra =
            switch key {
            case .state: .state
            case .tags: .attribute(FolderWindows.tags)
            default: .nothing
            }
        var result = FolderLines()
        var last: FileName?
        while true {
            let rows = try tree.index.read { transaction throws(Failure) in
                try FolderRows.rows(
                    in: folder, after: last, limit: FolderWindows.pageCount, extra, transaction)
            }
            for row in rows {
                guard let name = sieve.folded(row.name, row.kind) else { continue }
                let isFolder = row.kind == .folder
                switch key {
                case .name: result.add(row.entry, isFolder, name)
                case .date:
                    result.add(row.entry, isFolder, name, number: row.modificationTime.rawValue)
                case .size:
                    let size = isFolder ? 0 : Int64(clamping: row.size)
                    result.add(row.entry, isFolder, name, number: size)
                case .kind:
                    let type = ContentType.of(row.name, row.kind).identifier
                    result.add(row.entry, isFolder, name, text: type)
                case .state:
                    let state = row.state.map { tree.filesystem.state(of: $0).rawValue }
                    result.add(row.entry, isFolder, name, text: state ?? "")
                case .tags:
                    let tags = String(decoding: row.attribute ?? [], as: UTF8.self)
                    result.add(row.entry, isFolder, name, text: tags)
                }
            }
            last = rows.last?.name
            if rows.count < FolderWindows.pageCount { return result }
        }
    }

    private func lines(
        _ items: [IndexedItem], _ sieve: Sieve, _ transaction: borrowing Transaction
    ) throws(Failure) -> FolderLines {
        var lines = FolderLines()
        for item in items {
            let (entry, node) = (item.entry, item.node)
            guard let name = sieve.folded(entry.name, node.kind) else { continue }
            let isFolder = node.kind == .folder
            if sieve.subject.scope == .recent {
                let use = max(node.lastUse, node.accessTime).rawValue
                lines.add(entry.id, isFolder, name, number: -use)
                continue
            }
            switch sieve.subject.key {
            case .name: lines.add(entry.id, isFolder, name)
            case .date: lines.add(entry.id, isFolder, name, number: node.modificationTime.rawValue)
            case .size:
                lines.add(entry.id, isFolder, name, number: isFolder ? 0 : Int64(clamping: node.size))
            case .kind:
                lines.add(entry.id, isFolder, name, text: ContentType.of(entry.name, node.kind).identifier)
            case .state:
                let known = try reader.attributes(of: item, .state, transaction)
                lines.add(entry.id, isFolder, name, text: known.state?.rawValue ?? "")
            case .tags:
                let tags = try transaction.attribute(FolderWindows.tags, of: node.id) ?? []
                lines.add(entry.id, isFolder, name, text: String(decoding: tags, as: UTF8.self))
            }
        }
        return lines
    }
}
