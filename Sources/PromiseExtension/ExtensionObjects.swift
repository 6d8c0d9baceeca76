import NIOHTTP1
import PromiseCore
package import PromiseProvider
import PromiseWire

/// Private objects of an extension that has declared `private-objects`.
struct ExtensionObjects: PrivateObjects {
    let client: ExtensionClient

    private func path(_ name: PrivateName, base: ContentVersion? = nil) -> String {
        let path = "objects/\(name.kind.rawValue)/\(PercentText.encoded(name.name))"
        return base.map { path + "?version=\(PercentText.encoded($0.rawValue))" } ?? path
    }

    private func version(_ text: String, _ name: PrivateName) throws(ProviderError) -> ContentVersion {
        guard ItemReading.isPlain(text) else { throw client.lie("gives \(name) a version that is none") }
        return ContentVersion(text)
    }

    func read(_ name: PrivateName) async throws(ProviderError) -> PrivateObject? {
        let document: ExtensionObjectDocument
        do throws(ProviderError) {
            document = try await client.exchange(.GET, path(name), as: ExtensionObjectDocument.self)
        } catch where error.code == .notFound {
            return nil
        }
        guard let bytes = document.octets() else { throw client.lie("shows \(name) without its bytes") }
        if UInt64(bytes.count) > PrivateObject.byteCountMax { throw PrivateObject.tooLarge(name) }
        return PrivateObject(bytes: bytes, version: try version(document.version, name))
    }

    func write(
        _ bytes: [UInt8], to name: PrivateName, base: ContentVersion?
    ) async throws(ProviderError) -> ContentVersion {
        let answer = try await client.exchange(.PUT, path(name, base: base), bytes: bytes, as: ExtensionObjectDocument.self)
        return try version(answer.version, name)
    }

    func list(_ kind: PrivateName.Kind) async throws(ProviderError) -> [PrivateName] {
        let document = try await client.exchange(.GET, "objects/\(kind.rawValue)", as: ExtensionObjectsDocument.self)
        return document.names.compactMap { PrivateName(kind, $0) }
    }

    func delete(_ name: PrivateName, base: ContentVersion) async throws(ProviderError) {
        do throws(ProviderError) {
            try await client.send(.DELETE, path(name, base: base))
        } catch where error.code == .notFound {
            return
        }
    }
}

extension ExtensionProvider {
    package var privateObjects: (any PrivateObjects)? {
        capabilities.contains(.privateObjects) ? ExtensionObjects(client: client) : nil
    }
}
