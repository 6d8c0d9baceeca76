import Foundation
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
        try await check()
        do throws(ProviderError) {
            let value = try await body()
            provider.twinSuspects.forget(path)
            return value
        } catch {
            // What others have made is in the next listing, and then nobody makes it again.
            guard error.code == .conflict || error.message.hasSuffix(TwinNames.otherAnswer),
                provider.twinSuspects.isKnown(path), let twin = try? await twin()
            else { throw error }
            throw refusal(twin)
        }
    }

    /// A move to the path. Where that leads to the item itself the engine knows a way by a third
    /// name. Moved there, it would be replaced by itself: rclone and `Overwrite: T` on Apache remove it.
    func watchingMove<Value: Sendable>(
        from source: [FileName], _ body: () async throws(ProviderError) -> Value
    ) async throws(ProviderError) -> Value {
        guard let name = path.last, let old = source.last, name.isTwin(of: old),
            path.dropLast() == source.dropLast()
        else { return try await watching(body) }
        var isTaken = provider.resources.traits.overwritesTwins == true
        if !isTaken { isTaken = try await isThere(path) }
        guard !isTaken else {
            throw ProviderError(.conflict, "\(provider.resources.shown(path)) is taken on the server")
        }
        return try await body()
    }

    /// Before something is put where a name like it may be, on a server that lets it go over that.
    /// Where the folder cannot be listed nothing is put: there may be one.
    private func check() async throws(ProviderError) {
        guard provider.resources.traits.overwritesTwins == true,
            let twin = try await twin()
        else { return }
        throw refusal(twin)
    }

    private func refusal(_ twin: FileName) -> ProviderError {
        ProviderError(
            .refused,
            "\(provider.resources.shown(path)) stays on this machine: the server takes it and "
                + "'\(twin.display)', which is there, for one name; rename one of the two")
    }

    /// What is found at the path, by its name in the folder: others may have changed the case of
    /// that, or the form of its letters, and the server finds it by either.
    func found() async throws(ProviderError) -> (path: [FileName], resource: ResourceStatus) {
        guard provider.resources.traits.foldsNames == true else {
            return (path, try await provider.resources.resource(at: path))
        }
        var resource: ResourceStatus?
        do throws(ProviderError) {
            let found = try await provider.resources.resource(at: path)
            // A number tells by itself which item it is.
            guard found.number == nil, try await isFoundByTwin() else { return (path, found) }
            resource = found
        } catch {
            guard error.message.hasSuffix(TwinNames.otherAnswer) else { throw error }
        }
        if let twin = try? await twin() {
            let other = Array(path.dropLast()) + [twin]
            return (other, try await provider.resources.resource(at: other))
        }
        guard let resource else { return (path, try await provider.resources.resource(at: path)) }
        return (path, resource)
    }

    private func isFoundByTwin() async throws(ProviderError) -> Bool {
        guard let name = path.last, let twin = TwinNames.twin(of: name) else { return false }
        return try await isThere(path.dropLast() + [twin])
    }

    private func isThere(_ path: [FileName]) async throws(ProviderError) -> Bool {
        do throws(ProviderError) {
            return try await provider.resources.resourceIfAny(at: path) != nil
        } catch {
            guard error.message.hasSuffix(TwinNames.otherAnswer) else { throw error }
            return true
        }
    }

    private static func twin(of name: FileName) -> FileName? {
        if let twin = name.twin { return twin }
        guard let text = String(validating: name.bytes, as: UTF8.self) else { return nil }
        let forms = [
            text.precomposedStringWithCanonicalMapping, text.decomposedStringWithCanonicalMapping,
        ]
        return forms.compactMap { FileName($0) }.first { $0.isTwin(of: name) }
    }

    /// Nil when the name itself is there, or none like it.
    private func twin() async throws(ProviderError) -> FileName? {
        guard let name = path.last else { return nil }
        let folder = Array(path.dropLast())
        let body = "<propfind xmlns=\"DAV:\"><prop><resourcetype/></prop></propfind>"
        let rows = try await provider.resources.propfind(
            folder, isFolder: true, depth: "1", body: body)
        let inside = rows.map(\.path).filter { $0.count == path.count && $0.starts(with: folder) }
        let names = inside.compactMap(\.last)
        guard !names.contains(name) else { return nil }
        return names.first { $0.isTwin(of: name) }
    }
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
