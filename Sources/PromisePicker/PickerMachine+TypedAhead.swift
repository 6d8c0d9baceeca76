// A person types faster than a provider answers: what is typed about a list that is not there yet
// is done when it is.

extension PickerMachine {
    /// More is not kept: nobody means it.
    static let typedAheadLimit = 64

    /// What is at the cursor is known, or known to be nothing, or cannot be had: nothing more comes.
    var isListThere: Bool {
        guard listing != nil, let total else { return false }
        return total == 0 || lacksPart || windows[cursor / PickerMachine.windowCount] != nil
    }

    func waits(_ event: PickerEvent) -> Bool {
        guard hasLists else { return false }
        switch event {
        case .enter, .enterFolder, .mark, .rename, .step, .go, .end:
            return !typedAhead.isEmpty || !isListThere
        case .confirm: return !typedAhead.isEmpty || (!request.picksPlace && !isListThere)
        // What changes the list comes after what was said of the one before.
        case .up, .visit, .showRecent, .filter, .search, .sort, .reverse, .toggleHidden, .name,
            .choose, .makeFolder:
            return !typedAhead.isEmpty
        default: return false
        }
    }

    mutating func typeAhead(_ event: PickerEvent) {
        // Whoever presses Enter again, as nothing happens, does not mean what comes after that.
        let isRepeated = [.enter, .enterFolder, .confirm].contains(event) && typedAhead.last == event
        guard !isRepeated, typedAhead.count < PickerMachine.typedAheadLimit else { return }
        typedAhead.append(event)
    }

    mutating func takeTypedAhead(after event: PickerEvent) -> [PickerAction] {
        // Of a list that cannot be had, nothing was meant.
        if case .failed = event, isListThere { typedAhead = [] }
        var actions: [PickerAction] = []
        while isListThere, phase == .browsing, !typedAhead.isEmpty {
            actions += take(typedAhead.removeFirst())
        }
        if phase != .browsing { typedAhead = [] }
        return actions
    }
}
