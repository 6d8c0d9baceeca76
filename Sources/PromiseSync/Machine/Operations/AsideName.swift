import PromiseCore

/// The name that an item has at the provider for a moment, while others get out of its way.
///
/// It never shows in a mount. It says which name the item is on its way to, so that another machine can
/// finish what the one that gave it does not (`AsideNames`), and when it was given, so that it is given
/// once.
struct AsideName {
    private static let prefix = Array(".promisefs-moving-".utf8)

    /// By the clock of the machine that gave it, which may be minutes ahead of this one, or behind.
    private var since: Timestamp
    private var number: Int
    /// A long one is cut.
    var goal: FileName

    init(for goal: FileName, _ turn: inout Turn) {
        since = turn.now.time
        number = turn.takeFreshNumber()
        let head = AsideName.head(since, number)
        self.goal = FileName(trusted: Array(goal.bytes.prefix(FileName.byteCountMax - head.count)))
    }

    /// Nil for any other name.
    init?(_ name: FileName) {
        guard name.bytes.starts(with: AsideName.prefix) else { return nil }
        let parts = name.bytes.dropFirst(AsideName.prefix.count)
            .split(separator: 0x2D, maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, let time = Int64(String(decoding: parts[0], as: UTF8.self)),
            let number = Int(String(decoding: parts[1], as: UTF8.self)), let goal = FileName(parts[2])
        else { return nil }
        (since, self.number, self.goal) = (Timestamp(nanoseconds: time), number, goal)
    }

    var fileName: FileName { FileName(trusted: AsideName.head(since, number) + goal.bytes) }

    private static func head(_ since: Timestamp, _ number: Int) -> [UInt8] {
        prefix + Array("\(since.rawValue)-\(number)-".utf8)
    }

    static func isOne(_ name: FileName) -> Bool { AsideName(name) != nil }

    /// Where an item that goes to `target` goes next. A store that takes the old name and the new
    /// one for one has refused that: it is taken, by the item itself, which goes by way of a third
    /// name.
    static func step(
        to target: ItemPlace, of item: Item, after attempts: Int, _ turn: inout Turn
    ) -> ItemPlace {
        guard attempts > 0, target.parent == item.parent, target.name.isTwin(of: item.name)
        else { return target }
        return ItemPlace(
            parent: target.parent, name: AsideName(for: target.name, &turn).fileName)
    }
}
