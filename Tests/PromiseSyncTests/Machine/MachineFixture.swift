import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSync
import PromiseSystem
import PromiseTestSupport
import Testing

/// A machine over a real index and content store, and what it does as a text.
final class MachineFixture {
    static let root = ItemIdentifier("root")
    static let pushing: Capabilities = [.stableIdentifiers, .metadata, .changeFeed, .changePush]
    static let polled: Capabilities = [.stableIdentifiers, .metadata]
    static let places: Capabilities = [.placeIdentifiers, .metadata, .changeFeed, .changePush]

    private let folder: TemporaryFolder
    let index: Index
    let content: ContentStore
    let machine: MachineTranscript

    init(_ capabilities: Capabilities = MachineFixture.pushing, cacheLimit: UInt64? = nil) throws {
        folder = try TemporaryFolder("machine")
        index = try Index(path: folder.path("index.sqlite"), cacheCountMax: 1_000)
        try index.write { transaction throws(Failure) in
            try transaction.setSetting("root.identifier", MachineFixture.root.rawValue)
        }
        var configuration = SyncEngine.Configuration(
            uploadDelay: .zero, pollInterval: .seconds(60), cacheLimit: cacheLimit, hostName: "host"
        )
        configuration.backoff = Backoff(first: .seconds(1), longest: .seconds(60))
        content = try ContentStore(folder: folder.path("content"))
        machine = MachineTranscript(
            index: index, content: content,
            root: MachineFixture.root, capabilities: capabilities, configuration: configuration,
            observer: QuietObserver())
    }

    deinit { index.close() }

    /// What the machine has done since the last time is this.
    func expect(_ text: String, _ location: SourceLocation = #_sourceLocation) {
        let done = machine.take()
        #expect(done == text, "it was:\n\(done)", sourceLocation: location)
    }

    /// Connected, with a root that holds these and was listed.
    func start(with items: [Item] = []) {
        machine.happen("start", .started(isConnected: true, patience: nil))
        machine.happen("list", .listingWanted(.root, isWhole: true, Waiter(number: 1)))
        machine.answer("list", "all", .items(items, isLast: true))
        machine.answer("ask for the anchor", "1", .anchor("1"))
        machine.answer("list", "all", .items(items, isLast: true))
        machine.pass(.seconds(5))
        _ = machine.take()
    }

    /// The feed names the root.
    func tellNews() {
        let page = ChangePage(
            foldersToList: [MachineFixture.root], anchor: Anchor(rawValue: "2"))
        machine.answer("wait for changes", "the root", .changes(page))
    }

    /// A program opens a folder.
    func open(_ name: String, in parent: NodeID = .root, _ waiter: UInt64) throws {
        let folder = try #require(try node(name, in: parent))
        machine.happen(
            "a program opens \(name)",
            .listingWanted(folder, isWhole: true, Waiter(number: waiter)))
    }

    static func item(
        _ name: String, _ kind: NodeKind = .file, in parent: String = "root", version: String = "v1"
    ) -> Item {
        let metadata = Metadata(
            mode: 0o755, owner: 0, group: 0, modificationTime: now)
        return Item(
            identifier: ItemIdentifier("id-\(name)"), parent: ItemIdentifier(parent),
            name: FileName(name)!, kind: kind, size: 0, metadata: metadata,
            version: ContentVersion(kind == .folder ? "folder" : version),
            target: kind == .link ? Array("there".utf8) : nil)
    }

    static let rootItem = Item(
        identifier: root, parent: nil, name: FileName("root")!, kind: .folder, size: 0,
        metadata: item("root", .folder).metadata, version: ContentVersion("folder"))

    // MARK: What programs do

    private static let now = Timestamp(seconds: 1_000_000, nanoseconds: 0)

    func node(_ name: String, in parent: NodeID = .root) throws -> NodeID? {
        try index.read { transaction throws(Failure) in
            try transaction.entry(in: parent, named: FileName(name)!)?.node
        }
    }

    @discardableResult
    func make(_ name: String, _ kind: NodeKind, in parent: NodeID = .root) throws -> NodeID {
        var node = Node(
            id: .root, kind: kind, mode: 0o755, owner: 0, group: 0, size: 5,
            time: MachineFixture.now, content: .absent)
        node.isPopulated = kind == .folder
        node.target = kind == .link ? Array("there".utf8) : nil
        return try index.write { [node] transaction throws(Failure) in
            let made = try transaction.insert(node)
            let entry = try transaction.insertEntry(
                in: parent, named: FileName(name)!, node: made.id, identifier: nil)
            try transaction.setPending(
                Pending(
                    subject: .entry(entry.id), since: MachineFixture.now, due: MachineFixture.now))
            return made.id
        }
    }

    func rename(
        _ name: String, to other: String, in parent: NodeID = .root, movedTo folder: NodeID? = nil
    ) throws {
        try index.write { transaction throws(Failure) in
            guard var entry = try transaction.entry(in: parent, named: FileName(name)!) else {
                return
            }
            entry.name = FileName(other)!
            if let folder { entry.parent = folder }
            try transaction.update(entry)
            try transaction.setPending(
                Pending(
                    subject: .entry(entry.id), since: MachineFixture.now, due: MachineFixture.now))
        }
    }

    func remove(_ name: String, in parent: NodeID = .root) throws {
        try index.write { transaction throws(Failure) in
            guard let entry = try transaction.entry(in: parent, named: FileName(name)!) else {
                return
            }
            try transaction.delete(entry.id)
            try transaction.delete(entry.node)
            guard let identifier = entry.identifier else { return }
            try transaction.setPending(
                Pending(
                    subject: .deletion(identifier), since: MachineFixture.now,
                    due: MachineFixture.now))
        }
    }
}
