import PromiseCore
import PromiseProvider

/// What a storage is like.
struct StoreKind: Hashable {
    /// Items are known by where they are.
    var byPlace = false
    /// A listing does not tell modes, times and links.
    var guesses = false
    var keepsTimes = true
    /// A version is what the bytes are, as where it is a checksum.
    var versionsAreContents = false
    /// It tells by itself what others change.
    var pushes = true
    /// And what became of each item, not only in which folder.
    var tellsItems = false
    /// It does something only as long as nobody has done something else. Without that a look goes before every change, and
    /// what others do in between is overwritten.
    var hasConditions = true

    static let all: [(name: String, kind: StoreKind)] = [
        ("numbers", StoreKind()),
        ("numbers, polled", StoreKind(pushes: false)),
        ("no times", StoreKind(keepsTimes: false, pushes: false)),
        ("places", StoreKind(byPlace: true, pushes: false)),
        ("places, guesses", StoreKind(byPlace: true, guesses: true, versionsAreContents: true, pushes: false)),
        ("places, no times", StoreKind(byPlace: true, keepsTimes: false, pushes: false)),
        // By `--store` alone, so that seeds mean what they meant before these were there.
        ("no conditions", StoreKind(pushes: false, hasConditions: false)),
        ("places, no conditions", StoreKind(byPlace: true, pushes: false, hasConditions: false)),
        ("numbers, told", StoreKind(tellsItems: true)),
        ("no times, told", StoreKind(keepsTimes: false, tellsItems: true)),
    ]
    /// What a seed chooses from.
    static let chosenCount = 6

    var capabilities: Capabilities {
        var result: Capabilities = [.atomicRename, .ranges, .links]
        if hasConditions { result.insert(.conditionalWrite) }
        result.insert(byPlace ? .placeIdentifiers : .stableIdentifiers)
        if keepsTimes { result.insert(.metadata) }
        if pushes { result.formUnion([.changeFeed, .changePush]) }
        return result
    }
}

/// The storage itself, which all machines share: what is in it now, and every content that it has had.
final class Store {
    struct Item {
        var number: Int
        var parent: Int
        var name: FileName
        var kind: NodeKind
        var bytes: [UInt8] = []
        var target: [UInt8]?
        var version: String
        var metadata: Metadata
    }

    static let root = 0
    let kind: StoreKind
    private(set) var items: [Int: Item] = [:]
    /// By version: what it was.
    private(set) var contents: [String: [UInt8]] = [:]
    private var count = 0
    private(set) var changeCount = 0
    private var changes: [(number: Int, folder: Int, item: Int)] = []
    private var waiting: [() -> Void] = []
    /// What went as the store has no conditions: nobody could have kept it.
    private(set) var overwritten: Set<String> = []

    init(_ kind: StoreKind) {
        self.kind = kind
        items[Store.root] = Item(
            number: Store.root, parent: -1, name: FileName("root")!, kind: .folder, version: "folder",
            metadata: Store.metadata(0o755))
    }

    static func metadata(_ mode: UInt32) -> Metadata {
        Metadata(mode: mode, owner: 0, group: 0, modificationTime: Timestamp(seconds: 1_000_000, nanoseconds: 0))
    }

    // MARK: Looking

    func child(_ name: FileName, of parent: Int) -> Item? {
        // In the order of numbers, so that the same seed finds the same.
        items.values.filter { $0.parent == parent && $0.name == name }.min { $0.number < $1.number }
    }

    func children(of parent: Int) -> [Item] {
        items.values.filter { $0.parent == parent }.sorted { $0.number < $1.number }
    }

    func item(at path: [FileName]) -> Item? {
        var current = items[Store.root]
        for name in path { current = current.flatMap { child(name, of: $0.number) } }
        return current
    }

    func path(of number: Int) -> [FileName] {
        var names: [FileName] = []
        var current = items[number]
        while let item = current, item.number != Store.root {
            names.append(item.name)
            current = items[item.parent]
        }
        return names.reversed()
    }

    func isInside(_ number: Int, _ folder: Int) -> Bool {
        var current: Int? = number
        while let next = current {
            if next == folder { return true }
            current = items[next]?.parent
        }
        return false
    }

    // MARK: Changing

    /// The next version of a content.
    func version(of bytes: [UInt8]) -> String {
        count += 1
        let version: String
        if kind.versionsAreContents {
            var number: UInt64 = 0xcbf2_9ce4_8422_2325
            for byte in bytes { number = (number ^ UInt64(byte)) &* 0x100_0000_01b3 }
            version = "sum-\(number)"
        } else {
            version = "version-\(count)"
        }
        contents[version] = bytes
        return version
    }

    func nextNumber() -> Int {
        count += 1
        return count
    }

    func put(_ item: Item) {
        if let old = items[item.number], old.parent != item.parent { noteChange(in: old.parent, of: item.number) }
        items[item.number] = item
        noteChange(in: item.parent, of: item.number)
    }

    /// Somebody's change between a look and what followed it goes.
    func overwrite(_ item: Item) { overwritten.formUnion(Ledger.tokens(in: item.bytes)) }

    func remove(_ number: Int) {
        guard let item = items.removeValue(forKey: number) else { return }
        noteChange(in: item.parent, of: number)
    }

    private func noteChange(in folder: Int, of item: Int) {
        changeCount += 1
        changes.append((changeCount, folder, item))
        let ready = waiting
        waiting = []
        for resume in ready { resume() }
    }

    func changedFolders(since number: Int) -> Set<Int> { Set(changes.filter { $0.number > number }.map(\.folder)) }

    func changedItems(since number: Int) -> [Int] { Set(changes.filter { $0.number > number }.map(\.item)).sorted() }

    /// Calls when there is a change after `number`.
    func whenChanged(since number: Int, _ resume: @escaping () -> Void) {
        if changeCount > number { resume() } else { waiting.append(resume) }
    }
}
