import HeapModule
package import PromiseCore

/// The folders to be looked at again, each once and at its time. Those that programs use come first
/// of what is due. Pure.
package struct FolderQueue {
    private struct Queued: Comparable {
        var due: Duration
        /// Those that are due at the same time keep the order in which they came.
        var number: Int
        var folder: ItemIdentifier

        static func < (left: Queued, right: Queued) -> Bool {
            (left.due, left.number) < (right.due, right.number)
        }
    }

    private struct Known {
        var due: Duration
        var number: Int
        var isLeisurely: Bool
    }

    /// What holds; a heap may have entries from before.
    private var numbers: [ItemIdentifier: Known] = [:]
    private var used = Heap<Queued>()
    private var others = Heap<Queued>()
    private var leisurely = Heap<Queued>()
    private var nextNumber = 0

    package init() {}

    package var isEmpty: Bool { numbers.isEmpty }

    /// At the earlier of two times, if it is in the queue already. `isLeisurely`: nobody waits for it, unless somebody does
    /// for another reason.
    package mutating func add(
        _ folder: ItemIdentifier, at due: Duration, isUsed: Bool = false, isLeisurely: Bool = false
    ) {
        let known = numbers[folder]
        if let known, known.due <= due, !isUsed, isLeisurely || !known.isLeisurely { return }
        set(
            folder, min(due, known?.due ?? due), isUsed: isUsed,
            isLeisurely: isLeisurely && known?.isLeisurely ?? true)
    }

    /// Somebody wants to know how it is now: what would be looked at later is due.
    package mutating func hasten(to now: Duration) {
        for (folder, known) in numbers where known.due > now {
            set(folder, now, isUsed: false, isLeisurely: false)
        }
    }

    /// Not before `due`.
    package mutating func postpone(_ folder: ItemIdentifier, to due: Duration) {
        guard let known = numbers[folder], known.due < due else { return }
        set(folder, due, isUsed: false, isLeisurely: known.isLeisurely)
    }

    /// Takes out the next one that is due.
    package mutating func next(at now: Duration) -> ItemIdentifier? {
        let folder =
            Self.take(from: &used, numbers, at: now) ?? Self.take(from: &others, numbers, at: now)
            ?? Self.take(from: &leisurely, numbers, at: now)
        if let folder { numbers[folder] = nil }
        return folder
    }

    /// When the next one is due; nil when there is none.
    package mutating func nextDue() -> Duration? {
        [nextAwaited(), Self.first(of: &leisurely, numbers)?.due].compactMap { $0 }.min()
    }

    /// The same of those that somebody waits for.
    package mutating func nextAwaited() -> Duration? {
        [Self.first(of: &used, numbers), Self.first(of: &others, numbers)].compactMap { $0?.due }
            .min()
    }

    private mutating func set(
        _ folder: ItemIdentifier, _ due: Duration, isUsed: Bool, isLeisurely: Bool
    ) {
        nextNumber += 1
        numbers[folder] = Known(due: due, number: nextNumber, isLeisurely: isLeisurely)
        let entry = Queued(due: due, number: nextNumber, folder: folder)
        if isUsed {
            used.insert(entry)
        } else if isLeisurely {
            leisurely.insert(entry)
        } else {
            others.insert(entry)
        }
    }

    private static func take(
        from heap: inout Heap<Queued>, _ numbers: [ItemIdentifier: Known], at now: Duration
    ) -> ItemIdentifier? {
        guard let entry = first(of: &heap, numbers), entry.due <= now else { return nil }
        heap.removeMin()
        return entry.folder
    }

    /// The first entry that holds; those before it go.
    private static func first(
        of heap: inout Heap<Queued>, _ numbers: [ItemIdentifier: Known]
    ) -> Queued? {
        while let entry = heap.min {
            if numbers[entry.folder]?.number == entry.number { return entry }
            heap.removeMin()
        }
        return nil
    }
}
