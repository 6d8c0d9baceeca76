import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider
import Synchronization

// Writing only on what was expected. Where the server has locks the check and the write are made under one, because servers
// check a condition and write in two steps; where it has none, conditions are sent, as far as the server honours them.

/// What must be at a place for a write to happen.
enum Expectation: Equatable, Sendable {
    case nothing
    case version(ContentVersion)
    case anything

    /// Of a PUT, where the server honours them.
    func conditions(_ traits: ServerTraits) -> HTTPHeaders {
        guard traits.honoursConditionsOnPut else { return [:] }
        return switch self {
        case .nothing: ["If-None-Match": "*"]
        case .version(let version): ["If-Match": "\"\(version.rawValue)\""]
        case .anything: [:]
        }
    }
}

/// The right to write to a place, while a body runs.
struct WriteTurn: Sendable {
    /// Of the place.
    var url: String
    var token: String?
    /// For a server without locks.
    var conditions: HTTPHeaders = [:]
    /// The lock made an empty file of a free name.
    var hasMadeFile = false

    /// For a request to the place itself.
    var headers: HTTPHeaders {
        var headers = conditions
        if let token { headers.add(name: "If", value: WriteTurn.condition(url, token)) }
        return headers
    }

    /// Of a request that failed. Apache answers 400, too, where it has lost the lock; a multi-status tells of another one.
    static func status(of reply: HTTPReply, isLocked: Bool) -> Int {
        switch reply.status {
        case 207: 423
        case 400 where isLocked: 412
        default: reply.status
        }
    }

    /// Tagged with the place that is locked: untagged it would have to hold for the folder, too.
    static func condition(_ url: String, _ token: String) -> String { "<\(url)> (<\(token)>)" }

    /// The place must have this version (RFC 4918, section 10.4).
    static func condition(_ url: String, has version: ContentVersion) -> String { "<\(url)> ([\"\(version.rawValue)\"])" }
}

extension WebDAVProvider {
    /// Runs `body` while nobody else, who keeps to locks, writes to the place, and only if it holds what is expected.
    /// Throws `.conflict` or `.notFound` when it does not.
    func withTurn<Value: Sendable>(
        at path: [FileName], _ expectation: Expectation, byteCount: UInt64 = 0,
        _ body: (WriteTurn) async throws(ProviderError) -> Value
    ) async throws(ProviderError) -> Value {
        let url = location.url(path)
        return try await turns.take(location.urlPath(path)) { () async throws(ProviderError) in
            guard traits.locks else {
                try await check(expectation, at: path)
                return try await body(WriteTurn(url: url, conditions: expectation.conditions(traits)))
            }
            for _ in 0..<WebDAVProvider.lostLockAttempts {
                do throws(ProviderError) {
                    return try await withLock(path, expectation, byteCount, body)
                } catch {
                    guard error.code == .conflict, error.message != WebDAVProvider.changed(shown(path)) else { throw error }
                }
            }
            return try await withLock(path, expectation, byteCount, body)
        }
    }

    /// Apache loses a lock of a free name now and then, when others are made in the same folder at that moment, and then
    /// refuses the write. Nothing has happened; a lock and a look tell how things really are.
    static let lostLockAttempts = 5

    private static func changed(_ shown: String) -> String { "\(shown) was changed or made on the server meanwhile" }

    private func withLock<Value: Sendable>(
        _ path: [FileName], _ expectation: Expectation, _ byteCount: UInt64,
        _ body: (WriteTurn) async throws(ProviderError) -> Value
    ) async throws(ProviderError) -> Value {
        let (token, hasMadeFile) = try await lock(path, byteCount: byteCount)
        let turn = WriteTurn(url: location.url(path), token: token, hasMadeFile: hasMadeFile)
        do throws(ProviderError) {
            if hasMadeFile {
                if case .version = expectation { throw ProviderError(.notFound, "\(shown(path)) is not on the server") }
            } else {
                try await check(expectation, at: path)
            }
            let value = try await renewing(path, token) { () async throws(ProviderError) in try await body(turn) }
            // It may have ended with what it was of.
            if heldLocks.contains(token) { await unlock(path, token) }
            return value
        } catch {
            if hasMadeFile { _ = try? await client.exchange(.DELETE, location.url(path), turn.headers) }
            await unlock(path, token)
            throw error
        }
    }

    func check(_ expectation: Expectation, at path: [FileName]) async throws(ProviderError) {
        if expectation == .anything { return }
        switch (expectation, try await resourceIfAny(at: path)) {
        case (.nothing, nil), (.anything, _): return
        case (.nothing, .some): throw ProviderError(.conflict, WebDAVProvider.changed(shown(path)))
        case (.version, nil): throw ProviderError(.notFound, "\(shown(path)) is not on the server")
        case (.version(let version), .some(let now)):
            guard WebDAVProvider.version(of: now) == version else {
                throw ProviderError(.conflict, WebDAVProvider.changed(shown(path)))
            }
        }
    }

    // MARK: Locks

    /// `depth` `infinity` locks what is in a folder, too. `byteCount` is to be sent under it: there are servers that renew no
    /// lock while it is used.
    func lock(
        _ path: [FileName], isFolder: Bool = false, depth: String = "0", byteCount: UInt64 = 0
    ) async throws(ProviderError) -> (token: String, hasMadeFile: Bool) {
        let seconds = lockSeconds + byteCount / 100_000
        var reply = try await requestLock(path, isFolder, depth, seconds)
        if reply.status == 423, try await breakOwnLock(path) { reply = try await requestLock(path, isFolder, depth, seconds) }
        let what = "\(shown(path)) cannot be locked"
        guard reply.isSuccess, reply.status != 207 else { throw ProviderError(reply, what, puts: true) }
        guard var token = reply.header("Lock-Token") else { throw ProviderError(.retry, "\(what): the server gives no token") }
        if token.hasPrefix("<"), token.hasSuffix(">") { token = String(token.dropFirst().dropLast()) }
        heldLocks.add(HeldLocks.Lock(path: path, isFolder: isFolder, token: token))
        return (token, reply.status == 201 && traits.lockMakesFile)
    }

    private func requestLock(
        _ path: [FileName], _ isFolder: Bool, _ depth: String, _ seconds: UInt64
    ) async throws(ProviderError) -> HTTPReply {
        let body = """
            <lockinfo xmlns="DAV:"><lockscope><exclusive/></lockscope><locktype><write/></locktype>\
            <owner>\(owner)</owner></lockinfo>
            """
        let headers: HTTPHeaders = [
            "Depth": depth, "Timeout": "Second-\(seconds)", "Content-Type": "application/xml; charset=utf-8",
        ]
        let url = location.url(path, isFolder: isFolder)
        return try await heldLocks.ask { [client] () async throws(ProviderError) in
            try await client.exchange(.LOCK, url, headers, body: RequestBody(body))
        }
    }

    /// Runs `body` while a lock is asked for again and again: it lasts for as long as it is used, and one whose token got lost
    /// ends soon. A server that does not renew it says at the next write that it has run out.
    func renewing<Value: Sendable>(
        _ path: [FileName], isFolder: Bool = false, _ token: String, _ body: () async throws(ProviderError) -> Value
    ) async throws(ProviderError) -> Value {
        let url = location.url(path, isFolder: isFolder)
        let headers: HTTPHeaders = ["If": WriteTurn.condition(url, token), "Timeout": "Second-\(lockSeconds)"]
        let pause = Duration.seconds(Double(lockSeconds) / 3)
        let renewal = Task { [client] in
            while true {
                // It ends when it is cancelled.
                do { try await Task.sleep(for: pause) } catch { return }
                _ = try? await client.exchange(.LOCK, url, headers)
            }
        }
        defer { renewal.cancel() }
        return try await body()
    }

    /// A daemon that was killed leaves its locks behind; the next one on the same state folder takes them away. Nobody
    /// else's lock is touched.
    private func breakOwnLock(_ path: [FileName]) async throws(ProviderError) -> Bool {
        let body = "<propfind xmlns=\"DAV:\"><prop><lockdiscovery/></prop></propfind>"
        let found = try await propfind(path, depth: "0", body: body)
        guard let resource = found.first?.resource, let token = resource.lockToken, resource.lockOwner == owner,
            !heldLocks.contains(token)
        else { return false }
        await unlock(path, token)
        return true
    }

    package func letGo() async {
        await acquaintance.end()
        await heldLocks.close { lock in await self.unlock(lock.path, isFolder: lock.isFolder, lock.token) }
    }

    /// A lock that cannot be given back ends by itself.
    func unlock(_ path: [FileName], isFolder: Bool = false, _ token: String) async {
        // Also when the caller was cancelled: the lock would keep everybody out until it ends.
        let request = Task { [client, location] in
            _ = try? await client.exchange(.UNLOCK, location.url(path, isFolder: isFolder), ["Lock-Token": "<\(token)>"])
        }
        await request.value
        noteEnded(path, isFolder: isFolder, token)
    }
}
