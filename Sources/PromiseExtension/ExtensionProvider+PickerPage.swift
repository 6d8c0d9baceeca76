package import PromiseProvider

extension ExtensionProvider {
    /// Of more than that no page is shown.
    private static let pageCountMax = 1 << 20

    package func pickerPage(mode: String) async throws(ProviderError) -> [UInt8]? {
        guard capabilities.contains(.pickerPages) else { return nil }
        do throws(ProviderError) {
            let page = try await client.bytes("picker-page?mode=\(PercentText.encoded(mode))")
            guard page.count <= ExtensionProvider.pageCountMax else {
                throw ProviderError(.refused, "the provider's page is too long")
            }
            return page
        } catch where error.code == .notFound {
            return nil
        }
    }
}
