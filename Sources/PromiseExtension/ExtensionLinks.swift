import NIOHTTP1
import PromiseCore
package import PromiseProvider
import PromiseSystem
import PromiseWire

/// Links for strangers of an extension that has declared `sharing-links`.
struct ExtensionLinks: SharingLinks {
    /// More are not shown.
    private static let countMax = 10_000

    let provider: ExtensionProvider

    private var client: ExtensionClient { provider.client }

    func make(
        to reference: ItemReference, kind: NodeKind, until end: Timestamp?
    ) async throws(ProviderError) -> SharingLink {
        if let end, end <= provider.clock.now() {
            throw ProviderError(.refused, "that date has passed")
        }
        let query = end.map { "?until=\($0.rawValue)" } ?? ""
        let document = try await client.exchange(
            .POST, "\(provider.path(reference))/links\(query)", as: ExtensionLinkDocument.self)
        var link: SharingLink
        do throws(ProviderError) {
            link = try self.link(document)
        } catch {
            throw await takenBack(document, error)
        }
        if let end, link.end.map({ $0 > end }) ?? true { throw await takenBack(link) }
        // It is to what was asked for.
        link.path = reference.path
        return link
    }

    /// Nobody is to have a link that lasts longer than its owner believes.
    private func takenBack(_ link: SharingLink) async -> ProviderError {
        let what = "makes a link that lasts longer than it was to"
        do throws(ProviderError) {
            guard let identifier = link.identifier else { throw client.lie(what) }
            try await revoke(identifier)
            return client.lie("\(what); it was taken back")
        } catch {
            return client.lie("\(what), and does not take it back: \(link.address)")
        }
    }

    /// It works for strangers, and no list would show it.
    private func takenBack(
        _ document: ExtensionLinkDocument, _ error: ProviderError
    ) async -> ProviderError {
        guard let identifier = document.id, StorageWords.isWord(identifier) else { return error }
        do throws(ProviderError) {
            try await revoke(identifier)
            return ProviderError(error.code, "\(error.message); it was taken back")
        } catch {
            return client.lie(
                "gives a link that is no address of the web, and does not take it back: it calls "
                    + "it '\(identifier)'")
        }
    }

    func list() async throws(ProviderError) -> [SharingLink] {
        let document = try await client.exchange(.GET, "links", as: ExtensionLinksDocument.self)
        var links: [SharingLink] = []
        var wrong: ProviderError?
        for document in document.links.prefix(ExtensionLinks.countMax) {
            do throws(ProviderError) {
                links.append(try link(document))
            } catch {
                wrong = error
            }
        }
        if let wrong { provider.warn(wrong) }
        return links
    }

    func revoke(_ identifier: String) async throws(ProviderError) {
        guard StorageWords.isWord(identifier) else {
            let shown = escapedForDisplay(Array(identifier.utf8.prefix(300)))
            throw ProviderError(.notFound, "there is no link '\(shown)'")
        }
        try await client.send(.DELETE, "links/\(PercentText.encoded(identifier))")
    }

    private func link(_ document: ExtensionLinkDocument) throws(ProviderError) -> SharingLink {
        guard StorageWords.isAddress(document.url) else {
            throw client.lie("gives a link that is no address of the web")
        }
        guard document.id.map({ StorageWords.isWord($0) }) ?? true else {
            throw client.lie("calls a link by what nobody can type")
        }
        return SharingLink(
            identifier: document.id, address: document.url,
            path: document.path.flatMap { StorageWords.path($0) },
            end: document.until.map { Timestamp(nanoseconds: $0) })
    }
}

extension ExtensionProvider {
    package var sharingLinks: (any SharingLinks)? {
        capabilities.contains(.sharingLinks) ? ExtensionLinks(provider: self) : nil
    }
}
