package import PromiseCore

// What a listing of a folder reads, in the order of entries' numbers. A number is never given twice and an entry keeps its
// own when it is renamed, so a reader that goes on after a number misses nothing and sees nothing twice, whatever came and
// went meanwhile, and nobody has to remember where it was.

extension Transaction {
    /// The numbers of a folder's entries, ascending. Needs no row of them, so it is for large folders, too.
    package func childNumbers(of parent: NodeID) throws(Failure) -> [EntryID] {
        // By the index of names, which has the numbers; one of numbers would cost every new name a page more.
        var numbers = try connection.all("SELECT id FROM entry WHERE parent = ?1", .id(parent)) { $0.entry(0) }
        numbers.sort { $0.rawValue < $1.rawValue }
        return numbers
    }

    /// Those of the entries that are in the folder now, ascending; `numbers` are. With `isLookedUp` their names will soon be
    /// asked for, and are remembered.
    package func children(
        of parent: NodeID, numbered numbers: ArraySlice<EntryID>, isLookedUp: Bool
    ) throws(Failure) -> [Entry] {
        guard let first = numbers.first, let last = numbers.last else { return [] }
        var entries: [Entry] = []
        // What was listed or made at one time has numbers side by side, and is read in one go. The plus sign keeps SQLite
        // from going through the whole folder by the index of names.
        if last.rawValue - first.rawValue < 4 * Int64(numbers.count) {
            entries = try connection.all(
                "SELECT * FROM entry WHERE id BETWEEN ?1 AND ?2 AND +parent = ?3 ORDER BY id", .id(first), .id(last), .id(parent)
            ) { Entry($0) }
        } else {
            for number in numbers {
                if let entry = try entry(number), entry.parent == parent { entries.append(entry) }
            }
        }
        if isLookedUp { for entry in entries { store.places.set(entry.place, entry) } }
        return entries
    }
}
