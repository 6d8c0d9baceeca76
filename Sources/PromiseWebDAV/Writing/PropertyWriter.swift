import AsyncHTTPClient
import Logging
import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider

/// What is kept with a resource as dead properties (PROPPATCH; RFC 4918, section 9.2): modes,
/// owners, times and links, and that a folder holds such things.
///
/// To look for it costs some servers more than all else that they tell in a listing, Apache four
/// times as much. So a folder that does not say that it holds such a thing is first listed without
/// it. That is a hint: another program may have moved something there, which the next listing
/// shows, as those after the first one ask for everything.
struct PropertyWriter: Sendable {
    let resources: WebDAVResources
    let items: WebDAVItems
    let locks: WriteLocks
    private var listed: ListedFolders { resources.listed }
    private var client: WebDAVClient { resources.client }
    private var location: WebDAVLocation { resources.location }
    private var traits: ServerTraits { resources.traits }

    /// Called before something is kept with what is in a folder: the folder says so from then on,
    /// and those above say it of it. Where the server does not let it say so, modes and times come
    /// later to others, and no more.
    func noteKeeping(in folder: [FileName]) async {
        // Nobody lists what is hidden.
        if folder.first == ReservedName.folder || listed.keeps(folder) { return }
        await resources.turns.take("keeps") { () async in
            for count in 0...folder.count {
                let path = Array(folder.prefix(count))
                if listed.keeps(path) { continue }
                do throws(ProviderError) {
                    if try await resources.resource(at: path, isFolder: true).keeps { continue }
                    try await store(nil, at: path, isFolder: true, keeps: true, token: nil)
                } catch {
                    resources.logger.debug(
                        "a folder does not say what it holds",
                        metadata: ["reason": "\(error.message)"])
                }
                // Not tried again for each file.
                listed.note(keeps: true, in: path)
            }
        }
    }

    func keep(
        _ metadata: Metadata?, _ target: [UInt8]?, with written: ResourceStatus,
        at path: [FileName], token: String?
    ) async throws(ProviderError) -> ResourceStatus {
        guard traits.keepsProperties else { return written }
        var written = written
        var sized = written
        // Its size is not what is kept.
        if sized.contentLength == nil { sized.contentLength = 0 }
        let now = try items.item(sized, path: path, parent: nil)
        let state = KeptState(
            metadata: metadata ?? now.metadata, target: target, version: now.version.rawValue)
        try await store(state, at: path, token: token)
        written.keptState = state.text
        return written
    }

    // MARK: Storing

    /// Nothing happens on a server that keeps no properties.
    func store(_ changes: ItemChanges, at path: [FileName]) async throws(ProviderError) {
        guard traits.keepsProperties, changes.metadata != nil else { return }
        let now = try await client.completed(
            try await resources.resource(at: path), location.url(path))
        let item = try items.item(now, path: path, parent: nil)
        guard let metadata = changes.metadata(over: item.metadata) else { return }
        let state = KeptState(
            metadata: metadata, target: item.target, version: item.version.rawValue)
        await noteKeeping(in: path.dropLast())
        try await store(state, at: path, isFolder: now.isCollection, token: nil)
    }

    /// `keeps`: of a folder, that something may be kept with what is in it. Nil leaves what is
    /// there.
    func store(
        _ state: KeptState?, at path: [FileName], isFolder: Bool = false, keeps: Bool = false,
        token: String?
    ) async throws(ProviderError) {
        let space = MultiStatusParser.ownSpace
        let properties =
            (state.map { "<state xmlns=\"\(space)\">\($0.text)</state>" } ?? "")
            + (keeps ? "<keeps xmlns=\"\(space)\">1</keeps>" : "")
        let body =
            "<propertyupdate xmlns=\"DAV:\"><set><prop>\(properties)</prop></set></propertyupdate>"
        let url = location.url(path, isFolder: isFolder)
        var headers: HTTPHeaders = ["Content-Type": "application/xml; charset=utf-8"]
        if let token { headers.add(name: "If", value: WriteTurn.condition(url, token)) }
        let reply = try await locks.exchangeBeyondStaleLocks(
            .PROPPATCH, path, isFolder: isFolder, headers, body: RequestBody(body))
        let what = "the mode and time of \(resources.shown(path)) cannot be stored"
        guard reply.isSuccess else {
            throw ProviderError(
                status: WriteTurn.status(of: reply, isLocked: token != nil),
                retryAfter: reply.header("Retry-After"), what)
        }
        guard reply.status == 207 else { return }
        guard let rows = await resources.parsed(reply.body) else {
            throw ProviderError(.retry, "\(what): the server's answer is not whole")
        }
        let statuses = rows.flatMap { Array($0.refusals) + ($0.status.map { [$0] } ?? []) }
        if let worst = statuses.max(), worst >= 300 { throw ProviderError(status: worst, what) }
    }
}
