package import PromiseAccess
package import PromiseCore
import PromiseFilesystem
import PromiseIndex
package import PromiseKeyValue
import PromiseSystem

/// What a bookmark leads to.
package struct BookmarkStanding: Sendable {
    package var bookmark: Bookmark
    /// Nil when it cannot be resolved.
    package var item: NamedItem?
    package var path: [FileName]?
    /// It does not say what is now, or leads nowhere.
    package var isStale: Bool
    package var reason: String?
    /// The access that resolving it has started, where an application did.
    package var scope: GrantStanding?
}

/// Bookmarks: sealed by a key of the state folder, so that they are of use on this machine, in this
/// domain and to their application alone.
///
/// **Threads.** One thread of its own reads the key.
package final class Bookmarks: Sendable {
    private let tree: DomainTree
    private let search: ItemSearch
    private let names: PersistentNames
    private let notes: MoveNotes
    private let grants: Grants
    private let door: AccessDoor
    private let key: StateKey
    private let pool = BlockingPool(name: "bookmarks", threads: 1)

    init(
        tree: DomainTree, search: ItemSearch, notes: MoveNotes, grants: Grants, door: AccessDoor,
        key: StateKey
    ) {
        self.tree = tree
        self.search = search
        names = PersistentNames(tree: tree, search: search)
        self.notes = notes
        self.grants = grants
        self.door = door
        self.key = key
    }

    func stop() { pool.stop() }

    /// An application may note what it was given: with as many rights as it has, or fewer.
    package func create(
        _ item: NamedItem, for application: String?, isReadOnly: Bool, attributes: [Key: JSON],
        by principal: Principal
    ) async throws(Failure) -> String {
        let application = try named(application, principal)
        try door.admit(principal, to: "bookmarks.create", of: application, isChange: true)
        if item.node == .root {
            throw Failure(.invalid, "the root of a domain needs no bookmark: the domain's name finds it")
        }
        let (key, entry, _) = try tree.noted(item)
        var grant: GrantID?
        if let application {
            grant = try await grants.back(
                item, for: application, isReadOnly ? .read : .readWrite, by: principal)
        }
        let bookmark = Bookmark(
            key: key, entry: entry.id, isReadOnly: isReadOnly, attributes: attributes,
            grant: grant, persistent: await names.name(of: entry))
        return try await sealed(bookmark, for: application)
    }

    /// Asks the provider for what is not known here. Refused when it is not of this domain and
    /// application.
    package func resolve(
        _ text: String, for application: String?, by principal: Principal
    ) async throws(Failure) -> BookmarkStanding {
        let application = try named(application, principal)
        try door.admit(principal, to: "bookmarks.resolve", of: application)
        guard let bookmark = try await seal().open(text, for: application) else {
            throw door.refusal(
                principal, "bookmarks.resolve",
                "this is no bookmark that '\(tree.domainName)' has given to \(application ?? "its owner")",
                of: application)
        }
        var finding = try await tree.find(bookmark.key, bound: bookmark.entry, search, notes)
        if !principal.isOwner { finding = try withoutNotes(finding, bookmark) }
        if finding.fate != .found { finding = try await names.find(bookmark) ?? finding }
        guard finding.fate == .found, let entry = finding.entry else {
            return BookmarkStanding(
                bookmark: bookmark, item: nil, path: nil, isStale: true,
                reason: finding.fate.reason)
        }
        let reason = try renamed(bookmark, entry).staleness(try tree.key(of: NamedItem(entry)).key)
        var standing = BookmarkStanding(
            bookmark: bookmark, item: NamedItem(entry), path: finding.path, isStale: reason != nil,
            reason: reason)
        if !principal.isOwner {
            standing.scope = try await grants.start(bookmark.grant, NamedItem(entry), by: principal)
        }
        return standing
    }

    /// An application gets a right to what is found: no note at the storage gives it one.
    private func withoutNotes(
        _ finding: ItemFinder.Finding, _ bookmark: Bookmark
    ) throws(Failure) -> ItemFinder.Finding {
        let known = try tree.look(
            for: bookmark.key, bound: bookmark.entry, believesNotes: false)
        return known.entry?.id == finding.entry?.id ? finding : known
    }

    /// What the item was called at a storage where the domain was before, is no news.
    private func renamed(_ bookmark: Bookmark, _ entry: Entry) throws(Failure) -> Bookmark {
        guard let known = bookmark.key.identifier else { return bookmark }
        let isNoNews = try tree.index.read { transaction throws(Failure) in
            try ItemFinder.isSuccessor(entry, of: known, transaction)
        }
        var bookmark = bookmark
        if isNoNews { bookmark.key.identifier = entry.identifier }
        return bookmark
    }

    /// The same bookmark of the item as it is now.
    package func renewed(
        _ standing: BookmarkStanding, for application: String?, attributes: [Key: JSON],
        by principal: Principal
    ) async throws(Failure) -> String? {
        guard standing.isStale, let item = standing.item else { return nil }
        let (key, entry, _) = try tree.noted(item)
        var bookmark = standing.bookmark
        (bookmark.key, bookmark.entry, bookmark.attributes) = (key, entry.id, attributes)
        bookmark.persistent = await names.name(of: entry) ?? bookmark.persistent
        return try await sealed(bookmark, for: try named(application, principal))
    }

    /// An application has a name of its own, whatever it says.
    private func named(
        _ application: String?, _ principal: Principal
    ) throws(Failure) -> String? {
        if case .application(let own, _) = principal { return application ?? own }
        return try application.map { text throws(Failure) in try Key.application(text).text }
    }

    private func sealed(
        _ bookmark: Bookmark, for application: String?
    ) async throws(Failure) -> String {
        guard let text = try await seal().seal(bookmark, for: application),
            text.utf8.count <= BookmarkSeal.textByteCountMax
        else { throw Failure(.tooLarge, "a bookmark cannot carry so much") }
        return text
    }

    private func seal() async throws(Failure) -> BookmarkSeal {
        let bytes: [UInt8]
        if let known = key.bytes {
            bytes = known
        } else {
            bytes = try await pool.run { [key] () throws(Failure) in try key.read() }
        }
        guard let seal = BookmarkSeal(key: bytes) else {
            throw Failure(.corrupted, "the key of the state folder has a wrong size")
        }
        return seal
    }
}
