public import PromiseKit

/// What a person or the world does.
public enum PickerEvent: Sendable, Equatable {
    case places([PickerPlace])
    case window(generation: Int, offset: Int, total: Int, items: [PickerItem], reason: String?)
    /// A list cannot be had.
    case failed(generation: Int, message: String)
    /// Something may have changed in what is shown.
    case changed
    /// So many lines from there are in sight.
    case see(first: Int, count: Int)
    case step(Int)
    case go(to: Int)
    case end
    /// Opens the folder at the cursor, or picks.
    case enter
    case up
    case visit(PickerFolder)
    case showRecent
    case mark
    case filter(String)
    case search(String)
    case sort(FolderListing.Key)
    case reverse
    case toggleHidden
    case name([UInt8])
    case makeFolder([UInt8])
    case rename([UInt8])
    /// Picks what is marked, at the cursor, or the place that is shown.
    case confirm
    /// The same of an item that a front end has in its own list.
    case enterItem(PickerItem)
    case markItem(PickerItem)
    case confirmItem(PickerItem)
    case renameItem(PickerItem, to: [UInt8])
    case cancel
    case made(PickerFolder)
    case performed([PickedDocument])
    /// What was to be done could not be.
    case refused(String)
}

/// What is to be done about it.
public enum PickerAction: Sendable, Equatable {
    case list(PickerListing, generation: Int, offset: Int, limit: Int)
    case makeFolder(PickerFolder, name: [UInt8])
    case rename(PickerItem, to: [UInt8])
    case perform([PickerConsequence])
    case finish(PickerOutcome)
}

/// The picker: which list is shown, what is marked, and what comes of it. It does nothing by itself
/// and asks nobody: events in, actions out.
public struct PickerMachine: Sendable {
    public enum Phase: Sendable, Equatable { case browsing, performing, finished }

    /// Rows of one window.
    public static let windowCount = 200
    /// Windows that are kept: what is out of sight is asked for again.
    static let keptWindowCount = 6

    public let request: PickerRequest
    public private(set) var phase = Phase.browsing
    public private(set) var places: [PickerPlace] = []
    /// Nil until there is something to show.
    public private(set) var listing: PickerListing?
    /// Of the list that is shown; answers to others are late.
    public private(set) var generation = 0
    public private(set) var total: Int?
    public private(set) var cursor = 0
    /// In the order in which they were marked.
    public private(set) var marked: [PickerItem] = []
    public private(set) var name: [UInt8]
    /// A folder is being made, or something renamed.
    public private(set) var isBusy = false
    /// What went wrong last.
    public private(set) var message: String?
    /// Why something may be missing.
    public private(set) var reason: String?
    private var windows: [Int: [PickerItem]] = [:]
    private var asked: Set<Int> = []
    private var sight = 0..<0
    /// Where the cursor goes when the list is there: on the folder one came from.
    private var wanted: [UInt8]?

    public init(_ request: PickerRequest) {
        self.request = request
        name = request.suggestedName
        if name.isEmpty, request.hasName, let source = request.sources.first { name = source.name }
    }

    public func item(_ index: Int) -> PickerItem? {
        guard let window = windows[index / PickerMachine.windowCount] else { return nil }
        let place = index % PickerMachine.windowCount
        return place < window.count ? window[place] : nil
    }

    public var current: PickerItem? { item(cursor) }

    /// The folder that is shown.
    public var folder: PickerFolder? {
        if case .folder(let folder)? = listing?.view { return folder }
        return nil
    }

    public mutating func handle(_ event: PickerEvent) -> [PickerAction] {
        switch phase {
        case .finished: return []
        case .performing: return handleOutcome(event)
        case .browsing: break
        }
        switch event {
        case .places(let places): return arrive(places)
        case .window, .failed, .changed, .see: return handleList(event)
        case .step, .go, .end, .up, .mark: return handleMovement(event)
        case .enter: return current.map { enter($0) } ?? []
        case .visit(let folder): return show(.folder(folder))
        case .showRecent: return show(.recent)
        case .filter, .search, .sort, .reverse, .toggleHidden: return handleOrder(event)
        case .name(let name): self.name = name
        case .makeFolder(let name): return makeFolder(name)
        case .rename(let name): return current.map { rename($0, name) } ?? []
        case .renameItem(let item, let name): return rename(item, name)
        case .confirm: return confirm()
        case .confirmItem(let item):
            return mayPick(item) && !request.picksPlace ? pick([item]) : confirm()
        case .enterItem(let item): return enter(item)
        case .markItem(let item): mark(item)
        case .cancel: return finish(.cancelled)
        case .made(let folder):
            isBusy = false
            return show(.folder(folder))
        case .performed: break
        case .refused(let message):
            isBusy = false
            self.message = message
        }
        return []
    }

    private mutating func handleOutcome(_ event: PickerEvent) -> [PickerAction] {
        switch event {
        case .performed(let documents): return finish(.picked(documents))
        case .refused(let message):
            phase = .browsing
            self.message = message
            return relist()
        // What is under way ends one way or the other.
        default: return []
        }
    }

    private mutating func finish(_ outcome: PickerOutcome) -> [PickerAction] {
        phase = .finished
        return [.finish(outcome)]
    }
}

// MARK: - Lists

extension PickerMachine {
    private mutating func arrive(_ places: [PickerPlace]) -> [PickerAction] {
        self.places = places
        guard listing == nil else { return [] }
        if let start = request.start { return show(.folder(start)) }
        let folders = places.filter { $0.kind == .domain }
        // A person with several domains begins with what was used last; of a place, with one that
        // there is.
        if let first = folders.first?.folder, folders.count == 1 || request.picksPlace {
            return show(.folder(first))
        }
        if folders.isEmpty {
            message = "no domain is mounted"
            return []
        }
        return show(.recent)
    }

    private mutating func show(_ view: PickerListing.View) -> [PickerAction] {
        var next = listing ?? PickerListing(view)
        let isOther = next.view != view
        next.view = view
        if isOther { next.filter = "" }
        // A place is shown with all that is in it.
        next.types = request.picksPlace || request.picksFolders ? [] : request.types
        next.foldersOnly = request.picksFolders && !request.picksPlace
        message = nil
        return list(next)
    }

    private mutating func list(_ next: PickerListing) -> [PickerAction] {
        listing = next
        total = nil
        cursor = 0
        windows = [:]
        reason = nil
        sight = 0..<1
        return relist()
    }

    /// The same list anew; what is shown stays until then.
    private mutating func relist() -> [PickerAction] {
        guard listing != nil else { return [] }
        generation += 1
        asked = []
        let shown = windowsInSight
        windows = windows.filter { shown.contains($0.key) }
        return ask(shown.isEmpty ? [0] : shown)
    }

    private mutating func ask(_ numbers: [Int]) -> [PickerAction] {
        guard let listing else { return [] }
        var actions: [PickerAction] = []
        for number in numbers where asked.insert(number).inserted {
            actions.append(
                .list(
                    listing, generation: generation, offset: number * PickerMachine.windowCount,
                    limit: PickerMachine.windowCount))
        }
        return actions
    }

    private mutating func handleList(_ event: PickerEvent) -> [PickerAction] {
        switch event {
        case .window(generation, let offset, let total, let items, let reason):
            self.total = total
            self.reason = reason
            windows[offset / PickerMachine.windowCount] = items
            forgetFarWindows()
            settleCursor()
            return ask(windowsInSight.filter { windows[$0] == nil })
        case .failed(generation, let message):
            self.message = message
            if total == nil { total = 0 }
        case .changed:
            isBusy = false
            return relist()
        case .see(let first, let count):
            sight = max(0, first)..<(max(0, first) + max(1, count))
            return ask(windowsInSight.filter { windows[$0] == nil })
        default: break
        }
        return []
    }

    private var windowsInSight: [Int] {
        guard let total, total > 0 else { return [] }
        let last = min(sight.upperBound, total) - 1
        let first = max(0, min(sight.lowerBound, last))
        let numbers = first / PickerMachine.windowCount...last / PickerMachine.windowCount
        // The cursor may be out of sight, but nobody sees more than a few windows.
        return Array(Set(numbers.prefix(3) + [cursor / PickerMachine.windowCount])).sorted()
    }

    private mutating func forgetFarWindows() {
        let here = sight.lowerBound / PickerMachine.windowCount
        let far = windows.keys.sorted { abs($0 - here) < abs($1 - here) }.dropFirst(
            PickerMachine.keptWindowCount)
        for number in far {
            windows[number] = nil
            asked.remove(number)
        }
    }

    private mutating func settleCursor() {
        cursor = max(0, min(cursor, (total ?? 1) - 1))
        guard let wanted, let window = windows[0] else { return }
        if let place = window.firstIndex(where: { $0.path == wanted }) { cursor = place }
        self.wanted = nil
    }
}

// MARK: - Moving and marking

extension PickerMachine {
    private mutating func handleMovement(_ event: PickerEvent) -> [PickerAction] {
        switch event {
        case .step(let count): return moveCursor(to: cursor + count)
        case .go(let index): return moveCursor(to: index)
        case .end: return moveCursor(to: (total ?? 1) - 1)
        case .up:
            switch listing?.view {
            case .folder(let folder):
                guard let parent = folder.parent else { return [] }
                wanted = folder.path
                return show(.folder(parent))
            default: return []
            }
        case .mark: return mark()
        default: return []
        }
    }

    private mutating func moveCursor(to index: Int) -> [PickerAction] {
        cursor = max(0, min(index, (total ?? 1) - 1))
        message = nil
        return ask(windowsInSight.filter { windows[$0] == nil })
    }

    private mutating func mark() -> [PickerAction] {
        guard let current, mark(current) else { return [] }
        return moveCursor(to: cursor + 1)
    }

    @discardableResult private mutating func mark(_ item: PickerItem) -> Bool {
        guard request.allowsMultiple, !request.picksPlace, mayPick(item) else { return false }
        if let place = marked.firstIndex(where: { $0.domain == item.domain && $0.path == item.path }
        ) {
            marked.remove(at: place)
        } else {
            marked.append(item)
        }
        return true
    }

    public func isMarked(_ item: PickerItem) -> Bool {
        marked.contains { $0.domain == item.domain && $0.path == item.path }
    }

    func mayPick(_ item: PickerItem) -> Bool {
        request.picksFolders ? item.isFolder : !item.isFolder
    }

    private mutating func handleOrder(_ event: PickerEvent) -> [PickerAction] {
        guard var next = listing else { return [] }
        switch event {
        case .filter(let text): next.filter = text
        case .search(let text):
            if text.isEmpty { return [] }
            return show(.everywhere(text))
        case .sort(let key):
            // The same once more turns it around; the newest and the largest come first.
            next.isDescending = next.key == key ? !next.isDescending : key == .date || key == .size
            next.key = key
        case .reverse: next.isDescending.toggle()
        case .toggleHidden: next.showsHidden.toggle()
        default: break
        }
        message = nil
        return next == listing ? [] : list(next)
    }
}

// MARK: - Picking

extension PickerMachine {
    private mutating func enter(_ item: PickerItem) -> [PickerAction] {
        if item.isFolder { return show(.folder(item.asFolder)) }
        if request.picksPlace {
            // As if its name had been typed.
            if request.hasName { name = item.name }
            return []
        }
        if marked.isEmpty, mayPick(item) { return pick([item]) }
        return confirm()
    }

    private mutating func pick(_ items: [PickerItem]) -> [PickerAction] {
        message = nil
        return perform(items.map { request.mode == .import ? .copyOut($0) : .open($0) })
    }

    private mutating func confirm() -> [PickerAction] {
        message = nil
        return request.picksPlace ? confirmPlace() : confirmDocuments()
    }

    private mutating func confirmDocuments() -> [PickerAction] {
        var picked = marked
        if picked.isEmpty, let current, mayPick(current) { picked = [current] }
        if picked.isEmpty, request.picksFolders, let folder {
            picked = [PickerItem(domain: folder.domain, path: folder.path, kind: "folder")]
        }
        guard !picked.isEmpty else {
            message = request.picksFolders ? "pick a folder" : "pick a document"
            return []
        }
        return pick(picked)
    }

    private mutating func confirmPlace() -> [PickerAction] {
        guard let folder else {
            message = "choose a folder for it"
            return []
        }
        if request.hasName, let problem = PickerMachine.problem(withName: name) {
            message = problem
            return []
        }
        switch request.mode {
        case .create: return perform([.create(folder, name: name)])
        case .move:
            return perform(request.sources.map { .move($0, to: folder, as: target(of: $0)) })
        default: return perform(request.sources.map { .export($0, to: folder, as: target(of: $0)) })
        }
    }

    private func target(of source: PickerRequest.Source) -> [UInt8] {
        request.hasName ? name : source.name
    }

    private mutating func perform(_ consequences: [PickerConsequence]) -> [PickerAction] {
        phase = .performing
        return [.perform(consequences)]
    }

    private mutating func makeFolder(_ name: [UInt8]) -> [PickerAction] {
        guard request.picksPlace, let folder else { return [] }
        if let problem = PickerMachine.problem(withName: name) {
            message = problem
            return []
        }
        isBusy = true
        return [.makeFolder(folder, name: name)]
    }

    private mutating func rename(_ item: PickerItem, _ name: [UInt8]) -> [PickerAction] {
        guard request.picksPlace, name != item.name else { return [] }
        if let problem = PickerMachine.problem(withName: name) {
            message = problem
            return []
        }
        isBusy = true
        return [.rename(item, to: name)]
    }

    /// Nil for what can be a name.
    public static func problem(withName name: [UInt8]) -> String? {
        if name.isEmpty { return "it needs a name" }
        if name.contains(0x2F) || name.contains(0) { return "a name has no '/' in it" }
        if name == Array(".".utf8) || name == Array("..".utf8) {
            return "'.' and '..' are no names"
        }
        return name.count > 255 ? "a name has at most 255 bytes" : nil
    }
}
