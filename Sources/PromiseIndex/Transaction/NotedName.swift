package import PromiseCore

/// Of what was noted before the provider had it, by a bookmark say, only the name here is known.
/// When others move such an item to where nobody on this machine has looked, that name goes: what
/// the provider calls it is kept from when it does. And when a program saves it by removing or
/// renaming it first, what is made in its place is the document.
package enum NotedName {
    /// No item is called so.
    private static let unsent = ""

    private static func setting(of entry: EntryID) -> String { "noted.\(entry)" }
    private static func leftSetting(of entry: EntryID) -> String { "noted-left.\(entry)" }
    private static func heirSetting(at parent: NodeID, _ name: FileName) -> String {
        "noted-at.\(parent).\(PathDigits.text(name.bytes))"
    }

    package static func noteUnsent(
        _ entry: EntryID, _ transaction: borrowing Transaction
    ) throws(Failure) {
        let name = setting(of: entry)
        if try transaction.setting(name) == nil { try transaction.setSetting(name, unsent) }
    }

    /// Nil before the provider has it, and of what was never noted so.
    package static func identifier(
        of entry: EntryID, _ transaction: borrowing Transaction
    ) throws(Failure) -> ItemIdentifier? {
        let text = try transaction.setting(setting(of: entry))
        return text == unsent ? nil : text.map { ItemIdentifier($0) }
    }

    /// An entry that the provider does not have leaves its place.
    package static func noteLeft(
        _ entry: Entry, _ kind: NodeKind, at now: Timestamp, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard entry.identifier == nil, kind == .file || kind == .link,
            try transaction.setting(setting(of: entry.id)) == unsent
        else { return }
        let places = try leftPlaces(of: entry.id, transaction)
        let latest = LeftPlace(parent: entry.parent, name: entry.name, kind: kind, time: now)
        let kept = [latest] + places.filter { $0.parent != entry.parent || $0.name != entry.name }
        let text = kept.prefix(LeftPlace.countMax).map(\.text).joined(separator: " ")
        try transaction.setSetting(leftSetting(of: entry.id), text)
        try transaction.setSetting(heirSetting(at: entry.parent, entry.name), "\(entry.id)")
    }

    /// What is the document now that one with this name was, which has gone or is a backup.
    package static func heir(
        of entry: EntryID, _ transaction: borrowing Transaction
    ) throws(Failure) -> Entry? {
        for place in try leftPlaces(of: entry, transaction) {
            guard let heir = try transaction.entry(in: place.parent, named: place.name),
                heir.id != entry, try isHeir(heir, of: place, transaction)
            else { continue }
            return heir
        }
        return nil
    }

    private static func isHeir(
        _ entry: Entry, of place: LeftPlace, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard !entry.isExcluded, let node = try transaction.node(entry.node) else { return false }
        return node.kind == place.kind && place.isOfOneSave(node.birthTime)
    }

    private static func leftPlaces(
        of entry: EntryID, _ transaction: borrowing Transaction
    ) throws(Failure) -> [LeftPlace] {
        let text = try transaction.setting(leftSetting(of: entry)) ?? ""
        return text.split(separator: " ").compactMap { LeftPlace($0) }
    }

    /// It has another identifier than before.
    static func take(_ entry: Entry, _ transaction: borrowing Transaction) throws(Failure) {
        guard let identifier = entry.identifier else { return }
        let name = setting(of: entry.id)
        if try transaction.setting(name) != nil {
            try transaction.setSetting(name, identifier.rawValue)
        }
        let heirs = heirSetting(at: entry.parent, entry.name)
        guard let number = try transaction.setting(heirs).flatMap({ Int64($0) }) else { return }
        try transaction.setSetting(heirs, nil)
        let former = EntryID(number)
        guard former != entry.id, try heir(of: former, transaction)?.id == entry.id,
            try transaction.setting(setting(of: former)) == unsent
        else { return }
        // Under another name it is the item until that goes.
        if let other = try transaction.entry(former), !other.isExcluded { return }
        try transaction.setSetting(setting(of: former), identifier.rawValue)
        try transaction.setSetting(leftSetting(of: former), nil)
    }
}

/// Where an entry was, in one word.
private struct LeftPlace {
    static let countMax = 2
    /// For so long what a program does to a document and to its new version is one save of it.
    private static let savingNanoseconds: Int64 = 600_000_000_000

    var parent: NodeID
    var name: FileName
    var kind: NodeKind
    var time: Timestamp

    init(parent: NodeID, name: FileName, kind: NodeKind, time: Timestamp) {
        (self.parent, self.name, self.kind, self.time) = (parent, name, kind, time)
    }

    init?(_ word: Substring) {
        let parts = word.split(separator: ".")
        guard parts.count == 4, let parent = UInt64(parts[0]), let time = Int64(parts[1]),
            let name = FileName(PathDigits.bytes(parts[3]))
        else { return nil }
        let kind: NodeKind = parts[2] == "link" ? .link : .file
        self.init(
            parent: NodeID(parent), name: name, kind: kind, time: Timestamp(nanoseconds: time))
    }

    var text: String {
        "\(parent.rawValue).\(time.rawValue).\(kind == .link ? "link" : "file")."
            + PathDigits.text(name.bytes)
    }

    /// The new version may have been made a moment before, too.
    func isOfOneSave(_ birth: Timestamp) -> Bool {
        let distance = birth.rawValue.subtractingReportingOverflow(time.rawValue)
        return !distance.overflow && distance.partialValue.magnitude < LeftPlace.savingNanoseconds
    }
}
