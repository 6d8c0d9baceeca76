package import PromiseCore
package import PromiseIndex
import PromiseProvider

/// What this machine has removed at the provider, the newest 10,000 items: nothing else is left of
/// them here, and whoever follows a domain that was moved to another storage meanwhile removes them
/// there, too. Only that: of what is gone for another reason nobody knows whether it is to be gone.
package struct OwnRemoval: Hashable, Sendable {
    package var identifier: ItemIdentifier
    package var parent: ItemIdentifier
    /// As it was last agreed on.
    package var path: [FileName]
    package var version: ContentVersion

    private static let countMax: UInt64 = 10_000
    private static let numberSetting = ProviderChange.removalPrefix + "next"

    /// Before the item is forgotten.
    static func note(
        _ operation: Operation, _ synced: Item, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard case .delete(let reference, let base) = operation.work, let parent = synced.parent,
            !reference.path.isEmpty
        else { return }
        let number = try transaction.setting(numberSetting).flatMap { UInt64($0) } ?? 0
        let removal = OwnRemoval(
            identifier: synced.identifier, parent: parent, path: reference.path,
            version: base ?? synced.version)
        try transaction.setSetting("\(ProviderChange.removalPrefix)\(number % countMax)", removal.text)
        try transaction.setSetting(numberSetting, "\(number + 1)")
    }

    package static func all(_ transaction: borrowing Transaction) throws(Failure) -> [OwnRemoval] {
        var result: [OwnRemoval] = []
        for key in try transaction.settingKeys(startingWith: ProviderChange.removalPrefix)
        where key != numberSetting {
            if let text = try transaction.setting(key), let removal = OwnRemoval(text) { result.append(removal) }
        }
        return result
    }

    // MARK: Text

    private var text: String {
        let words = [identifier.rawValue, parent.rawValue, version.rawValue].map { PathDigits.text(Array($0.utf8)) }
        return (words + [PathDigits.text(path)]).joined(separator: " ")
    }

    private init(identifier: ItemIdentifier, parent: ItemIdentifier, path: [FileName], version: ContentVersion) {
        (self.identifier, self.parent) = (identifier, parent)
        (self.path, self.version) = (path, version)
    }

    private init?(_ text: String) {
        let words = text.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 4 else { return nil }
        let texts = words[..<3].map { String(decoding: PathDigits.bytes($0), as: UTF8.self) }
        let path = PathDigits.path(words[3])
        guard !path.isEmpty else { return nil }
        self.init(
            identifier: ItemIdentifier(texts[0]), parent: ItemIdentifier(texts[1]), path: path,
            version: ContentVersion(texts[2]))
    }
}
