import Glibc
import PromiseCore
public import PromiseKit
import PromiseWire
import Synchronization

/// Lists of the domains that are mounted, by their daemons: no content is fetched by looking.
public final class MountedData: PickerData {
    private let mounts: [MountEntry]
    private let application: String?
    private let clients: Mutex<[String: PromiseClient]> = Mutex([:])
    /// When a domain's daemon said nothing last.
    private let silences: Mutex<[String: ContinuousClock.Instant]> = Mutex([:])

    /// `application`: whose containers are shown though they are not public.
    public init(_ mounts: [MountEntry], application: String?) {
        self.mounts = mounts
        self.application = application
    }

    public func mount(of domain: String) throws(PromiseError) -> MountEntry {
        guard let mount = mounts.first(where: { $0.domain == domain }) else {
            throw PromiseError(.notPromiseFS, "no domain '\(domain)' is mounted", exitStatus: 3)
        }
        return mount
    }

    public func client(of domain: String) throws(PromiseError) -> PromiseClient {
        if let known = clients.withLock({ $0[domain] }) { return known }
        let client = try PromiseClient(mount: try mount(of: domain))
        clients.withLock { $0[domain] = client }
        return client
    }

    /// Where the mount shows it.
    public func absolutePath(of path: [UInt8], in domain: String) throws(PromiseError) -> [UInt8] {
        guard let absolute = Location.absolutePath(of: path, on: try mount(of: domain)) else {
            throw PromiseError(.local, "the mount of '\(domain)' does not show that", exitStatus: 1)
        }
        return absolute
    }

    /// The same, for what an application may change meanwhile.
    func place(of path: [UInt8], in domain: String) throws(PromiseError) -> MountPlace {
        MountPlace(try absolutePath(of: path, in: domain), on: try mount(of: domain))
    }

    /// Where a dialog that knows nothing of domains begins.
    public var firstMountPoint: [UInt8] { mounts.first?.mountPoint ?? [0x2F] }

    // MARK: Places

    public func places() async -> [PickerPlace] {
        var result = [PickerPlace(.recent, title: "Recent")]
        let parts = await withTaskGroup(of: (Int, [PickerPlace]).self) { group in
            for (index, mount) in mounts.enumerated() {
                group.addTask { (index, await self.places(of: mount)) }
            }
            var parts: [(Int, [PickerPlace])] = []
            for await part in group { parts.append(part) }
            return parts.sorted { $0.0 < $1.0 }.map(\.1)
        }
        result += parts.compactMap(\.first)
        result += parts.flatMap { $0.dropFirst() }
        return result
    }

    /// One whose daemon says nothing holds up no other.
    private func places(of mount: MountEntry) async -> [PickerPlace] {
        if let places = await Patience.answer(of: { await self.toldPlaces(of: mount) }) { return places }
        silences.withLock { $0[mount.domain] = .now }
        var place = PickerPlace(.domain, title: mount.domain, folder: PickerFolder(domain: mount.domain))
        place.note = "its daemon does not answer"
        return [place]
    }

    /// The domain, and what of it has a name of its own.
    private func toldPlaces(of mount: MountEntry) async -> [PickerPlace] {
        let domain = mount.domain
        var place = PickerPlace(.domain, title: domain, folder: PickerFolder(domain: domain))
        do throws(PromiseError) {
            let known = try await client(of: domain).containers()
            if !known.isReachable { place.note = known.connectionMessage ?? "not reachable" }
            let containers = known.containers.filter {
                $0.isPublic || $0.application == application
            }
            return [place]
                + containers.compactMap { container in
                    guard let bytes = container.pathBytes.flatMap({ PercentCoding.decode($0[...]) })
                    else { return nil }
                    let path = Array(bytes.drop { $0 == 0x2F }) + Array("/Documents".utf8)
                    return PickerPlace(
                        .container, title: container.name, note: domain,
                        folder: PickerFolder(domain: domain, path: path))
                }
        } catch {
            place.note = error.message
            return [place]
        }
    }

    // MARK: Lists

    public func list(_ listing: PickerListing, offset: Int, limit: Int) async throws -> PickerPage {
        switch listing.view {
        case .folder(let folder):
            return try await page(.folder(folder.path), listing, folder.domain, offset, limit)
        case .recent: return try await merged(.recent, listing, offset, limit)
        case .everywhere(let text):
            var wanted = listing
            wanted.filter = text
            return try await merged(.everywhere, wanted, offset, limit)
        }
    }

    /// Whether a list of these types shows it.
    public func admits(_ item: PickerItem, types: [String]) async throws -> Bool {
        var listing = PickerListing(.folder(item.folder))
        // As much of the name as the daemon has for a text.
        listing.filter = String(validating: item.name, as: UTF8.self) ?? ""
        listing.types = types
        listing.showsHidden = true
        var offset = 0
        while true {
            let page = try await list(listing, offset: offset, limit: 500)
            if page.items.contains(where: { $0.path == item.path }) { return true }
            offset += page.items.count
            if page.items.isEmpty || offset >= page.total { return false }
        }
    }

    private func page(
        _ scope: FolderListing.Scope, _ listing: PickerListing, _ domain: String, _ offset: Int,
        _ limit: Int
    ) async throws(PromiseError) -> PickerPage {
        var wanted = FolderListing(scope)
        wanted.key = listing.key
        wanted.isDescending = listing.isDescending
        wanted.text = listing.filter
        wanted.types = listing.types
        wanted.showsHidden = listing.showsHidden
        wanted.foldersOnly = listing.foldersOnly
        let client = try client(of: domain)
        let found: FolderWindowDocument
        do throws(PromiseError) {
            found = try await client.window(of: wanted, offset: offset, limit: limit)
        } catch {
            // Its daemon has ended meanwhile: the next one is asked.
            guard error.kind == .brokenReply else { throw error }
            found = try await client.window(of: wanted, offset: offset, limit: limit)
        }
        return PickerPage(
            total: found.total, items: found.items.compactMap { PickerItem($0, in: domain) },
            reason: found.reason)
    }

    /// Of all domains, one after the other; one that does not answer keeps nobody from the others.
    private func merged(
        _ scope: FolderListing.Scope, _ listing: PickerListing, _ offset: Int, _ limit: Int
    ) async throws -> PickerPage {
        var page = PickerPage(total: 0, items: [])
        for mount in mounts {
            do throws(PromiseError) {
                let start = max(0, offset - page.total)
                let part = try await patiently(
                    scope, listing, mount.domain, start, limit - page.items.count)
                if page.items.count < limit, offset < page.total + part.total {
                    page.items += part.items
                }
                page.total += part.total
                page.reason = page.reason ?? part.reason
            } catch {
                page.reason = "\(mount.domain): \(error.message)"
            }
        }
        return page
    }

    /// One whose daemon says nothing is waited for once, and then left out for a while.
    private func patiently(
        _ scope: FolderListing.Scope, _ listing: PickerListing, _ domain: String, _ offset: Int,
        _ limit: Int
    ) async throws(PromiseError) -> PickerPage {
        let silence = PromiseError(.local, "its daemon does not answer", exitStatus: 4)
        if let last = silences.withLock({ $0[domain] }), .now - last < Patience.rest { throw silence }
        let answer = await Patience.answer { () async -> Result<PickerPage, PromiseError> in
            do throws(PromiseError) {
                return .success(try await self.page(scope, listing, domain, offset, limit))
            } catch {
                return .failure(error)
            }
        }
        // Of a list that nobody wants any more nothing is learnt.
        guard !Task.isCancelled else { throw silence }
        silences.withLock { $0[domain] = answer == nil ? .now : nil }
        guard let answer else { throw silence }
        return try answer.get()
    }

    // MARK: Changes

    public func makeFolder(_ folder: PickerFolder, name: [UInt8]) async throws -> PickerFolder {
        let place = try place(of: folder.path, in: folder.domain)
        try await FileWork.run { try OpenedFolder(place).makeFolder(name) }
        return PickerFolder(domain: folder.domain, path: folder.child(name))
    }

    public func rename(_ item: PickerItem, to name: [UInt8]) async throws {
        let place = try place(of: item.folder.path, in: item.domain)
        let coordinator = FileCoordinator(try client(of: item.domain))
        try await coordinator.coordinate([.writing(item.path, .forMoving)], timeout: .seconds(30)) {
            _ in
            try await FileWork.run { try OpenedFolder(place).rename(item.name, to: name) }
        }
    }
}

extension PickerItem {
    init?(_ found: FoundItemDocument, in domain: String) {
        guard let bytes = PercentCoding.decode(found.pathBytes[...]) else { return nil }
        var tags: [String] = []
        if case .list(let words)? = found.attributes?["kMDItemUserTags"] {
            tags = words.compactMap { if case .text(let word) = $0 { word } else { nil } }
        }
        var type: String?
        if case .text(let text)? = found.attributes?["kMDItemContentType"] { type = text }
        var percent: Double?
        if found.attributes?["NSMetadataUbiquitousItemIsDownloadingKey"] == .truth(true),
            case .real(let part)? = found.attributes?[
                "NSMetadataUbiquitousItemPercentDownloadedKey"]
        {
            percent = part
        }
        self.init(
            domain: domain, path: Array(bytes.drop { $0 == 0x2F }), kind: found.kind,
            size: found.size,
            modificationTime: found.modificationTime, state: found.state, type: type, tags: tags,
            percent: percent)
    }
}
