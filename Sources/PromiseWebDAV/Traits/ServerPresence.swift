import PromiseCore
import PromiseProvider

/// Whether the server itself answers. One in its place, as behind a login page or a proxy that has lost it, says the same of
/// everything: it shows no root.
struct ServerPresence: Sendable {
    private let resources: WebDAVResources
    /// What is said to be gone, as it was to be removed. Where its folder is gone, too, others may have
    /// moved that, and it is no removal.
    private let removed: [FileName]

    init(_ resources: WebDAVResources, removed: [FileName] = []) {
        (self.resources, self.removed) = (resources, removed)
    }

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
            isFolder = try await resources.resource(at: [], isFolder: true).isCollection
        } catch {
            throw error.code == .notFound ? ProviderError(.retry, error.message) : error
        }
        guard isFolder else {
            throw ProviderError(.retry, "\(resources.shown([])) is no folder on the server")
        }
        guard removed.count > 1,
            try await resources.resourceIfAny(at: Array(removed.dropLast())) == nil
        else { return }
        throw ProviderError(
            .notFound, "the folder of \(resources.shown(removed)) is not on the server")
    }
}
