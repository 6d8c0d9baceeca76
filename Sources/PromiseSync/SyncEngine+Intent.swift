import Logging
import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSystem

// What the provider was being told when the daemon died.
//
// An operation may take effect without its outcome being stored. Until the outcome is stored, the index keeps what the
// item would look like then; an item that looks like that is our own doing and no news. Without this, a file that was
// uploaded, removed here and not yet acknowledged would come back, and a second rename would be undone.

/// An operation under way, as the index keeps it.
struct Intent: Hashable, Sendable {
    var entry: EntryID
    var edits: UInt64
    var kind: NodeKind
    var size: UInt64
    var modificationTime: Timestamp
    var parent: ItemIdentifier
    var name: FileName
    /// The item's identifier before; nil for a new one.
    var item: ItemIdentifier?

    /// Whether the item is what the operation would have left. A folder's size and time say nothing, nor does a time that the
    /// store does not keep.
    func matches(_ item: Item, comparesTimes: Bool) -> Bool {
        guard item.kind == kind, item.parent == parent, item.name == name else { return false }
        if kind == .folder { return true }
        return item.size == size && (!comparesTimes || item.metadata.modificationTime == modificationTime)
    }

    /// Whether the item has the operation's content and not its place: a provider replaces content first and moves then.
    /// Without a time it cannot be told from somebody else's edit.
    func isHalfDone(_ item: Item, known: Item, comparesTimes: Bool) -> Bool {
        guard comparesTimes, kind == .file, item.kind == .file, self.item == item.identifier else { return false }
        let isWhereItWas = item.parent == known.parent && item.name == known.name
        return isWhereItWas && item.size == size && item.metadata.modificationTime == modificationTime
    }

    var text: String {
        let numbers = ["\(entry.rawValue)", "\(edits)", "\(kind.rawValue)", "\(size)", "\(modificationTime.rawValue)"]
        let item = item.map { hexadecimalText(Array($0.rawValue.utf8)) } ?? "-"
        let parent = hexadecimalText(Array(parent.rawValue.utf8))
        return (numbers + [hexadecimalText(name.bytes), item, parent]).joined(separator: " ")
    }

    init(
        entry: EntryID, edits: UInt64, kind: NodeKind, size: UInt64, modificationTime: Timestamp, parent: ItemIdentifier,
        name: FileName, item: ItemIdentifier?
    ) {
        self.entry = entry
        self.edits = edits
        self.kind = kind
        self.size = size
        self.modificationTime = modificationTime
        self.parent = parent
        self.name = name
        self.item = item
    }

    /// Nil for what `text` did not write.
    init?(_ text: String) {
        let parts = text.split(separator: " ", maxSplits: 7)
        guard parts.count == 8, let entry = Int64(parts[0]), let edits = UInt64(parts[1]),
            let kind = Int(parts[2]).flatMap(NodeKind.init),
            let size = UInt64(parts[3]), let time = Int64(parts[4]),
            let name = bytes(ofHexadecimal: parts[5]).flatMap({ FileName($0) }),
            let parent = bytes(ofHexadecimal: parts[7]).flatMap({ String(validating: $0, as: UTF8.self) })
        else { return nil }
        let item = bytes(ofHexadecimal: parts[6]).flatMap { String(validating: $0, as: UTF8.self) }
        self.init(
            entry: EntryID(entry), edits: edits, kind: kind, size: size, modificationTime: Timestamp(nanoseconds: time),
            parent: ItemIdentifier(parent), name: name, item: item.map { ItemIdentifier($0) })
    }

    /// A known item is found by its identifier, a new one by its place.
    static func key(_ identifier: ItemIdentifier?, parent: ItemIdentifier, name: FileName) -> String {
        if let identifier { return key(identifier) }
        return "intent.place " + hexadecimalText(name.bytes) + " " + parent.rawValue
    }

    static func key(_ identifier: ItemIdentifier) -> String { "intent.item " + identifier.rawValue }
}

extension SyncEngine {
    /// Of one item or place: while no outcome is known each of several tries may be the one that took effect.
    private static let intentCountMax = 8

    /// Oldest first.
    func intents(_ key: String, _ transaction: borrowing Transaction) throws(Failure) -> [Intent] {
        guard state.intents?.contains(key) != false, let text = try transaction.setting(key) else { return [] }
        return text.split(separator: "\n").compactMap { Intent(String($0)) }
    }

    /// What an earlier daemon left. Until it has been read, the index is asked about every item.
    func loadIntents() {
        do throws(Failure) {
            state.intents = Set(
                try index.read { transaction throws(Failure) in try transaction.settingKeys(startingWith: "intent.") })
        } catch {
            logger.warning("what was under way could not be read", metadata: ["reason": "\(error.message)"])
        }
    }

    /// In the transaction that prepares the operation, so that it is stored before anything is sent.
    func storeIntent(
        _ intent: Intent, identifier: ItemIdentifier?, isMove: Bool, _ transaction: borrowing Transaction
    ) throws(Failure) {
        let keys = intentKeys(identifier, isMove: isMove, Place(parent: intent.parent, name: intent.name))
        // What was sent to where the item is may have come there without an answer. Another move came to nothing.
        let sent = try isMove ? editsInPlace(of: identifier, transaction) : []
        for key in keys where isMove {
            for old in try intents(key, transaction) { try removeIntent(old, transaction) }
        }
        for key in keys {
            // One that an earlier daemon stored before it was killed may have taken effect: this one does not undo that.
            var known = try intents(key, transaction)
            if key == keys.first { known = sent + known.filter { !sent.contains($0) } }
            known = known.filter { $0 != intent }.suffix(SyncEngine.intentCountMax - 1)
            state.intents?.insert(key)
            try transaction.setSetting(key, (known + [intent]).map(\.text).joined(separator: "\n"))
        }
    }

    /// A move was refused, as the name is taken or the item has another version: what is at the new place is something else,
    /// perhaps another thing of ours that was made there without an answer. Where items have identifiers of their own nothing is
    /// taken for another, and an earlier try may have come there or elsewhere.
    func forgetMove(_ operation: Operation, _ transaction: borrowing Transaction) throws(Failure) {
        guard knowsByPlace, case .modify(_, let changes, nil, _) = operation.work, changes.place != nil, changes.target == nil,
            let place = operation.places.last
        else { return }
        let sent = try editsInPlace(of: operation.identifier, transaction)
        for key in intentKeys(of: operation) {
            let left = try intents(key, transaction).filter { intent in
                let isThis = intent.item == operation.identifier && intent.parent == place.parent && intent.name == place.name
                return !isThis || sent.contains(intent)
            }
            try transaction.setSetting(key, left.isEmpty ? nil : left.map(\.text).joined(separator: "\n"))
        }
    }

    /// Operations on an item that were to leave it where it was agreed to be.
    private func editsInPlace(
        of identifier: ItemIdentifier?, _ transaction: borrowing Transaction
    ) throws(Failure) -> [Intent] {
        guard let identifier, let agreed = try transaction.synced(identifier)?.item, let parent = agreed.parent else { return [] }
        return try intents(Intent.key(identifier, parent: parent, name: agreed.name), transaction)
            .filter { $0.parent == parent && $0.name == agreed.name }
    }

    /// The outcome is known.
    func clearIntent(of operation: Operation, _ transaction: borrowing Transaction) throws(Failure) {
        for key in intentKeys(of: operation) { try transaction.setSetting(key, nil) }
    }

    func intentKeys(of operation: Operation) -> [String] {
        guard let place = operation.places.last else { return [] }
        return intentKeys(operation.identifier, isMove: operation.isMove, place)
    }

    /// True when the item is what an operation of ours left whose outcome was never stored; then it is stored now.
    func recognize(_ item: Item, _ transaction: borrowing Transaction) throws(Failure) -> Bool {
        guard let parent = item.parent, state.intents?.isEmpty != true else { return false }
        for identifier in [item.identifier, nil] {
            let key = Intent.key(identifier, parent: parent, name: item.name)
            let intents = try intents(key, transaction)
            if intents.isEmpty { continue }
            let known = try transaction.synced(item.identifier)?.item
            let comparesTimes = keepsTimes && !item.isGuess
            let found = intents.last { intent in
                let isHalfDone = known.map { intent.isHalfDone(item, known: $0, comparesTimes: comparesTimes) } ?? false
                return isHalfDone || intent.matches(item, comparesTimes: comparesTimes)
            }
            guard let intent = found else { continue }
            // What is known to be there is not what was to be made there, however alike they are.
            if identifier == nil, intent.item == nil, known != nil { continue }
            // Under way right now: its outcome will tell, and nothing is to be made of the item before.
            if isBusy(Place(parent: parent, name: item.name)) { return true }
            try removeIntent(intent, transaction)
            try transaction.setSetting(key, nil)
            try acknowledge(item, intent, transaction)
            return true
        }
        return false
    }

    /// An operation under way changes this place at the provider.
    func isBusy(_ place: Place) -> Bool { state.running.values.contains { $0.places.contains(place) } }

    private func acknowledge(_ item: Item, _ intent: Intent, _ transaction: borrowing Transaction) throws(Failure) {
        try transaction.setSynced(SyncedItem(item: item, edits: intent.edits))
        try transaction.setRemote(item.identifier, nil)
        if try transaction.entry(for: item.identifier) != nil {
            try remind(.entry(intent.entry), transaction)
        } else if var entry = try transaction.entry(intent.entry), entry.identifier == nil, !entry.isExcluded {
            entry.identifier = item.identifier
            try transaction.update(entry)
            if item.kind == .folder { noteMade(item.identifier) }
            if var node = try transaction.node(entry.node), node.version != item.version {
                node.version = item.version
                try transaction.update(node)
            }
            try remind(.entry(entry.id), transaction)
        } else {
            // Its name was removed here before the acknowledgement came.
            try remind(.deletion(item.identifier), transaction)
        }
    }
}

private func hexadecimalText(_ bytes: [UInt8]) -> String { bytes.map(hexadecimal).joined() }

private func bytes(ofHexadecimal text: Substring) -> [UInt8]? {
    let digits = Array(text.utf8)
    guard digits.count % 2 == 0 else { return nil }
    var result: [UInt8] = []
    for index in stride(from: 0, to: digits.count, by: 2) {
        guard let byte = UInt8(String(decoding: digits[index..<index + 2], as: UTF8.self), radix: 16) else { return nil }
        result.append(byte)
    }
    return result
}
