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
    }

    private struct Order {
        var subject: Subject
        var entries: [EntryID]
        /// Of the list that is looked at now, so that a letter more or less reads nothing.
        var lines: [Line]?
        /// The last change that it knows of.
        var change: Int64
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

    /// One line of a folder, as it is sorted.
    private struct Line {
        var entry: EntryID
        var isFolder: Bool
        /// Of what sorts by a number.
        var number: Int64
        /// Of what sorts by a text, and of equal ones.
        var text: [UInt8]
        var name: [UInt8]
        /// The first bytes of `name`: most names differ in them, and numbers are compared sooner.
        let start: (UInt64, UInt64)

        init(_ entry: EntryID, isFolder: Bool, number: Int64 = 0, text: [UInt8] = [], name: [UInt8]) {
            self.entry = entry
            self.isFolder = isFolder
            self.number = number
            self.text = text
            self.name = name
            start = (Line.number(name[...]), Line.number(name.dropFirst(8)))
        }

        private static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 {
            let number = bytes.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            return number << UInt64(8 * max(0, 8 - bytes.count))
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
        var whole = subject
        whole.text = ""
        let isPart = subject.scope.isFolder && !subject.text.isEmpty
        if isPart, let lines = try known(whole, now)?.lines {
            let sieve = Sieve(subject)
            let entries = lines.filter { sieve.contains($0.name) }.map(\.entry)
            keep(Order(subject: subject, entries: entries, lines: nil, change: now))
            return entries
        }
        let lines = sorted(try lines(subject), subject)
        let entries = lines.map(\.entry)
        keep(Order(subject: subject, entries: entries, lines: isPart ? nil : lines, change: now))
        return entries
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
        if order.change == now { return true }
        guard case .folder(let folder) = order.subject.scope,
            now - order.change < FolderWindows.changeCountMax
        else { return false }
        let changes = try tree.index.read { transaction throws(Failure) in
            try transaction.changes(since: order.change, limit: FolderWindows.changeCountMax)
        }
        return !changes.contains { $0.parent == folder }
    }

    private func lines(_ subject: Subject) throws(Failure) -> [Line] {
        let sieve = Sieve(subject)
        var result: [Line] = []
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
                return try self.lines(
                    try transaction.items(of: found.map(\.node)), sieve, transaction)
            }
        case .folder(let folder):
            if subject.key != .state && subject.key != .tags {
                return try plainLines(of: folder, sieve)
            }
            var last: FileName?
            while true {
                let page = try tree.index.read { transaction throws(Failure) in
                    let rows = try transaction.nodes(
                        in: folder, after: last, limit: FolderWindows.pageCount)
                    let items = rows.map { IndexedItem(entry: $0.entry, node: $0.node) }
                    return (
                        try self.lines(items, sieve, transaction), items.last?.entry.name,
                        items.count
                    )
                }
                result += page.0
                last = page.1
                if page.2 < FolderWindows.pageCount { return result }
            }
        }
    }

    /// For what is in the rows of a folder themselves.
    private func plainLines(of folder: NodeID, _ sieve: Sieve) throws(Failure) -> [Line] {
        let key = sieve.subject.key
        var result: [Line] = []
        var last: FileName?
        while true {
            let rows = try tree.index.read { transaction throws(Failure) in
                try FolderRows.rows(
                    in: folder, after: last, limit: FolderWindows.pageCount, transaction)
            }
            for row in rows {
                guard let name = sieve.folded(row.name, row.kind) else { continue }
                let number: Int64 =
                    switch key {
                    case .date: row.modificationTime.rawValue
                    case .size: row.kind == .folder ? 0 : Int64(clamping: row.size)
                    default: 0
                    }
                let text = key == .kind ? ContentType.of(row.name, row.kind).identifier : ""
                result.append(
                    Line(
                        row.entry, isFolder: row.kind == .folder, number: number,
                        text: Array(text.utf8), name: name))
            }
            last = rows.last?.name
            if rows.count < FolderWindows.pageCount { return result }
        }
    }

    private func lines(
        _ items: [IndexedItem], _ sieve: Sieve, _ transaction: borrowing Transaction
    ) throws(Failure) -> [Line] {
        var lines: [Line] = []
        for item in items {
            guard let name = sieve.folded(item.entry.name, item.node.kind) else { continue }
            lines.append(try line(item.entry, item.node, name, sieve.subject, transaction))
        }
        return lines
    }

    private func line(
        _ entry: Entry, _ node: Node, _ name: [UInt8], _ subject: Subject,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> Line {
        var line = Line(entry.id, isFolder: node.kind == .folder, name: name)
        if subject.scope == .recent {
            line.number = -max(node.lastUse, node.accessTime).rawValue
            return line
        }
        switch subject.key {
        case .name: break
        case .date: line.number = node.modificationTime.rawValue
        case .size: line.number = node.kind == .folder ? 0 : Int64(clamping: node.size)
        case .kind: line.text = Array(ContentType.of(entry.name, node.kind).identifier.utf8)
        case .state:
            let known = try reader.attributes(
                of: IndexedItem(entry: entry, node: node), .state, transaction)
            line.text = Array((known.state?.rawValue ?? "").utf8)
        case .tags:
            line.text = try transaction.attribute(Array("user.xdg.tags".utf8), of: node.id) ?? []
        }
        return line
    }

    /// What is compared of a line first, without its arrays: those are moved once, not at each step.
    private struct SortKey {
        var isFolder: Bool
        var number: Int64
        var start: (UInt64, UInt64)
        var place: Int
    }

    /// Folders first, whichever way.
    private func sorted(_ lines: [Line], _ subject: Subject) -> [Line] {
        let isDescending = subject.isDescending && subject.scope != .recent
        let hasTexts = lines.contains { !$0.text.isEmpty }
        var keys = lines.indices.map { place in
            let line = lines[place]
            return SortKey(
                isFolder: line.isFolder, number: line.number, start: line.start, place: place)
        }
        keys.sort { left, right in
            if left.isFolder != right.isFolder { return left.isFolder }
            let (first, second) = isDescending ? (right, left) : (left, right)
            if first.number != second.number { return first.number < second.number }
            if hasTexts, lines[first.place].text != lines[second.place].text {
                return lines[first.place].text.lexicographicallyPrecedes(lines[second.place].text)
            }
            if first.start.0 != second.start.0 { return first.start.0 < second.start.0 }
            if first.start.1 != second.start.1 { return first.start.1 < second.start.1 }
            if lines[first.place].name != lines[second.place].name {
                return lines[first.place].name.lexicographicallyPrecedes(lines[second.place].name)
            }
            return lines[first.place].entry.rawValue < lines[second.place].entry.rawValue
        }
        return keys.map { lines[$0.place] }
    }
}
