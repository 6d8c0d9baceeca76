import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem
import Synchronization

/// Writing only on what was expected. Where the server has locks (RFC 4918, section 6) the check
/// and the write are made under one, because servers check a condition and write in two steps;
/// where it has none, conditions are sent, as far as the server honours them.
final class WriteLocks: Sendable {
    private let resources: WebDAVResources
    /// Says in locks whose they are. The same in every run on one state folder, so that a lock left
    /// by a killed daemon is known for our own.
    private let owner: String
    /// What a lock lasts for unless it is asked for again, as for one of a client that was killed.
    private let lockSeconds: UInt64
    private let heldLocks = HeldLocks()
    private let endedLocks = Mutex(EndedLocks())

    init(_ resources: WebDAVResources, owner: String, lockSeconds: UInt64) {
        self.resources = resources
        self.owner = owner
        self.lockSeconds = lockSeconds
    }

    private var client: WebDAVClient { resources.client }
    private var location: WebDAVLocation { resources.location }
    private var traits: ServerTraits { resources.traits }

    /// Runs `body` while nobody else, who keeps to locks, writes to the place, and only if it holds
    /// what is expected. Throws `.conflict` or `.notFound` when it does not.
    func withTurn<Value: Sendable>(
        at path: [FileName], _ expectation: Expectation, byteCount: UInt64 = 0,
        _ body: (WriteTurn) async throws(ProviderError) -> Value
    ) async throws(ProviderError) -> Value {
        let url = location.url(path)
        return try await resources.turns.take(location.urlPath(path)) {
            () async throws(ProviderError) in
            guard traits.locks else {
                let found = try await resources.check(expectation, at: path)
                let conditions = expectation.conditions(traits)
                return try await body(WriteTurn(url: url, conditions: conditions, found: found))
            }
            for _ in 0..<WriteLocks.lostLockAttempts {
                do throws(ProviderError) {
                    return try await withLock(path, expectation, byteCount, body)
                } catch {
                    guard error.code == .conflict, error.message != resources.changed(path).message
                    else { throw error }
                }
            }
            return try await withLock(path, expectation, byteCount, body)
        }
    }

    /// Apache loses a lock of a free name now and then, when others are made in the same folder at
    /// that moment, and then refuses the write. Nothing has happened; a lock and a look tell how
    /// things really are.
    static let lostLockAttempts = 5

    private func withLock<Value: Sendable>(
        _ path: [FileName], _ expectation: Expectation, _ byteCount: UInt64,
        _ body: (WriteTurn) async throws(ProviderError) -> Value
    ) async throws(ProviderError) -> Value {
        let (token, hasMadeFile) = try await lock(path, byteCount: byteCount)
        var turn = WriteTurn(url: location.url(path), token: token, hasMadeFile: hasMadeFile)
        do throws(ProviderError) {
            if hasMadeFile {
                if case .version = expectation {
                    throw ProviderError(.notFound, "\(resources.shown(path)) is not on the server")
                }
            } else {
                turn.found = try await resources.check(expectation, at: path)
            }
            let value = try await renewing(path, token) { [turn] () async throws(ProviderError) in
                try await body(turn)
            }
            // It may have ended with what it was of.
            if heldLocks.contains(token) { await unlock(path, token) }
            return value
        } catch {
            if hasMadeFile { await removeMade(turn) }
            await unlock(path, token)
            throw error
        }
    }

    /// The empty file that a lock made of a free name.
    private func removeMade(_ turn: WriteTurn) async {
        // Everybody would see it.
        await withCancellationShield { [client] in
            _ = try? await client.exchange(.DELETE, turn.url, turn.headers)
        }
    }

    // MARK: Locks

    /// `depth` `infinity` locks what is in a folder, too. `byteCount` is to be sent under it: there
    /// are servers that renew no lock while it is used.
    func lock(
        _ path: [FileName], isFolder: Bool = false, depth: String = "0", byteCount: UInt64 = 0
    ) async throws(ProviderError) -> (token: String, hasMadeFile: Bool) {
        let seconds = lockSeconds + byteCount / 100_000
        var reply = try await requestLock(path, isFolder, depth, seconds)
        if reply.status == 423, try await breakOwnLock(path) {
            reply = try await requestLock(path, isFolder, depth, seconds)
        }
        let what = "\(resources.shown(path)) cannot be locked"
        guard reply.isSuccess, reply.status != 207 else {
            throw ProviderError(reply, what, puts: true)
        }
        guard var token = reply.header("Lock-Token") else {
            throw ProviderError(.retry, "\(what): the server gives no token")
        }
        if token.hasPrefix("<"), token.hasSuffix(">") {
            token = String(token.dropFirst().dropLast())
        }
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
            "Depth": depth, "Timeout": "Second-\(seconds)",
            "Content-Type": "application/xml; charset=utf-8",
        ]
        let url = location.url(path, isFolder: isFolder)
        return try await heldLocks.ask { [client] () async throws(ProviderError) in
            try await client.exchange(.LOCK, url, headers, body: RequestBody(body))
        }
    }

    /// Runs `body` while a lock is asked for again and again: it lasts for as long as it is used,
    /// and one whose token got lost ends soon. A server that does not renew it says at the next
    /// write that it has run out.
    func renewing<Value: Sendable>(
        _ path: [FileName], isFolder: Bool = false, _ token: String,
        _ body: () async throws(ProviderError) -> Value
    ) async throws(ProviderError) -> Value {
        let url = location.url(path, isFolder: isFolder)
        let headers: HTTPHeaders = [
            "If": WriteTurn.condition(url, token), "Timeout": "Second-\(lockSeconds)",
        ]
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

    /// A daemon that was killed leaves its locks behind; the next one on the same state folder
    /// takes them away. Nobody else's lock is touched.
    private func breakOwnLock(_ path: [FileName]) async throws(ProviderError) -> Bool {
        let body = "<propfind xmlns=\"DAV:\"><prop><lockdiscovery/></prop></propfind>"
        let found = try await resources.propfind(path, depth: "0", body: body)
        guard let resource = found.first?.resource, let token = resource.lockToken,
            resource.lockOwner == owner,
            !heldLocks.contains(token)
        else { return false }
        await unlock(path, token)
        return true
    }

    /// Gives back all that are held, and takes no more.
    func close() async {
        await heldLocks.close { lock in
            await self.unlock(lock.path, isFolder: lock.isFolder, lock.token)
        }
    }

    /// A lock that cannot be given back ends by itself.
    func unlock(_ path: [FileName], isFolder: Bool = false, _ token: String) async {
        // It would keep everybody out until it ends.
        await withCancellationShield { [client, location] in
            _ = try? await client.exchange(
                .UNLOCK, location.url(path, isFolder: isFolder), ["Lock-Token": "<\(token)>"])
        }
        noteEnded(path, isFolder: isFolder, token)
    }

    // MARK: Locks that come back

    /// Where a lock of ours stands in a request's way that has ended, that is ended again, and the
    /// request repeated if it can be. `target`: where it moves something to.
    func exchangeBeyondStaleLocks(
        _ method: HTTPMethod, _ path: [FileName], to target: [FileName] = [],
        isFolder: Bool = false,
        _ headers: HTTPHeaders = [:], body: RequestBody? = nil, timeout: Duration? = nil
    ) async throws(ProviderError) -> HTTPReply {
        let url = location.url(path, isFolder: isFolder)
        let reply = try await client.exchange(method, url, headers, body: body, timeout: timeout)
        let stale = endedLocks.withLock {
            $0.take(inTheWayOf: method, path, target, isFolder: isFolder, status: reply.status)
        }
        for lock in stale { await unlock(lock.path, isFolder: lock.isFolder, lock.token) }
        guard !stale.isEmpty, body?.isRepeatable != false else { return reply }
        return try await client.exchange(method, url, headers, body: body, timeout: timeout)
    }

    func noteEnded(_ path: [FileName], isFolder: Bool, _ token: String) {
        heldLocks.remove(token)
        let (now, lasting) = (resources.clock.uptime(), Duration.seconds(Double(lockSeconds)))
        endedLocks.withLock { $0.add(path, isFolder: isFolder, token, at: now, lasting: lasting) }
    }
}
