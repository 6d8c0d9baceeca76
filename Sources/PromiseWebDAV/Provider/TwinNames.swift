import PromiseCore
import PromiseProvider
import Synchronization

/// Names that a server takes for one, as on a disk that does not tell `A` from `a`. It says of the second that it is taken, or
/// changed meanwhile, which no listing shows: people are told which other one it is.
struct TwinNames: Sendable {
    /// Of a look that tells of another name than it was about.
    static let otherAnswer = "the server's answer is about something else"

    let provider: WebDAVProvider
    /// Where something is to be that is not there yet.
    let path: [FileName]

    func watching<Value: Sendable>(
        _ body: () async throws(ProviderError) -> Value
    ) async throws(ProviderError) -> Value {
        do throws(ProviderError) {
            let value = try await body()
            provider.twinSuspects.forget(path)
            return value
        } catch {
            // What others have made is in the next listing, and then nobody makes it again.
            guard error.code == .conflict || error.message.hasSuffix(TwinNames.otherAnswer),
                provider.twinSuspects.isKnown(path), let twin = await twin()
            else { throw error }
            throw ProviderError(
                .refused,
                "\(provider.resources.shown(path)) stays on this machine: the server takes it and "
                    + "'\(twin.display)', which is there, for one name; rename one of the two")
        }
    }

    /// Nil when the name itself is there, or none like it.
    private func twin() async -> FileName? {
        guard let name = path.last else { return nil }
        let folder = Array(path.dropLast())
        let body = "<propfind xmlns=\"DAV:\"><prop><resourcetype/></prop></propfind>"
        let listing = try? await provider.resources.propfind(
            folder, isFolder: true, depth: "1", body: body)
        guard let rows = listing else { return nil }
        let names = rows.map(\.path).filter { $0.count == path.count && $0.starts(with: folder) }.compactMap(\.last)
        guard !names.contains(name) else { return nil }
        let folded = TwinNames.folded(name)
        return names.first { TwinNames.folded($0) == folded }
    }

    /// Texts that differ in Unicode's forms of letters are equal.
    private static func folded(_ name: FileName) -> String { String(decoding: name.bytes, as: UTF8.self).lowercased() }
}

/// Places where something could not be made, as it is there, once already.
final class TwinSuspects: Sendable {
    private static let pathsMax = 1_024

    private let paths = Mutex<Set<[FileName]>>([])

    /// False the first time.
    func isKnown(_ path: [FileName]) -> Bool {
        paths.withLock { paths in
            if paths.count >= TwinSuspects.pathsMax { paths = [] }
            return !paths.insert(path).inserted
        }
    }

    func forget(_ path: [FileName]) {
        paths.withLock { if !$0.isEmpty { $0.remove(path) } }
    }
}
