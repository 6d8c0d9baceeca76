import Glibc
import PromiseCore
import PromiseMigration
import PromiseProvider
import PromiseSystem

/// A new storage that is a place inside the old one: what is brought there would be found at the old
/// one again, and brought once more, one level deeper, without an end.
enum NestedStorages {
    static func demandApart(_ old: String, _ new: String) throws(ProviderError) {
        guard isInside(place(of: new), place(of: old)) else { return }
        throw ProviderError(
            .conflict,
            "'\(new)' is inside '\(old)': a domain is migrated to a place of its own, or within its mount by moving its folders")
    }

    private static func isInside(_ place: [UInt8], _ other: [UInt8]) -> Bool {
        var other = other
        while other.last == 0x2F { other.removeLast() }
        return place.starts(with: other + [0x2F])
    }

    /// Folders by what their paths lead to; others by their names, whoever asks.
    private static func place(of provider: String) -> [UInt8] {
        let scheme = "folder:"
        guard provider.hasPrefix(scheme) else { return Array(MovedRecord.withoutUser(provider).utf8) }
        let path = Array(provider.utf8.dropFirst(scheme.utf8.count))
        guard let folder = try? Descriptor.open(path, flags: O_RDONLY | O_DIRECTORY, label: "migration.place"),
            let resolved = try? readLink(descriptorPath(folder.number), label: "migration.place.path")
        else { return Array(scheme.utf8) + path }
        return Array(scheme.utf8) + resolved
    }
}
