import Logging
import PromiseAccess
package import PromiseCore
package import PromiseIndex
import PromiseSync
import PromiseSystem

/// `user.promisefs.*`: readable on every node, never listed (CLI.md, "Virtual attributes"). On links the kernel lets nobody
/// read attributes of users, but those that begin with `system.`.
enum VirtualAttribute: String, CaseIterable {
    case state, identifier, version, pin, progress, error, domain, reference

    private static let systemPrefix = Array("system.promisefs.".utf8)
    private static let prefixes = [Array("user.promisefs.".utf8), systemPrefix]

    /// The kernel leaves it to the file system who may set it (xattr(7)).
    static func isUnguarded(_ name: [UInt8]) -> Bool { name.starts(with: systemPrefix) }

    init?(_ name: [UInt8]) {
        guard let prefix = VirtualAttribute.prefixes.first(where: { name.starts(with: $0) }),
            let text = String(validating: name.dropFirst(prefix.count), as: UTF8.self),
            let attribute = VirtualAttribute(rawValue: text)
        else { return nil }
        self = attribute
    }

    /// What an application is told of a value: nothing of places that were not given to it.
    static func told(_ name: [UInt8], _ value: [UInt8]) throws(Failure) -> [UInt8] {
        let text = String(decoding: value, as: UTF8.self)
        switch VirtualAttribute(name) {
        case .reference: throw Failure(.noAttribute, "where references lead is the owner's to see")
        case .identifier: return Array(ApplicationSight.identifier(ItemIdentifier(text)).rawValue.utf8)
        case .error: return Array(ApplicationSight.sentence(text).utf8)
        default: return value
        }
    }

    /// A name of this product's that it does not have is a slip, which an ordinary attribute would hide.
    static func refuseUnknown(_ name: [UInt8]) throws(Failure) {
        guard prefixes.contains(where: { name.starts(with: $0) }), VirtualAttribute(name) == nil,
            !StayingMarks.isName(name), !FsyncReach.isName(name)
        else { return }
        throw Failure(.notSupported, "PromiseFS has no attribute of this name")
    }
}

extension FileSystem {
    /// A value that an item does not have (an error, say) is `.noAttribute`.
    func value(of attribute: VirtualAttribute, _ id: NodeID) throws(Failure) -> String {
        let facts = try facts(of: id)
        let value: String? =
            switch attribute {
            case .state: facts.state.rawValue
            case .identifier: facts.identifier?.rawValue
            case .version: facts.node.version?.rawValue
            case .pin: facts.node.pin.name
            case .progress: facts.progress.map { String(Int($0 * 100)) }
            case .error: facts.error
            case .domain: configuration.domainName
            case .reference: try linkTargets.state(of: facts.node)
            }
        guard let value else { throw Failure(.noAttribute, "the item has no \(attribute.rawValue)") }
        return value
    }

    func set(_ attribute: VirtualAttribute, of id: NodeID, to value: [UInt8]) throws(Failure) {
        let text = String(decoding: value.last == 0x0A ? value.dropLast() : value[...], as: UTF8.self)
        switch attribute {
        case .pin:
            guard let pin = Pin(name: text) else { throw Failure(.invalid, "a pin is pinned, online-only or automatic") }
            try setPin(pin, of: id)
            workers.submit { [self] in EverythingBelow(tree: self).setPin(pin, below: id) }
        case .state where text == ItemState.current.rawValue:
            if try known(id)?.kind == .folder {
                return workers.submit { [self] in EverythingBelow(tree: self).fetch(below: id) }
            }
            engine.fetchInBackground([id])
        case .state where text == ItemState.placeholder.rawValue:
            if try known(id)?.kind == .folder {
                return workers.submit { [self] in EverythingBelow(tree: self).evict(below: id) }
            }
            if case .kept(let reason) = try engine.evict(id) { throw Failure(.busy, "the content stays: \(reason.sentence)") }
        case .state: throw Failure(.invalid, "a state is set to placeholder or current")
        default: throw Failure(.notPermitted, "\(attribute.rawValue) cannot be set")
        }
    }

    /// Pins one node; what follows from it (fetching, evicting) starts at once.
    package func setPin(_ pin: Pin, of id: NodeID) throws(Failure) {
        try index.write { transaction throws(Failure) in
            guard var node = try transaction.node(id) else { throw Failure(.stale, "the file is gone") }
            node.pin = pin
            try transaction.update(node)
        }
        guard try known(id)?.kind == .file else { return }
        switch pin {
        case .pinned: engine.fetchPinned()
        case .onlineOnly: try engine.keepOnline(id)
        case .automatic: engine.unpinned(id)
        }
    }

    /// What is known of an item without its content.
    package struct ItemFacts: Sendable {
        package var node: Node
        package var entry: Entry?
        package var identifier: ItemIdentifier?
        package var state: ItemState
        /// 0 to 1 while content is on its way.
        package var progress: Double?
        package var error: String?
    }

    package func facts(of id: NodeID, named name: EntryID? = nil) throws(Failure) -> ItemFacts {
        let (node, entry, pending, identifier): (Node?, Entry?, Pending?, ItemIdentifier?) = try index.read {
            transaction throws(Failure) in
            let entry = try transaction.entries(of: id).named(name)
            let pending = try entry.flatMap { entry throws(Failure) in try transaction.pending(.entry(entry.id)) }
            return (
                try transaction.node(id), entry, pending,
                entry == nil ? try engine.identifier(of: id, transaction) : entry?.identifier
            )
        }
        guard let node else { throw Failure(.stale, "the item is gone") }
        var progress: Double?
        if let (present, size) = engine.hydrator.progress(of: id), size > 0, node.content != .whole {
            progress = Double(present) / Double(size)
        }
        return ItemFacts(
            node: node, entry: entry, identifier: identifier, state: state(of: node, entry, pending), progress: progress,
            error: pending?.message)
    }

    /// What `user.promisefs.state` says, of what the index says.
    package func state(of node: Node, _ entry: Entry?, _ pending: Pending?) -> ItemState {
        state(of: StateFacts(node, entry, pending))
    }

    package func state(of facts: StateFacts) -> ItemState { facts.state { engine.isUploading($0) } }
}

extension StateFacts {
    fileprivate func state(isUploading: (NodeID) -> Bool) -> ItemState {
        if isExcluded { return .excluded }
        if isInConflict { return .conflicted }
        // The operation ends a moment after the commit by which nothing is left to be told.
        if isPending || isOpenForWriting, isUploading(node) { return .uploading }
        if hasFailed { return .error }
        if isPending || isOpenForWriting { return .modified }
        if kind == .folder { return isPopulated ? .current : .placeholder }
        if kind != .file { return .current }
        switch content {
        case .whole: return .current
        case .partial: return localBytes == 0 ? .placeholder : .partial
        case .absent: return .placeholder
        }
    }
}

extension [Entry] {
    /// The name that is meant, or whichever there is.
    fileprivate func named(_ id: EntryID?) -> Entry? { first { $0.id == id } ?? first }
}
