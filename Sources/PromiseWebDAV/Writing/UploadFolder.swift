import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider
import Synchronization

/// `.promisefs/uploads` on the server: what is on its way waits there for its name.
final class UploadFolder: Sendable {
    private struct State {
        var count: UInt64 = 0
        /// The folder has been made.
        var isMade = false
    }

    static let path = [ReservedName.folder, ReservedName.uploads]

    private let resources: WebDAVResources
    /// In the names of uploads: this run's own.
    private let session: String
    private let state = Mutex(State())

    init(_ resources: WebDAVResources, session: String) {
        self.resources = resources
        self.session = session
    }

    private var client: WebDAVClient { resources.client }
    private var location: WebDAVLocation { resources.location }

    /// A name in the hidden folder that nobody else uses.
    func place() async throws(ProviderError) -> [FileName] {
        try await make()
        let number = state.withLock { state in
            state.count += 1
            return state.count
        }
        return UploadFolder.path + [FileName(trusted: Array("\(session)-\(number)".utf8))]
    }

    func name() async throws(ProviderError) -> String { try await place().last?.display ?? "" }

    private func make() async throws(ProviderError) {
        if state.withLock({ $0.isMade }) { return }
        for path in [[ReservedName.folder], UploadFolder.path] {
            let reply = try await client.exchange(.MKCOL, location.url(path, isFolder: true))
            guard reply.isSuccess || reply.status == 405 else {
                throw ProviderError(
                    reply, "the folder \(resources.shown(path)) for uploads cannot be made",
                    puts: true)
            }
        }
        state.withLock { $0.isMade = true }
    }

    /// The folder may have been removed by somebody; then it is made again.
    func with<Value: Sendable>(
        _ body: () async throws(ProviderError) -> Value
    ) async throws(ProviderError) -> Value {
        do throws(ProviderError) {
            return try await body()
        } catch {
            guard error.code == .notFound else { throw error }
            state.withLock { $0.isMade = false }
            try await make()
            return try await body()
        }
    }

    /// False when it may still be there.
    func remove(_ aside: [FileName]) async -> Bool {
        let reply = await withCancellationShield { [client, location] in
            try? await client.exchange(.DELETE, location.url(aside))
        }
        guard let reply else { return false }
        return reply.isSuccess || reply.status == 404
    }
}
