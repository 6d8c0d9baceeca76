import Logging
import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem
import Synchronization

/// How a server is met. That it is there, and what a listing needs, is asked at once, with two
/// requests. What it does with what is written is tried before something is, or after a moment,
/// with a hundred.
struct FirstMeeting: Sendable {
    let provider: WebDAVProvider
    private var client: WebDAVClient { provider.resources.client }

    /// What was heard of a server when it was met.
    struct Met: Sendable {
        /// What it calls itself; nil until it has been met.
        var subject: String?
        /// For whoever asks for the root, or its room, right after.
        var root: ResourceStatus?
        var quota: ResourceStatus?
    }

    private enum Rest { case nothing, oldUploads, everything }

    func greet() async throws(ProviderError) {
        let acquaintance = provider.acquaintance
        switch try await meet() {
        case .nothing: break
        case .oldUploads:
            acquaintance.postpone(isNeeded: false) {
                [weak provider] () async throws(ProviderError) in
                guard let provider else { return }
                await FirstMeeting(provider: provider).removeOldUploads()
            }
        case .everything:
            acquaintance.postpone { [weak provider] () async throws(ProviderError) in
                guard let provider else { return }
                try await FirstMeeting(provider: provider).becomeAcquainted(isPatient: true)
            }
        }
    }

    /// All at once; a server in trouble is taken as it seems to be.
    func connect() async throws(ProviderError) {
        let rest = try await meet()
        provider.met.withLock { ($0.root, $0.quota) = (nil, nil) }
        switch rest {
        case .nothing: break
        case .oldUploads: await removeOldUploads()
        case .everything: try await becomeAcquainted(isPatient: false)
        }
    }

    /// Returns what is left to be done.
    private func meet() async throws(ProviderError) -> Rest {
        let location = provider.location
        let reply = try await client.exchange(.OPTIONS, location.url([], isFolder: true))
        guard reply.isSuccess else { throw ProviderError(reply, "the server refuses us") }
        let levels = reply.headers[canonicalForm: "DAV"].map(String.init)
        guard levels.contains("1") || levels.contains("2") else {
            throw ProviderError(
                .permanent,
                "'\(provider.name)' is not a WebDAV folder (its OPTIONS have no 'DAV: 1')")
        }
        let root = try await root()
        guard root.isCollection else {
            throw ProviderError(.permanent, "'\(provider.name)' is not a folder on the server")
        }
        let subject =
            "\(reply.header("Server") ?? "") \(levels.joined(separator: ",")) "
            + "\(location.identity)"
        let known = known(subject)
        provider.probeTroubles.forget()
        provider.met.withLock { $0 = Met(subject: subject, root: root, quota: root) }
        if let known { provider.resources.take(known) }
        // What an older version has not tried is tried, unless nothing may be.
        if let known, known.isComplete || !provider.mayProbe { return .oldUploads }
        guard provider.mayProbe else {
            note(untried(subject, hasLocks: levels.contains("2")))
            return .nothing
        }
        // By it an item is called, in the first listing already.
        if known == nil, root.number != nil,
            try await ServerProbe(provider: provider).runForNumbers()
        {
            provider.resources.tellsNumbers()
        }
        return .everything
    }

    private func root() async throws(ProviderError) -> ResourceStatus {
        let body = WebDAVResources.propertyRequest(
            WebDAVResources.numberProperty + WebDAVResources.quotaProperties)
        return try await provider.resources.resource(at: [], isFolder: true, body: body)
    }

    /// What was found out before, and is valid.
    private func known(_ subject: String) -> ServerTraits? {
        let now = provider.resources.knownTraits
        if let now, now.subject == subject, !now.isGuess { return now }
        return provider.remembered?.subject == subject ? provider.remembered : nil
    }

    private func untried(_ subject: String, hasLocks: Bool) -> ServerTraits {
        var traits = ServerTraits()
        (traits.locks, traits.hasRanges) = (hasLocks, true)
        traits.subject = subject
        return traits
    }

    private func becomeAcquainted(isPatient: Bool) async throws(ProviderError) {
        let (subject, known) = (
            provider.met.withLock { $0.subject }, provider.resources.knownTraits
        )
        let probe = ServerProbe(provider: provider)
        var traits = ServerTraits()
        do throws(ProviderError) {
            traits = try await probe.run()
        } catch {
            if error.code == .cancelled { throw error }
            if isPatient,
                await provider.probeTroubles.isPassing(error, isWell: { await probe.isWell() })
            {
                throw error
            }
            traits.brokeOff = true
            provider.resources.logger.warning(
                "it could not be tried what the server does",
                metadata: ["reason": "\(error.description)"])
        }
        if traits.isGuess, let known { traits = known }
        traits.subject = subject ?? ""
        note(traits)
        if !traits.isGuess { await removeOldUploads() }
    }

    /// Uploads that an earlier run on this state folder left, as it was killed, and anybody's that
    /// are older than a day; but not those of ours that are gone on with.
    private func removeOldUploads() async {
        for record in provider.journal.old(at: provider.resources.clock.now()) {
            await provider.parts.giveUp(record)
        }
        let awaited = provider.journal.names
        let folder = UploadFolder.path
        let body =
            "<propfind xmlns=\"DAV:\"><prop><resourcetype/><getlastmodified/></prop></propfind>"
        guard
            let found = try? await provider.resources.propfind(
                folder, isFolder: true, depth: "1", body: body)
        else { return }
        let yesterday = provider.resources.clock.now().advanced(by: .seconds(-86_400))
        for (path, resource) in found where path.count == folder.count + 1 && !resource.isCollection
        {
            let time = resource.lastModified.flatMap { HTTPDate.timestamp($0) }
            let name = path[folder.count].bytes
            let isOurs =
                name.starts(with: Array("\(provider.owner)-".utf8))
                && !name.starts(with: Array("\(provider.session)-".utf8))
            guard isOurs || time.map({ $0 < yesterday }) == true,
                !awaited.contains(path[folder.count].display)
            else { continue }
            _ = try? await client.exchange(.DELETE, provider.location.url(path))
        }
    }

    private func note(_ found: ServerTraits) {
        var traits = found
        // What was written with escapes is there still.
        if let before = provider.remembered?.escapes {
            traits.escapes = before.union(traits.escapes ?? [])
        }
        traits.owner = provider.owner
        provider.resources.take(traits)
        if !traits.isGuess { provider.traitsFile.write(traits) }
        for sentence in traits.shortcomings {
            provider.resources.logger.info(
                "what the server lacks", metadata: ["lack": "\(sentence)"])
        }
    }
}

/// When a server that was met is tried once more.
final class LaterTries: Sendable {
    /// A hundred requests, of a server that seems to be back, and has not said yet what it does.
    private static let pause = Duration.seconds(600)

    /// Uptime.
    private let last = Mutex<Duration?>(nil)

    /// `known`: how it called itself, and what it does.
    func isDue(for known: (subject: String?, traits: ServerTraits?), _ provider: WebDAVProvider)
        -> Bool
    {
        guard let traits = known.traits else { return known.subject == nil }
        guard traits.isUnclear, provider.mayProbe else { return false }
        let now = provider.resources.clock.uptime()
        return last.withLock { last in
            if let before = last, now - before < LaterTries.pause { return false }
            last = now
            return true
        }
    }
}
