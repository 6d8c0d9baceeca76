package import PromiseCore

/// Since when items have the names that other machines gave them for a moment.
///
/// Counted by this machine's uptime since it saw each name: the clock of the machine that gave it may be
/// minutes ahead or behind, and a move that is under way would be undone. After a restart the count
/// begins anew. Pure.
package struct AsideNames {
    /// After so long the machine that gave the name is not waited for any more.
    package static let patience = Duration.seconds(60)
    /// Each is looked at again once in `patience`, so what was not seen for so long has gone.
    private static let goneAfter = patience * 4
    private static let countMax = 4_096

    private struct Seen {
        var name: FileName
        var first: Duration
        var last: Duration
    }

    private var seen: [ItemIdentifier: Seen] = [:]
    /// They are to be looked at again.
    package private(set) var isAwaited = false

    package init() {}

    package var count: Int { seen.count }

    package func isOverdue(
        _ name: FileName, of item: ItemIdentifier, at now: Duration
    ) -> Bool {
        guard let known = seen[item], known.name == name else { return false }
        return now - known.first >= AsideNames.patience
    }

    package mutating func saw(_ name: FileName, of item: ItemIdentifier, at now: Duration) {
        isAwaited = true
        if seen[item]?.name == name {
            seen[item]?.last = now
            return
        }
        // All of them are waited for anew, which costs a minute.
        if seen.count >= AsideNames.countMax { seen = [:] }
        seen[item] = Seen(name: name, first: now, last: now)
    }

    /// It has another name now.
    package mutating func forget(_ item: ItemIdentifier) { seen[item] = nil }

    /// All that still have such a name are looked at now.
    package mutating func due(at now: Duration) {
        isAwaited = false
        seen = seen.filter { now - $0.value.last < AsideNames.goneAfter }
    }
}
