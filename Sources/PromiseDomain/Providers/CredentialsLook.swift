import PromiseProvider
import PromiseSystem

/// What the credentials file says, without its secrets.
package enum CredentialsLook {
    package struct Entry: Sendable {
        package var name: String
        package var user: String?
        package var isInSecretService: Bool
    }

    /// Why it cannot be used, a sentence; nil when it can, or is not there. Blocking.
    package static func problem(_ file: [UInt8]) -> String? {
        do throws(ProviderError) {
            _ = try read(file)
            return nil
        } catch {
            return error.message
        }
    }

    /// None when there is no file, or none that can be used. Blocking.
    package static func entries(_ file: [UInt8]) -> [Entry] { (try? read(file)) ?? [] }

    private static func read(_ file: [UInt8]) throws(ProviderError) -> [Entry] {
        // Looked for by names, of which none is an entry's: the file is read and checked all the same.
        _ = try CredentialSource(file: file, names: []).credentials()
        guard case .content(let bytes) = TrustedFile.read(file, countMax: 1 << 20) else { return [] }
        let shown = "the credentials file \(String(decoding: file, as: UTF8.self))"
        return try CredentialsFile.parse(String(decoding: bytes, as: UTF8.self), shown: shown).map {
            Entry(name: $0.key, user: $0.value.user, isInSecretService: $0.value.isInSecretService)
        }
    }
}
