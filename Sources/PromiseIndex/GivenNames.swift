package import PromiseCore

/// What this machine calls items, at a store that knows places only, that some application was
/// given: no other item is called so, as the next one at the place of a removed one would be.
package enum GivenNames {
    private static let prefix = "given."

    package static func contains(
        _ identifier: ItemIdentifier, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        try transaction.setting(prefix + identifier.rawValue) != nil
    }

    package static func set(
        _ identifier: ItemIdentifier, isGiven: Bool, _ transaction: borrowing Transaction
    ) throws(Failure) {
        if try contains(identifier, transaction) == isGiven { return }
        try transaction.setSetting(prefix + identifier.rawValue, isGiven ? "1" : nil)
    }

    package static func all(
        _ transaction: borrowing Transaction
    ) throws(Failure) -> Set<ItemIdentifier> {
        Set(
            try transaction.settingKeys(startingWith: prefix)
                .map { ItemIdentifier(String($0.dropFirst(prefix.count))) })
    }
}
