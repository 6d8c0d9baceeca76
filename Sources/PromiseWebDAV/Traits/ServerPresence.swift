import PromiseCore
import PromiseProvider

/// Whether the server itself answers. One in its place, as behind a login page or a proxy that has lost it, says the same of
/// everything: it shows no root.
struct ServerPresence: Sendable {
    let provider: WebDAVProvider
    /// What is said to be gone, as it was to be removed. Where its folder is gone, too, others may have
    /// moved that, and it is no removal.
    var removed: [FileName] = []

    var isShown: Bool {
        get async {
            do throws(ProviderError) {
                try await confirm()
                return true
            } catch {
                return false
            }
        }
    }

    /// Throws what is in the way; `.retry` where the root, too, is not there.
    func confirm() async throws(ProviderError) {
        let isFolder: Bool
        do throws(ProviderError) {
            isFolder = try await provider.resource(at: [], isFolder: true).isCollection
        } catch {
            throw error.code == .notFound ? ProviderError(.retry, error.message) : error
        }
        guard isFolder else { throw ProviderError(.retry, "\(provider.shown([])) is no folder on the server") }
        guard removed.count > 1,
            try await provider.resourceIfAny(at: Array(removed.dropLast())) == nil
        else { return }
        throw ProviderError(
            .notFound, "the folder of \(provider.shown(removed)) is not on the server")
    }
}
