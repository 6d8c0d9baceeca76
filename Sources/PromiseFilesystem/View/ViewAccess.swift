package import PromiseCore

/// What an application may do with an item, and with what is below it.
package enum ViewRights: Int, Comparable, Sendable {
    case none, read, readWrite

    package static func < (one: ViewRights, other: ViewRights) -> Bool {
        one.rawValue < other.rawValue
    }
}

/// An item that a view shows at a place of its own, with everything below it.
package struct ViewRoot: Hashable, Sendable {
    package enum Place: Hashable, Sendable {
        /// Beside `granted`, in the view's root.
        case top
        /// In `granted`.
        case granted
        /// Files of the launch itself, in `granted` beside what was granted.
        case scratch
    }

    /// In the view. It stays while the item is renamed and moved.
    package var name: FileName
    package var entry: EntryID
    package var rights: ViewRights
    package var place: Place

    package init(name: FileName, entry: EntryID, rights: ViewRights, place: Place) {
        self.name = name
        self.entry = entry
        self.rights = rights
        self.place = place
    }
}

/// Everything that an application may reach at one moment.
package struct ViewRoots: Sendable {
    package private(set) var byEntry: [EntryID: ViewRoot] = [:]
    private var names: [ViewRoot.Place: [FileName: ViewRoot]] = [:]

    package init(_ roots: [ViewRoot] = []) { for root in roots { add(root) } }

    package mutating func add(_ root: ViewRoot) {
        byEntry[root.entry] = root
        names[root.place, default: [:]][root.name] = root
    }

    package func root(named name: FileName, _ place: ViewRoot.Place) -> ViewRoot? {
        names[place]?[name]
    }

    /// In the order in which they were granted, by which a listing goes on.
    package func all(_ place: ViewRoot.Place) -> [ViewRoot] {
        (names[place]?.values).map { $0.sorted { $0.entry < $1.entry } } ?? []
    }
}

/// Who decides what a view shows: the grants of an application, and its container. Any method may
/// be called on a serving thread, so none may wait.
package protocol ViewPolicy: Sendable {
    /// It may be what was so a moment ago, but for rights that were taken back.
    var roots: ViewRoots { get }
    /// The next `roots` are of that moment.
    func askAnew()
    /// A right that is taken back ends in files that are open, too.
    var endsOpenFiles: Bool { get }
    /// An attempt that came to nothing, for the audit log.
    func refused(_ operation: StaticString, _ node: NodeID)
    /// A program inside saved the document anew: what was granted is the new entry. `done` is called
    /// when `roots` has it.
    func replaced(_ entry: EntryID, by entry: EntryID, done: @escaping @Sendable () -> Void)
}

/// A number that the kernel has for something in a view. The tree's own numbers are shown as they
/// are, but for the domain's root: number 1 is the view's.
enum ViewNode: Hashable, Sendable {
    case root
    case granted
    case tree(NodeID)

    private static let first: UInt64 = 1 << 62

    init(_ shown: NodeID) {
        switch shown.rawValue {
        case NodeID.root.rawValue: self = .root
        case ViewNode.first: self = .granted
        case ViewNode.first + 1: self = .tree(.root)
        default: self = .tree(shown)
        }
    }

    var shown: NodeID {
        switch self {
        case .root: .root
        case .granted: NodeID(ViewNode.first)
        case .tree(.root): NodeID(ViewNode.first + 1)
        case .tree(let node): node
        }
    }
}

extension NodeAttributes {
    /// As an application has it.
    func shown(to launch: View.Launch, _ rights: ViewRights) -> NodeAttributes {
        var shown = self
        shown.node = ViewNode.tree(node).shown
        shown.owner = launch.user
        shown.group = launch.group
        if rights < .readWrite { shown.permissions &= ~0o222 }
        return shown
    }

    /// A folder that only the view has.
    static func folder(_ node: ViewNode, of launch: View.Launch, _ now: Timestamp) -> NodeAttributes {
        NodeAttributes(
            node: node.shown, kind: .folder, permissions: node == .granted ? 0o755 : 0o555,
            links: 2, owner: launch.user, group: launch.group, size: 4096, blocks: 8,
            accessTime: now, modificationTime: now, changeTime: now)
    }
}

extension UInt32 {
    /// Of permissions. Outside files belong to the domain's owner: a program with a set-user-ID bit would be his.
    var withoutSetID: UInt32 { self & 0o1777 }
}
