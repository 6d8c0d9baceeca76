package import PromiseCore

/// Code that speaks for a storage. Every call may take as long as a network does and may be cancelled; none is made from
/// a thread that serves the mount. Calls run concurrently; a provider orders what it must.
///
/// **Versions.** A write with a base version happens only if the provider still has that version, else it throws
/// `.conflict` and leaves both versions as they were. Nothing a provider was not told to overwrite is ever overwritten.
package protocol Provider: Sendable {
    /// As the user named it, without secrets, e.g. `folder:/srv/cloud`.
    var name: String { get }

    var capabilities: Capabilities { get }

    /// What the storage lacks and how that is met, a sentence each, for people. Known after `connect`.
    var limitations: [String] { get }

    /// Where its calls run best; nil: anywhere. Only calls run there, nothing that waits for the index or the disk.
    var executor: (any TaskExecutor)? { get }

    /// Where checks let its requests have trouble; nil: it sends none.
    var faultLine: FaultLine? { get }

    /// Where people set how fast bytes may go to its server and come from it; nil: it has no line that it could slow down.
    var lineLimit: LineLimit? { get }

    /// What PromiseFS itself keeps there; nil without the capability `privateObjects`. Known after `connect`.
    var privateObjects: (any PrivateObjects)? { get }

    /// Links for strangers; nil without the capability `sharingLinks`.
    var sharingLinks: (any SharingLinks)? { get }

    /// What was removed there and can come back; nil without the capability `removedItems`.
    var bin: (any ProviderBin)? { get }

    /// Checks that the storage is there and may be used. Called once at mount, before anything else, and again by
    /// `doctor`. Throws `.permanent` with a sentence when it can never work.
    func connect() async throws(ProviderError)

    /// The same, as far as listings and fetches need it: a mount shows its first folder at once. What else there is to find
    /// out is found before something is written, or after a moment; `limitations` and `capabilities` tell it then.
    func greet() async throws(ProviderError)

    /// Returns when it has answered for the first time since the mount began. What it can do is known then, and that it is the
    /// storage that the mount is of; every call that asks it something waits for the same.
    func answered() async throws(ProviderError)

    /// The last call: the mount has ended in order, and nobody waits for what is under way. Gives back what would keep others
    /// out, and takes some seconds at most.
    func letGo() async

    /// The folder that is shown as the root of the mount.
    func root() async throws(ProviderError) -> Item

    /// The item as it is now; throws `.notFound` when it is gone.
    func item(for reference: ItemReference) async throws(ProviderError) -> Item

    /// What a folder holds, a page at a time; nil starts. Items that appear or go meanwhile may or may not be listed.
    func enumerateItems(in folder: ItemReference, page: PageToken?) async throws(ProviderError) -> ItemPage

    /// All that a folder holds. What has come is handed on while more comes; returned is the rest. Waits for `handOn`.
    func enumerateAllItems(
        in folder: ItemReference, handOn: @escaping @Sendable ([Item]) async -> Void
    ) async throws(ProviderError) -> [Item]

    /// The present end of the change feed. Everything that happens after is in `changes(since:)`.
    func currentAnchor() async throws(ProviderError) -> Anchor

    /// Throws `.anchorExpired` when the anchor is too old; the engine then lists every known folder again.
    func changes(since anchor: Anchor) async throws(ProviderError) -> ChangePage

    /// Returns when there may be changes after the anchor. Only with the capability `changePush`.
    func waitForChanges(since anchor: Anchor) async throws(ProviderError)

    /// Writes the bytes of `range` (nil: all) into the sink, in any order, each once. Throws `.stale` when the provider
    /// no longer has `version`; the sink's bytes are then discarded. Returns only when every byte is in the sink.
    func fetchContents(
        of reference: ItemReference, version: ContentVersion, range: ByteRange?, into sink: any ContentSink
    ) async throws(ProviderError)

    /// Makes an item in a folder. Throws `.conflict` when the name is taken. A file has `contents`, nothing else has.
    func create(_ item: NewItem, in folder: ItemReference, contents: (any ContentSource)?) async throws(ProviderError) -> Item

    /// Changes content, metadata, name and place in that order of importance, together where the store can. A
    /// `baseVersion` must be what the provider has now, else `.conflict`; with `contents` or a new target there is one. What
    /// is returned for a change without them has the base version unless the store knows that nothing came in between.
    func modify(
        _ reference: ItemReference, changes: ItemChanges, contents: (any ContentSource)?, baseVersion: ContentVersion?
    ) async throws(ProviderError) -> Item

    /// Removes a file or link if it still has `baseVersion`, or a folder if it is empty (`.conflict` otherwise). The base
    /// version of a folder tells that it is one, for stores that know an item by its place.
    /// Removing what is gone already is done; a store that knows places only throws `.notFound` where
    /// the folder of a file is gone, too, as others may have moved it.
    func delete(_ reference: ItemReference, baseVersion: ContentVersion?) async throws(ProviderError)

    /// This machine keeps that version's content no longer, so what was held ready for it may go. A courtesy: it may come late
    /// or not at all, and the content may be fetched again at once. Only with the capability `release`.
    func contentsReleased(of reference: ItemReference, version: ContentVersion) async throws(ProviderError)

    /// A picture of an item's version, PNG or JPEG, of at most `size` pixels a side where there is a choice; nil when there is
    /// none of that version.
    func fetchThumbnail(
        of reference: ItemReference, version: ContentVersion, size: Int
    ) async throws(ProviderError) -> [UInt8]?

    /// Keeps a PNG as the picture of an item's version, in the place of any other picture of that item. `.conflict` when it has
    /// another version now. Only with the capability `thumbnails`. Need not last over a power cut: pictures can be made again.
    func saveThumbnail(
        _ picture: [UInt8], of reference: ItemReference, version: ContentVersion
    ) async throws(ProviderError)

    func quota() async throws(ProviderError) -> Quota?

    /// The provider's own page for a picker, as one HTML document; nil when there is none for that mode. It is shown in a
    /// frame that reaches nothing, and says by its `postMessage` which identifier was picked, or that nothing was.
    func pickerPage(mode: String) async throws(ProviderError) -> [UInt8]?

    /// What the storage calls an item for good, also where its identifier changes: at most 1,024 bytes of text; nil: it has
    /// nothing that lasts longer than the identifier. Only with the capability `persistentIdentifiers`.
    func persistentIdentifier(of reference: ItemReference) async throws(ProviderError) -> String?

    /// The other way: which item is called so now; nil when there is none any more.
    func identifier(ofPersistent persistent: String) async throws(ProviderError) -> ItemIdentifier?

    /// What a file was before, as far as the storage has kept it, the newest first, each once, 10,000 at most; not what it is
    /// now. None where it keeps none; none or `.notFound` of what is not there.
    func earlierVersions(of reference: ItemReference) async throws(ProviderError) -> [EarlierVersion]

    /// Writes the bytes of one of these into the sink, as `fetchContents`, and changes nothing. Throws `.notFound` when it is not
    /// kept any more.
    func fetchContents(
        of reference: ItemReference, earlier: EarlierVersion, into sink: any ContentSink
    ) async throws(ProviderError)
}

/// What a file was at another time.
package struct EarlierVersion: Hashable, Sendable {
    /// The storage's own name of it: opaque.
    package var identifier: String
    /// As it was called when it was the current one.
    package var version: ContentVersion
    package var size: UInt64
    package var modificationTime: Timestamp

    package init(identifier: String, version: ContentVersion, size: UInt64, modificationTime: Timestamp) {
        self.identifier = identifier
        self.version = version
        self.size = size
        self.modificationTime = modificationTime
    }
}

extension Provider {
    package func letGo() async {}
    package func answered() async throws(ProviderError) {}
    package func greet() async throws(ProviderError) { try await connect() }
    package func contentsReleased(of reference: ItemReference, version: ContentVersion) async throws(ProviderError) {}
    package func earlierVersions(of reference: ItemReference) async throws(ProviderError) -> [EarlierVersion] { [] }
    package func fetchContents(
        of reference: ItemReference, earlier: EarlierVersion, into sink: any ContentSink
    ) async throws(ProviderError) {
        throw ProviderError(.notFound, "the storage keeps no earlier versions")
    }
    package var limitations: [String] { [] }
    package var executor: (any TaskExecutor)? { nil }
    package var faultLine: FaultLine? { nil }
    package var lineLimit: LineLimit? { nil }
    package var privateObjects: (any PrivateObjects)? { nil }
    package var sharingLinks: (any SharingLinks)? { nil }
    package var bin: (any ProviderBin)? { nil }
    package func fetchThumbnail(
        of reference: ItemReference, version: ContentVersion, size: Int
    ) async throws(ProviderError) -> [UInt8]? { nil }
    package func saveThumbnail(
        _ picture: [UInt8], of reference: ItemReference, version: ContentVersion
    ) async throws(ProviderError) {
        throw ProviderError(.refused, "the storage keeps no thumbnails")
    }
    package func quota() async throws(ProviderError) -> Quota? { nil }
    package func pickerPage(mode: String) async throws(ProviderError) -> [UInt8]? { nil }
    package func persistentIdentifier(
        of reference: ItemReference
    ) async throws(ProviderError) -> String? { nil }
    package func identifier(
        ofPersistent persistent: String
    ) async throws(ProviderError) -> ItemIdentifier? { nil }

    /// Page by page.
    package func enumerateAllItems(
        in folder: ItemReference, handOn: @escaping @Sendable ([Item]) async -> Void
    ) async throws(ProviderError) -> [Item] {
        var page = try await enumerateItems(in: folder, page: nil)
        var turns = PageTurns()
        while let next = page.next {
            try turns.take(next, first: page.items.first?.identifier)
            await handOn(page.items)
            page = try await enumerateItems(in: folder, page: next)
        }
        return page.items
    }
}

/// Ends a listing that does not end by itself: a page that was there before, or more and more without anything on them,
/// or that begin as one before.
package struct PageTurns: Sendable {
    private static let idlePagesMax = 1000
    /// Of a thousand items each, more than any folder has.
    private static let pagesMax = 100_000
    /// Of pages that were: a number of each, as a storage may give them names of any length.
    private var seen: Set<Int> = []
    /// Of what pages began with: a number of it.
    private var beginnings: Set<Int> = []
    private var idleCount = 0

    package init() {}

    /// `first`: what the page begins with that names the next one; nil: it is empty.
    package mutating func take(
        _ next: PageToken, first: (some Hashable)?
    ) throws(ProviderError) {
        let isNew = first.map { beginnings.insert($0.hashValue).inserted } ?? false
        idleCount = isNew ? 0 : idleCount + 1
        if seen.count >= PageTurns.pagesMax {
            throw ProviderError(.permanent, "the listing does not end: it has more than \(PageTurns.pagesMax) pages")
        }
        guard seen.insert(next.hashValue).inserted, idleCount <= PageTurns.idlePagesMax else {
            throw ProviderError(
                .retry, "the listing does not end: the storage names the same pages again, or empty ones only")
        }
    }
}

/// Where fetched bytes go. Methods may be called from any thread, for disjoint ranges at the same time.
package protocol ContentSink: Sendable {
    /// Takes bytes for a place in the file. The bytes are copied before this returns.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(ProviderError)

    /// Takes bytes straight from another file without passing them through memory, where the system can. Returns the
    /// number taken, fewer than `count` only when `descriptor` ends.
    func copy(from descriptor: Int32, at sourceOffset: UInt64, to offset: UInt64, count: UInt64) throws(ProviderError) -> UInt64

    /// Everything that was asked for is in the sink and is of the right version: who waits for it need not wait until the
    /// call has returned. A provider may say so, once, from a thread that may block; a call that returns says it anyway.
    func finish()

    /// Of the whole content at the provider, where the caller knows it, in bytes: not every server says how much it sends.
    var size: UInt64? { get }
}

extension ContentSink {
    package func finish() {}

    package var size: UInt64? { nil }
}

/// One consistent state of a file's content, to be sent.
package protocol ContentSource: Sendable {
    /// In bytes.
    var size: UInt64 { get }

    /// A descriptor open for reading; belongs to the source and lives as long as it.
    var descriptor: Int32 { get }

    /// Throws `.sourceChanged` when the file was written to since the source was made. A provider calls it after the
    /// last byte was read and before it lets the new content take effect.
    func validate() throws(ProviderError)

    /// So much more of it has been read to be sent, for people.
    func noteSent(_ byteCount: UInt64)
}

extension ContentSource {
    package func noteSent(_ byteCount: UInt64) {}
}
