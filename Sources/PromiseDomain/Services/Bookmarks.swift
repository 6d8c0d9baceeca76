import Glibc
package import PromiseAccess
package import PromiseCore
import PromiseFilesystem
import PromiseIndex
package import PromiseKeyValue
import PromiseSystem
import Synchronization

/// What a bookmark leads to.
package struct BookmarkStanding: Sendable {
    package var bookmark: Bookmark
    /// Nil when it cannot be resolved.
    package var node: NodeID?
    package var path: [FileName]?
    /// It does not say what is now, or leads nowhere.
    package var isStale: Bool
    package var reason: String?
}

/// Bookmarks: sealed by a key of the state folder, so that they are of use on this machine, in this
/// domain and to their application alone.
///
/// **Threads.** One thread of its own reads the key; `seal` is a leaf.
package final class Bookmarks: Sendable {
    private let tree: DomainTree
    private let search: ItemSearch
    private let containers: Containers
    private let door: AccessDoor
    private let keyFile: [UInt8]
    private let pool = BlockingPool(name: "bookmarks", threads: 1)
    private let known = Mutex<BookmarkSeal?>(nil)

    init(
        tree: DomainTree, search: ItemSearch, containers: Containers, door: AccessDoor,
        keyFile: [UInt8]
    ) {
        self.tree = tree
        self.search = search
        self.containers = containers
        self.door = door
        self.keyFile = keyFile
    }

    func stop() { pool.stop() }

    /// An application may note what is in its container.
    package func create(
        _ node: NodeID, for application: String?, isReadOnly: Bool, attributes: [Key: JSON],
        by principal: Principal
    ) async throws(Failure) -> String {
        let application = try named(application, principal)
        try door.admit(principal, to: "bookmarks.create", of: application, isChange: true)
        let (key, entry, _) = try tree.key(of: node)
        if let application, !principal.isOwner {
            let own = try await containers.container(of: application, by: principal)
            guard let path = own.path, key.path.starts(with: path) else {
                throw Failure(.refused, "this application was not given that item")
            }
        }
        let bookmark = Bookmark(
            key: key, entry: entry.id, isReadOnly: isReadOnly, attributes: attributes)
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
            throw Failure(
                .refused,
                "this is no bookmark that '\(tree.domainName)' has given to \(application ?? "its owner")"
            )
        }
        let finding = try await tree.find(bookmark.key, bound: bookmark.entry, search)
        guard finding.fate == .found, let entry = finding.entry else {
            return BookmarkStanding(
                bookmark: bookmark, node: nil, path: nil, isStale: true,
                reason: finding.fate.reason)
        }
        let reason = bookmark.staleness(try tree.key(of: entry.node).key)
        return BookmarkStanding(
            bookmark: bookmark, node: entry.node, path: finding.path, isStale: reason != nil,
            reason: reason)
    }

    /// The same bookmark of the item as it is now.
    package func renewed(
        _ standing: BookmarkStanding, for application: String?, attributes: [Key: JSON],
        by principal: Principal
    ) async throws(Failure) -> String? {
        guard standing.isStale, let node = standing.node else { return nil }
        let (key, entry, _) = try tree.key(of: node)
        var bookmark = standing.bookmark
        (bookmark.key, bookmark.entry, bookmark.attributes) = (key, entry.id, attributes)
        return try await sealed(bookmark, for: try named(application, principal))
    }

    /// An application has a name of its own, whatever it says.
    private func named(
        _ application: String?, _ principal: Principal
    ) throws(Failure) -> String? {
        if case .application(let own) = principal { return application ?? own }
        if let application, application.utf8.count > ValueFiles.nameByteCountMax {
            throw Failure.noApplication(application)
        }
        return application
    }

    private func sealed(
        _ bookmark: Bookmark, for application: String?
    ) async throws(Failure) -> String {
        guard let text = try await seal().seal(bookmark, for: application),
            text.utf8.count <= BookmarkSeal.textByteCountMax
        else { throw Failure(.tooLarge, "a bookmark cannot carry so much") }
        return text
    }

    /// The key is made when the first bookmark is.
    private func seal() async throws(Failure) -> BookmarkSeal {
        if let seal = known.withLock({ $0 }) { return seal }
        return try await pool.run { () throws(Failure) in
            if let seal = self.known.withLock({ $0 }) { return seal }
            let seal = try Self.readKey(self.keyFile)
            self.known.withLock { $0 = seal }
            return seal
        }
    }

    private static func readKey(_ path: [UInt8]) throws(Failure) -> BookmarkSeal {
        do throws(SystemError) {
            _ = try FileStatus.of(path, label: "bookmarks.status")
        } catch {
            guard error.errno == ENOENT else { throw Failure(error) }
            try replaceStateFile(path, by: BookmarkSeal.freshKey())
        }
        guard let bytes = readSmallFile(path), let seal = BookmarkSeal(key: bytes) else {
            throw Failure(
                .corrupted,
                "'\(escapedForDisplay(path))' is no key: restore it, or remove it to begin anew without the bookmarks there are"
            )
        }
        return seal
    }
}
