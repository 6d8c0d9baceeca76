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
    /// Opens the folder at the cursor; nothing of a document.
    case enterFolder
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
    /// Of the choices that go with it.
    case choose(choice: Int, option: Int)
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
    /// False: the front end asks for lists by itself, and none comes here.
    let hasLists: Bool
    public internal(set) var phase = Phase.browsing
    public internal(set) var places: [PickerPlace] = []
    /// Nil until there is something to show.
    public internal(set) var listing: PickerListing?
    /// Of the list that is shown; answers to others are late.
    public internal(set) var generation = 0
    public internal(set) var total: Int?
    public internal(set) var cursor = 0
    /// In the order in which they were marked.
    public internal(set) var marked: [PickerItem] = []
    public internal(set) var name: [UInt8]
    /// Of each choice of the request: an index of its names.
    public private(set) var chosen: [Int]
    /// What was to be saved to last.
    var said: PickerFolder?
    /// A folder is being made, or something renamed.
    public internal(set) var isBusy = false
    /// What went wrong last.
    public internal(set) var message: String?
    /// Why something may be missing.
    public internal(set) var reason: String?
    var windows: [Int: [PickerItem]] = [:]
    var asked: Set<Int> = []
    var sight = 0..<0
    /// Where the cursor goes when the list is there: on the folder one came from.
    var wanted: [UInt8]?
    /// A part of the list that is shown could not be had: it is asked for again by who moves there.
    var lacksPart = false
    /// What a person typed ahead of the list that it is about, in that order.
    var typedAhead: [PickerEvent] = []

    public init(_ request: PickerRequest, hasLists: Bool = true) {
        self.request = request
        self.hasLists = hasLists
        name = request.suggestedName
        chosen = request.choices.map { $0.names.indices.contains($0.initial) ? $0.initial : 0 }
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
        if waits(event) {
            typeAhead(event)
            return []
        }
        let actions = take(event)
        switch event {
        case .window, .failed: return actions + takeTypedAhead(after: event)
        default: return actions
        }
    }

    mutating func take(_ event: PickerEvent) -> [PickerAction] {
        switch event {
        case .places(let places): return arrive(places)
        case .window, .failed, .changed, .see: return handleList(event)
        case .step, .go, .end, .up, .mark: return handleMovement(event)
        case .enter: return current.map { enter($0) } ?? []
        case .enterFolder: return current.map { $0.isFolder ? enter($0) : [] } ?? []
        case .visit(let folder): return show(.folder(folder))
        case .showRecent: return show(.recent)
        case .filter, .search, .sort, .reverse, .toggleHidden: return handleOrder(event)
        case .name(let name): self.name = name
        case .choose(let choice, let option):
            guard request.choices.indices.contains(choice),
                request.choices[choice].names.indices.contains(option)
            else { break }
            chosen[choice] = option
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

    mutating func handleOutcome(_ event: PickerEvent) -> [PickerAction] {
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

    mutating func finish(_ outcome: PickerOutcome) -> [PickerAction] {
        phase = .finished
        return [.finish(outcome)]
    }
}

// MARK: - Lists

extension PickerMachine {
    mutating func arrive(_ places: [PickerPlace]) -> [PickerAction] {
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

    mutating func show(_ view: PickerListing.View) -> [PickerAction] {
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

    mutating func list(_ next: PickerListing) -> [PickerAction] {
        listing = next
        total = nil
        cursor = 0
        windows = [:]
        reason = nil
        sight = 0..<1
        return relist()
    }

    /// The same list anew; what is shown stays until then.
    mutating func relist() -> [PickerAction] {
        guard listing != nil else { return [] }
        generation += 1
        asked = []
        lacksPart = false
        let shown = windowsInSight
        windows = windows.filter { shown.contains($0.key) }
        return ask(shown.isEmpty ? [0] : shown)
    }

    mutating func ask(_ numbers: [Int]) -> [PickerAction] {
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

    mutating func handleList(_ event: PickerEvent) -> [PickerAction] {
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
            lacksPart = true
            if total == nil { total = 0 }
        case .changed:
            isBusy = false
            message = nil
            return relist()
        case .see(let first, let count):
            sight = max(0, first)..<(max(0, first) + max(1, count))
            return ask(windowsInSight.filter { windows[$0] == nil })
        default: break
        }
        return []
    }

    var windowsInSight: [Int] {
        guard let total, total > 0 else { return [] }
        let last = min(sight.upperBound, total) - 1
        let first = max(0, min(sight.lowerBound, last))
        let numbers = first / PickerMachine.windowCount...last / PickerMachine.windowCount
        // The cursor may be out of sight, but nobody sees more than a few windows.
        return Array(Set(numbers.prefix(3) + [cursor / PickerMachine.windowCount])).sorted()
    }

    mutating func forgetFarWindows() {
        let here = sight.lowerBound / PickerMachine.windowCount
        let far = windows.keys.sorted { abs($0 - here) < abs($1 - here) }.dropFirst(
            PickerMachine.keptWindowCount)
        // Keys wait for that of the cursor.
        for number in far where number != cursor / PickerMachine.windowCount {
            windows[number] = nil
            asked.remove(number)
        }
    }

    mutating func settleCursor() {
        cursor = max(0, min(cursor, (total ?? 1) - 1))
        guard let wanted, let window = windows[0] else { return }
        if let place = window.firstIndex(where: { $0.path == wanted }) { cursor = place }
        self.wanted = nil
    }
}

// MARK: - Moving and marking

extension PickerMachine {
    mutating func handleMovement(_ event: PickerEvent) -> [PickerAction] {
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

    mutating func moveCursor(to index: Int) -> [PickerAction] {
        cursor = max(0, min(index, (total ?? 1) - 1))
        message = nil
        if lacksPart { asked = Set(windows.keys) }
        lacksPart = false
        return ask(windowsInSight.filter { windows[$0] == nil })
    }

    mutating func mark() -> [PickerAction] {
        guard let current, mark(current) else { return [] }
        return moveCursor(to: cursor + 1)
    }

    @discardableResult mutating func mark(_ item: PickerItem) -> Bool {
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

    mutating func handleOrder(_ event: PickerEvent) -> [PickerAction] {
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
