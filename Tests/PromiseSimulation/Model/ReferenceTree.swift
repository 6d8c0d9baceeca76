import PromiseCore
import PromiseSystem

/// What a file system is to be: a tree in memory that knows nothing of a disk, an index or a provider.
struct ReferenceTree {
    /// A node has as many names as folders hold it.
    final class Node {
        let kind: NodeKind
        var mode: UInt32
        var bytes: [UInt8] = []
        var target: [UInt8] = []
        var children: [FileName: Node] = [:]
        var attributes: [String: [UInt8]] = [:]

        init(_ kind: NodeKind, mode: UInt32) {
            self.kind = kind
            self.mode = mode
        }
    }

    typealias Path = [FileName]

    let root = Node(.folder, mode: 0o755)
    /// By slot: what a program has open. A node may be here that has no name any more.
    var open: [Int: Node] = [:]

    func node(at path: Path) -> Node? {
        var current: Node? = root
        for name in path { current = current?.children[name] }
        return current
    }

    func parent(of path: Path) -> Node? {
        node(at: path.dropLast()).flatMap { $0.kind == .folder ? $0 : nil }
    }

    /// How many names a node has that is no folder.
    func nameCount(of node: Node) -> Int { nameCount(of: node, in: root) }

    private func nameCount(of node: Node, in folder: Node) -> Int {
        folder.children.values.reduce(0) { count, child in
            count + (child === node ? 1 : 0) + (child.kind == .folder ? nameCount(of: node, in: child) : 0)
        }
    }

    // MARK: Lines

    /// A line for each name and each open file: everything of it that must be as it is.
    var lines: [String] {
        var result: [String] = []
        add(root, "", &result)
        for (slot, node) in open where nameCount(of: node) == 0 {
            result.append("open \(slot) \(ReferenceTree.content(node.bytes))")
        }
        return result.sorted()
    }

    private func add(_ folder: Node, _ path: String, _ result: inout [String]) {
        for (name, node) in folder.children {
            let place = path + name.display
            result.append(line(of: node, at: place))
            if node.kind == .folder { add(node, place + "/", &result) }
        }
    }

    private func line(of node: Node, at place: String) -> String {
        let names = node.kind == .folder ? 0 : nameCount(of: node)
        return ReferenceTree.line(
            place, node.kind, mode: node.mode, names: names, attributes: node.attributes, bytes: node.bytes,
            target: node.target)
    }

    /// What a store has of it, as `Schedule.storeTree` writes that.
    var storable: [String] {
        var result: [String] = []
        func add(_ folder: Node, _ path: String) {
            for (name, node) in folder.children {
                let place = path + name.display
                switch node.kind {
                case .folder:
                    result.append(place + "/")
                    add(node, place + "/")
                case .link: result.append("\(place) -> \(String(decoding: node.target, as: UTF8.self))")
                case .file: result.append("\(place)=\(String(decoding: node.bytes, as: UTF8.self))")
                default: break
                }
            }
        }
        add(root, "")
        return result.sorted()
    }

    static func line(
        _ place: String, _ kind: NodeKind, mode: UInt32, names: Int, attributes: [String: [UInt8]], bytes: [UInt8],
        target: [UInt8]
    ) -> String {
        var words = [place, "\(kind)"]
        if kind != .link { words.append(String(mode, radix: 8)) }
        if kind != .folder { words.append("\(names) names") }
        for (name, value) in attributes.sorted(by: { $0.key < $1.key }) {
            words.append("\(name)=\(String(decoding: value, as: UTF8.self))")
        }
        if kind == .file { words.append(content(bytes)) }
        if kind == .link { words.append("-> " + String(decoding: target, as: UTF8.self)) }
        return words.joined(separator: " ")
    }

    static func content(_ bytes: [UInt8]) -> String {
        "\(bytes.count):" + String(decoding: bytes.map { $0 == 0 ? 0x30 : $0 }, as: UTF8.self)
    }
}
