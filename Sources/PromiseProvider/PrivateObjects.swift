package import PromiseCore

/// Small hidden objects at a provider, below `.promisefs/` beside what the provider keeps there
/// itself: what PromiseFS has to know on every machine. Nobody's listing or change feed shows them.
package protocol PrivateObjects: Sendable {
    /// Nil when there is none.
    func read(_ name: PrivateName) async throws(ProviderError) -> PrivateObject?

    /// Writes an object if the provider still has the version `base`, or with nil if it has none;
    /// else throws `.conflict` and leaves it. There is never half of one. Returns the new version.
    func write(
        _ bytes: [UInt8], to name: PrivateName, base: ContentVersion?
    ) async throws(ProviderError) -> ContentVersion

    /// In no order; names that are none of ours are left out.
    func list(_ kind: PrivateName.Kind) async throws(ProviderError) -> [PrivateName]

    /// Removes an object that has this version, else `.conflict`. Removing what is gone already is
    /// done.
    func delete(_ name: PrivateName, base: ContentVersion) async throws(ProviderError)

    /// Of what is larger than a private object may be: all of it goes into the sink. Returns its version, by which it
    /// can be deleted; nil when there is no such thing.
    func fetchTooLarge(
        _ name: PrivateName, into sink: any ContentSink
    ) async throws(ProviderError) -> ContentVersion?
}

extension PrivateObjects {
    /// Who cannot be asked for that has none.
    package func fetchTooLarge(
        _ name: PrivateName, into sink: any ContentSink
    ) async throws(ProviderError) -> ContentVersion? { nil }
}

package struct PrivateObject: Hashable, Sendable {
    /// More is no private object, and is not read into memory.
    package static let byteCountMax: UInt64 = 16 << 20

    package var bytes: [UInt8]
    package var version: ContentVersion

    package init(bytes: [UInt8], version: ContentVersion) {
        self.bytes = bytes
        self.version = version
    }

    package static func tooLarge(_ name: PrivateName) -> ProviderError {
        ProviderError(
            .refused, "\(name) is larger than \(byteCountMax) bytes: something else was put there")
    }
}

/// Where a private object is: `.promisefs/KIND/NAME`.
package struct PrivateName: Hashable, Sendable, CustomStringConvertible {
    package enum Kind: String, Hashable, Sendable, CaseIterable {
        /// Of the key-value store, one an application.
        case values
        /// Which folder is whose container, one an application.
        case containers
        /// What references in other storages call this one.
        case storage
        /// What items have besides their content, one for all.
        case attributes
        /// Where items were moved to, one for all, where items are known by their places only.
        case moves
        /// Of documents, one each, where the provider keeps none itself.
        case pictures
        /// Of the conformance suite; removed at its end.
        case checks

        package var folderName: FileName { FileName(trusted: Array(rawValue.utf8)) }
    }

    package static let byteCountMax = 200

    package let kind: Kind
    package let name: String

    /// Nil for a name that some storage could not keep as it is: letters and digits of ASCII, and
    /// `.`, `-` and `_` but at the beginning.
    package init?(_ kind: Kind, _ name: String) {
        let isPlain = name.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"),
                UInt8(ascii: "_"):
                true
            default: false
            }
        }
        guard isPlain, let first = name.first, !".-_".contains(first),
            name.utf8.count <= PrivateName.byteCountMax
        else {
            return nil
        }
        self.kind = kind
        self.name = name
    }

    package var fileName: FileName { FileName(trusted: Array(name.utf8)) }
    package var description: String { "'.promisefs/\(kind.rawValue)/\(name)'" }
}

/// Private objects of a provider that something is done to before every call.
struct GatedObjects: PrivateObjects {
    let wrapped: any PrivateObjects
    let gate: @Sendable (ProviderCall) async throws(ProviderError) -> Void

    func read(_ name: PrivateName) async throws(ProviderError) -> PrivateObject? {
        try await gate(.readObject)
        return try await wrapped.read(name)
    }

    func write(
        _ bytes: [UInt8], to name: PrivateName, base: ContentVersion?
    ) async throws(ProviderError) -> ContentVersion {
        try await gate(.writeObject)
        return try await wrapped.write(bytes, to: name, base: base)
    }

    func list(_ kind: PrivateName.Kind) async throws(ProviderError) -> [PrivateName] {
        try await gate(.listObjects)
        return try await wrapped.list(kind)
    }

    func delete(_ name: PrivateName, base: ContentVersion) async throws(ProviderError) {
        try await gate(.deleteObject)
        try await wrapped.delete(name, base: base)
    }

    func fetchTooLarge(
        _ name: PrivateName, into sink: any ContentSink
    ) async throws(ProviderError) -> ContentVersion? {
        try await gate(.readObject)
        return try await wrapped.fetchTooLarge(name, into: sink)
    }
}
