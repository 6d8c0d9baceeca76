import Glibc
package import Logging
import NIOHTTP1
package import PromiseCore
package import PromiseProvider
package import PromiseSystem
import PromiseWire
import Synchronization

/// A third party's process as the cloud: it answers HTTP on a Unix socket as `docs/extension-openapi.yaml` says.
///
/// **Trust.** Nothing it says is believed that cannot be: names that are none, items in two places, folders in themselves, sizes
/// that do not hold. What is wrong with one item leaves the others alone, and every message names the extension. It may end,
/// hang or send for ever: a call then ends within `ExtensionTimeouts`, and a program that was started here is started again.
///
/// **Threads.** Requests are asynchronous; content is read and written on a pool, the program is watched by a thread of its own.
package final class ExtensionProvider: Provider, Sendable {
    struct Shared: Sendable {
        var capabilities: Capabilities?
        var limitations: [String] = []
        var listings = ListingRecord()
        var root: ItemIdentifier?
        /// Of folders that were shown: the folder that holds them.
        var parents: [ItemIdentifier: ItemIdentifier] = [:]
        /// Folders that are shown nowhere, as they would be in more than `depthMax` others.
        var tooDeep: Set<ItemIdentifier> = []
        /// Folders whose items were asked for and that were there. Only what somebody opened, so an extension cannot fill it.
        var listed: Set<ItemIdentifier> = []
        /// It said once that it had made something else than it was told to.
        var isCreationDoubtful = false
    }

    /// What an extension may declare; the rest is for providers that are part of this program.
    private static let allowed: Capabilities = [
        .stableIdentifiers, .atomicRename, .conditionalWrite, .changeFeed, .changePush, .ranges, .metadata, .quota, .links,
        .thumbnails, .placeIdentifiers, .pickerPages, .privateObjects, .persistentIdentifiers, .release,
        .sharingLinks, .versions, .removedItems,
    ]
    /// What is told by identifiers, which items of places do not have.
    private static let needsIdentifiers: Capabilities = [
        .stableIdentifiers, .changeFeed, .changePush, .persistentIdentifiers,
    ]

    package let name: String
    let client: ExtensionClient
    let clock: any TimeSource
    let logger: Logger
    let pool: BlockingPool
    let shared = Mutex(Shared())
    private let process: ExtensionProcess?
    /// Made here, for the socket, and removed with it.
    private let temporaryFolder: [UInt8]?

    /// Starts the program, if it is one; waits for nothing. `stateFolder` (nil: a temporary one) holds its socket.
    package init(
        location: ExtensionLocation, credentials: CredentialSource, stateFolder: [UInt8]?, logger: Logger,
        timeouts: ExtensionTimeouts = ExtensionTimeouts(), limits: ExtensionLife.Limits = ExtensionLife.Limits(),
        clock: any TimeSource = SystemClock()
    ) throws(ProviderError) {
        name = location.name
        (self.logger, self.clock) = (logger, clock)
        let socket: [UInt8]
        switch location.form {
        case .socket(let path):
            socket = Array(path.utf8)
            (process, temporaryFolder) = (nil, nil)
        case .program(let path, let arguments):
            let place = try ExtensionProvider.socketPlace(stateFolder)
            socket = place.folder + Array("/socket".utf8)
            temporaryFolder = place.isTemporary ? place.folder : nil
            let program = ServingProgram(
                program: path, arguments: arguments, socket: socket, shortName: location.shortName)
            process = try ExtensionProcess(program, limits: limits, logger: logger, clock: clock)
        }
        client = ExtensionClient(
            socket: socket, shortName: location.shortName, credentials: credentials, process: process, timeouts: timeouts,
            clock: clock)
        pool = BlockingPool(name: "extension", threads: 4)
    }

    deinit {
        process?.stop()
        pool.stop()
        guard let temporaryFolder else { return }
        try? unlink(temporaryFolder + Array("/socket".utf8), label: "extension.socket.remove")
        try? unlink(temporaryFolder + Array("/socket.session".utf8), label: "extension.session.forget")
        try? unlink(temporaryFolder, isFolder: true, label: "extension.folder.remove")
    }

    /// A folder of ours alone whose path leaves room for the name of a socket (sun_path, unix(7)).
    private static func socketPlace(_ stateFolder: [UInt8]?) throws(ProviderError) -> (folder: [UInt8], isTemporary: Bool) {
        if let folder = stateFolder.map({ $0 + Array("/extension".utf8) }), folder.count <= ControlSocket.pathByteCountMax - 7 {
            do throws(SystemError) {
                try makeFolders(folder, mode: 0o700, label: "extension.folder")
            } catch {
                throw ProviderError(.permanent, "there is no folder for the extension's socket: \(error.reason)")
            }
            return (folder, false)
        }
        var template = Array("/tmp/promisefs-extension-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw ProviderError(.permanent, "there is no folder for the extension's socket: \(String(cString: strerror(errno)))")
        }
        return (template.dropLast().map { UInt8(bitPattern: $0) }, true)
    }

    package var capabilities: Capabilities { shared.withLock { $0.capabilities } ?? [] }
    package var limitations: [String] { shared.withLock { $0.limitations } }
    package var faultLine: FaultLine? { client.faultLine }

    package func connect() async throws(ProviderError) {
        let document = try await client.exchange(.GET, "capabilities", as: ExtensionCapabilitiesDocument.self)
        var capabilities: Capabilities = []
        for (capability, name) in Capabilities.names where document.capabilities.contains(name) {
            guard ExtensionProvider.allowed.contains(capability) else {
                throw client.lie("declares '\(name)', which is not for extensions")
            }
            capabilities.insert(capability)
        }
        if capabilities.contains(.changePush) && !capabilities.contains(.changeFeed) {
            throw client.lie("declares change-push without change-feed")
        }
        if capabilities.contains(.placeIdentifiers), let other = capabilities.intersection(Self.needsIdentifiers).nameList.first {
            throw client.lie("declares \(other) with place-identifiers")
        }
        let found = capabilities
        let limitations = (document.limitations ?? []).prefix(20).map { escapedForDisplay(Array($0.utf8.prefix(300))) }
        _ = try await rootItem()
        shared.withLock { shared in
            shared.capabilities = found
            shared.limitations = limitations
        }
    }

    /// An extension that was away when the mount began is asked what it can do when it is back.
    package func root() async throws(ProviderError) -> Item {
        let item = try await rootItem()
        if shared.withLock({ $0.capabilities == nil }) { try await connect() }
        return item
    }

    private func rootItem() async throws(ProviderError) -> Item {
        let document = try await client.exchange(.GET, "root", as: ExtensionItemDocument.self)
        let item = try root(document)
        guard item.kind == .folder else { throw client.lie("has a root that is no folder") }
        shared.withLock { $0.root = item.identifier }
        return item
    }

    package func item(for reference: ItemReference) async throws(ProviderError) -> Item {
        let document = try await client.exchange(.GET, path(reference), as: ExtensionItemDocument.self)
        return try item(document, of: reference)
    }

    package func quota() async throws(ProviderError) -> Quota? {
        guard capabilities.contains(.quota) else { return nil }
        let document = try await client.exchange(.GET, "quota", as: ExtensionQuotaDocument.self)
        return Quota(total: document.total, available: min(document.available, document.total))
    }

    package func contentsReleased(
        of reference: ItemReference, version: ContentVersion
    ) async throws(ProviderError) {
        let query = "version=\(PercentText.encoded(version.rawValue))"
        try await client.send(.POST, "\(path(reference))/release?\(query)")
    }

    // MARK: Thumbnails

    package func fetchThumbnail(
        of reference: ItemReference, version: ContentVersion, size: Int
    ) async throws(ProviderError) -> [UInt8]? {
        guard capabilities.contains(.thumbnails) else { return nil }
        do throws(ProviderError) {
            return try await client.bytes("\(thumbnailPath(reference, version))&size=\(size)")
        } catch where error.code == .notFound || error.code == .stale {
            return nil
        }
    }

    package func saveThumbnail(
        _ picture: [UInt8], of reference: ItemReference, version: ContentVersion
    ) async throws(ProviderError) {
        try await client.send(.PUT, thumbnailPath(reference, version), bytes: picture)
    }

    private func thumbnailPath(_ reference: ItemReference, _ version: ContentVersion) -> String {
        "\(path(reference))/thumbnail?version=\(PercentText.encoded(version.rawValue))"
    }

    // MARK: Changes

    /// Shorter than any time without a byte after which a call is given up.
    private static let waitSeconds = 10
    /// Between two calls that wait for changes: one that ignores `wait` answers at once.
    private static let waitMin = Duration.seconds(1)

    package func currentAnchor() async throws(ProviderError) -> Anchor {
        guard capabilities.contains(.changeFeed) else { return Anchor(rawValue: "look") }
        let document = try await client.exchange(.GET, "anchor", as: ExtensionAnchorDocument.self)
        return try anchor(document.anchor)
    }

    package func changes(since anchor: Anchor) async throws(ProviderError) -> ChangePage {
        // Without a feed every folder that was listed is looked at again.
        guard capabilities.contains(.changeFeed) else {
            return ChangePage(foldersToList: shared.withLock { $0.listed }, isGuess: true, anchor: anchor)
        }
        let document = try await changesDocument(since: anchor, wait: 0)
        var page = ChangePage(anchor: try self.anchor(document.anchor))
        for described in document.updated ?? [] {
            if let item = try await acceptable(described) { page.updated.append(item) }
        }
        page.deleted = (document.deleted ?? []).filter { ItemReading.isPlain($0) }.map { ItemIdentifier($0) }
        page.foldersToList = Set((document.folders ?? []).filter { ItemReading.isPlain($0) }.map { ItemIdentifier($0) })
        if document.unreadableCount > 0 {
            warn(client.lie(ItemReading.unreadable(document.unreadableCount)))
            page.foldersToList.formUnion(shared.withLock { $0.listed })
        }
        return page
    }

    package func waitForChanges(since anchor: Anchor) async throws(ProviderError) {
        while true {
            let begun = clock.uptime()
            let document = try await changesDocument(since: anchor, wait: ExtensionProvider.waitSeconds)
            if document.anchor != anchor.rawValue { return }
            let rest = ExtensionProvider.waitMin - (clock.uptime() - begun)
            if rest > .zero { try? await Task.sleep(for: rest) }
            if Task.isCancelled { throw ProviderError(.cancelled, "the call was cancelled") }
        }
    }

    private func changesDocument(since anchor: Anchor, wait: Int) async throws(ProviderError) -> ExtensionChangesDocument {
        let query = "since=\(PercentText.encoded(anchor.rawValue))&wait=\(wait)"
        return try await client.exchange(.GET, "changes?\(query)", as: ExtensionChangesDocument.self)
    }

    private func anchor(_ text: String) throws(ProviderError) -> Anchor {
        guard ItemReading.isPlain(text) else { throw client.lie("gives an anchor that is empty or over 1024 bytes") }
        return Anchor(rawValue: text)
    }

    // MARK: Believing

    func believed<Value>(_ body: () throws(ItemReading.Nonsense) -> Value) throws(ProviderError) -> Value {
        do throws(ItemReading.Nonsense) { return try body() } catch { throw client.lie(error.sentence) }
    }

    /// Nil, and a warning, for what cannot be. Throws what only keeps from finding out: the changes are then asked for again.
    private func acceptable(_ document: ExtensionItemDocument) async throws(ProviderError) -> Item? {
        do throws(ProviderError) {
            let item = try self.item(document)
            try await checkPlace(of: item)
            return item
        } catch where error.isPassing {
            throw error
        } catch {
            warn(error)
            return nil
        }
    }

    func warn(_ problem: ProviderError) {
        logger.warning("an extension said what cannot be", metadata: ["reason": "\(problem.message)"])
    }
}
