import Glibc
import PromiseCore
import PromiseSystem

/// One call of a program, as the kernel lets it through.
enum ModelOperation {
    typealias Path = ReferenceTree.Path

    case create(Path, slot: Int)
    case makeFolder(Path)
    case makeLink(Path, target: String)
    case makeFifo(Path)
    case addName(Path, to: Path)
    case unlink(Path)
    case removeFolder(Path)
    case rename(Path, to: Path, RenameFlags)
    case open(Path, slot: Int, truncates: Bool)
    case write(slot: Int, offset: Int, [UInt8])
    case allocate(slot: Int, offset: Int, count: Int, mode: Int32)
    case copy(slot: Int, to: Int, count: Int)
    case truncate(Path, size: Int)
    case setMode(Path, UInt32)
    case setAttribute(Path, String, [UInt8])
    case removeAttribute(Path, String)
    case synchronize(slot: Int)
    case close(slot: Int)
    case evict(Path)

    // MARK: Choosing

    private static let folders = ["d0", "d1"].map { FileName($0)! }
    private static let files = ["f0", "f1", "f2"].map { FileName($0)! }
    private static let slots = 3

    /// One that the kernel would pass on, as far as it knows `tree`.
    static func any(_ simulation: Simulation, _ tree: ReferenceTree, token: () -> [UInt8]) -> ModelOperation {
        while true {
            let operation = drawn(simulation, tree, token)
            if operation.isPassedOn(tree) { return operation }
        }
    }

    private static func drawn(
        _ simulation: Simulation, _ tree: ReferenceTree, _ token: () -> [UInt8]
    ) -> ModelOperation {
        func folder() -> Path { simulation.chance(50) ? [] : [folders[simulation.pick(2)]] }
        func file() -> Path { folder() + [files[simulation.pick(3)]] }
        func subfolder() -> Path { folder() + [folders[simulation.pick(2)]] }
        func either() -> Path { simulation.chance(70) ? file() : subfolder() }
        let slot = simulation.pick(slots)
        let size = tree.open[slot]?.bytes.count ?? 0
        switch simulation.pick(100) {
        case 0..<12: return .create(file(), slot: slot)
        case 12..<20: return .makeFolder(subfolder())
        case 20..<23: return .makeLink(file(), target: "target\(simulation.pick(9))")
        case 23..<25: return .makeFifo(file())
        case 25..<31: return .addName(file(), to: file())
        case 31..<38: return .unlink(file())
        case 38..<42: return .removeFolder(subfolder())
        case 42..<52: return .rename(either(), to: either(), simulation.chance(15) ? .noReplace : [])
        case 52..<56: return .rename(either(), to: either(), .exchange)
        case 56..<64: return .open(file(), slot: slot, truncates: simulation.chance(30))
        case 64..<76: return .write(slot: slot, offset: simulation.pick(size + 5), token())
        case 76..<81:
            // Reserving, also beyond the end, and punching a hole.
            let modes: [Int32] = [0, 1, 3]
            return .allocate(
                slot: slot, offset: simulation.pick(size + 5), count: 1 + simulation.pick(9), mode: modes[simulation.pick(3)])
        case 81..<84: return .copy(slot: slot, to: simulation.pick(slots), count: 1 + simulation.pick(12))
        case 84..<88: return .truncate(file(), size: simulation.pick(20))
        case 88..<90: return .setMode(either(), [0o600, 0o644, 0o755][simulation.pick(3)])
        case 90..<92: return .setAttribute(either(), "user.a\(simulation.pick(2))", token())
        case 92..<93: return .removeAttribute(either(), "user.a\(simulation.pick(2))")
        case 93..<95: return .synchronize(slot: slot)
        case 95..<98: return .close(slot: slot)
        default: return .evict(file())
        }
    }

    /// What the kernel would answer by itself is not asked.
    private func isPassedOn(_ tree: ReferenceTree) -> Bool {
        func isFree(_ path: Path) -> Bool { tree.parent(of: path) != nil && tree.node(at: path) == nil }
        func isFile(_ path: Path) -> Bool { tree.node(at: path)?.kind == .file }
        switch self {
        case .create(let path, let slot): return isFree(path) && tree.open[slot] == nil
        case .makeFolder(let path), .makeLink(let path, _), .makeFifo(let path): return isFree(path)
        case .addName(let path, let other): return isFree(path) && isFile(other)
        case .unlink(let path): return tree.node(at: path).map { $0.kind != .folder } ?? false
        case .removeFolder(let path): return tree.node(at: path)?.kind == .folder
        case .rename(let path, let other, let flags): return isPassedOn(path, other, flags, tree)
        case .open(let path, let slot, _): return isFile(path) && tree.open[slot] == nil
        case .write(let slot, _, _), .allocate(let slot, _, _, _), .synchronize(let slot), .close(let slot):
            return tree.open[slot] != nil
        case .copy(let slot, let other, _):
            guard let source = tree.open[slot], let target = tree.open[other] else { return false }
            return source !== target && !source.bytes.isEmpty
        case .truncate(let path, _), .evict(let path): return isFile(path)
        case .setMode(let path, _):
            return tree.node(at: path).map { $0.kind == .file || $0.kind == .folder } ?? false
        case .setAttribute(let path, _, _), .removeAttribute(let path, _):
            return tree.node(at: path).map { $0.kind == .file || $0.kind == .folder } ?? false
        }
    }

    private func isPassedOn(_ path: Path, _ other: Path, _ flags: RenameFlags, _ tree: ReferenceTree) -> Bool {
        guard path != other, let moved = tree.node(at: path), tree.parent(of: other) != nil else { return false }
        if other.starts(with: path) || path.starts(with: other) { return false }
        guard let target = tree.node(at: other) else { return !flags.contains(.exchange) }
        // Two names of one file stay what they are.
        if target === moved { return false }
        return flags.contains(.exchange) || (target.kind == .folder) == (moved.kind == .folder)
    }

    // MARK: What it must do

    /// What it must fail with.
    func expectedProblem(_ tree: ReferenceTree) -> Failure.Code? {
        switch self {
        case .removeFolder(let path): return tree.node(at: path)!.children.isEmpty ? nil : .notEmpty
        case .rename(_, let other, let flags):
            guard let target = tree.node(at: other), !flags.contains(.exchange) else { return nil }
            if flags.contains(.noReplace) { return .exists }
            return target.children.isEmpty ? nil : .notEmpty
        case .removeAttribute(let path, let name):
            return tree.node(at: path)!.attributes[name] == nil ? .noAttribute : nil
        default: return nil
        }
    }

    /// What is edited or open cannot be evicted.
    var mayFail: Bool { if case .evict = self { true } else { false } }

    /// `count`: of the bytes that were written or copied.
    func apply(to tree: inout ReferenceTree, count: Int) {
        func put(_ path: Path, _ node: ReferenceTree.Node?) { tree.parent(of: path)!.children[path.last!] = node }
        switch self {
        case .create(let path, let slot):
            let node = ReferenceTree.Node(.file, mode: 0o644)
            put(path, node)
            tree.open[slot] = node
        case .makeFolder(let path): put(path, ReferenceTree.Node(.folder, mode: 0o755))
        case .makeFifo(let path): put(path, ReferenceTree.Node(.fifo, mode: 0o644))
        case .makeLink(let path, let target):
            let node = ReferenceTree.Node(.link, mode: 0o777)
            node.target = Array(target.utf8)
            put(path, node)
        case .addName(let path, let other): put(path, tree.node(at: other))
        case .unlink(let path), .removeFolder(let path): put(path, nil)
        case .rename(let path, let other, let flags):
            let (moved, target) = (tree.node(at: path), tree.node(at: other))
            put(path, flags.contains(.exchange) ? target : nil)
            put(other, moved)
        case .open(let path, let slot, let truncates):
            tree.open[slot] = tree.node(at: path)
            if truncates { tree.open[slot]!.bytes = [] }
        case .write(let slot, let offset, let bytes): tree.open[slot]!.write(bytes.prefix(count), at: offset)
        case .copy(let slot, let other, _): tree.open[other]!.write(tree.open[slot]!.bytes.prefix(count), at: 0)
        case .allocate(let slot, let offset, let count, let mode):
            tree.open[slot]!.allocate(offset, count, mode)
        case .truncate(let path, let size): tree.node(at: path)!.resize(size)
        case .setMode(let path, let mode): tree.node(at: path)!.mode = mode
        case .setAttribute(let path, let name, let value): tree.node(at: path)!.attributes[name] = value
        case .removeAttribute(let path, let name): tree.node(at: path)!.attributes[name] = nil
        case .close(let slot): tree.open[slot] = nil
        case .synchronize, .evict: break
        }
    }
}

extension ReferenceTree.Node {
    fileprivate func resize(_ size: Int) {
        bytes = Array(bytes.prefix(size)) + [UInt8](repeating: 0, count: max(0, size - bytes.count))
    }

    fileprivate func write(_ new: some Sequence<UInt8>, at offset: Int) {
        let new = Array(new)
        guard !new.isEmpty else { return }
        resize(max(bytes.count, offset + new.count))
        bytes.replaceSubrange(offset..<(offset + new.count), with: new)
    }

    /// `mode`: as fallocate(2) has it; bit 0 keeps the size, bit 1 makes a hole.
    fileprivate func allocate(_ offset: Int, _ count: Int, _ mode: Int32) {
        let keepsSize = mode & 1 != 0
        if !keepsSize { resize(max(bytes.count, offset + count)) }
        guard mode & 2 != 0, offset < bytes.count else { return }
        for place in offset..<min(bytes.count, offset + count) { bytes[place] = 0 }
    }
}
