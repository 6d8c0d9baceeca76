// A person types faster than a provider answers: what is typed about a list that is not there yet
// is done when it is.

extension PickerMachine {
    /// More is not kept: nobody means it.
    static let typedAheadLimit = 64

    /// What is at the cursor is known, or known to be nothing.
    var isListThere: Bool {
        guard listing != nil, let total else { return false }
        return total == 0 || windows[cursor / PickerMachine.windowCount] != nil
    }

    func waits(_ event: PickerEvent) -> Bool {
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
