import Glibc
import PromiseCore
import PromiseProvider
import PromiseSystem
import Synchronization

/// The names that are not in their plain form, by folder as `FolderProvider.text(of:at:)` gives it,
/// of those that were looked at.
struct CaseTwins: Sendable {
    private static let folderCountMax = 4096
    private var folders: [String: [FileName: [UInt8]]] = [:]

    func twins(in folder: String) -> [FileName: [UInt8]]? { folders[folder] }

    mutating func look(_ folder: String, _ twins: [FileName: [UInt8]]) {
        if folders.count >= CaseTwins.folderCountMax { folders.removeAll() }
        folders[folder] = twins
    }

    /// `stored` is nil for the plain form.
    mutating func learn(_ name: FileName, in folder: String, _ stored: [UInt8]?) {
        folders[folder]?[name] = stored
    }
}

/// Names as the file system has them, where it does not take every name: `StoredName` with what
/// `FolderProbe` found out. Where upper and lower case are one, the second of two names that differ
/// in nothing else has another form than the first, and which of two is which only the folder
/// itself can tell.
final class FolderNames: Sendable {
    private let root: FolderRoot
    /// Only where upper and lower case are one.
    private let caseTwins = Mutex(CaseTwins())

    init(root: FolderRoot) { self.root = root }

    private var escapes: NameEscapes? { root.knownFacts?.traits.escapes }

    /// As the file system has it.
    func stored(_ name: FileName) -> [UInt8] {
        guard let escapes else { return name.bytes }
        return StoredName.encoded(name.bytes, escapes)
    }

    /// nil for a name that is no item's. `.` stays what it is.
    func shown(_ stored: [UInt8]) -> FileName? {
        guard let escapes, stored != [0x2E] else { return FileName(trusted: stored) }
        return StoredName.decoded(stored, escapes)
    }

    /// Where a link leads to. What is no UTF-8 in it is escaped as in the names of the file system.
    func stored(target: [UInt8]) -> [UInt8] {
        if escapes == nil { return target }
        return FolderNames.parts(of: target) { StoredName.encoded($0) }
    }

    func shown(target: [UInt8]) -> [UInt8] {
        if escapes == nil { return target }
        return FolderNames.parts(of: target) { StoredName.decoded($0)?.bytes ?? $0 }
    }

    private static func parts(of target: [UInt8], _ body: ([UInt8]) -> [UInt8]) -> [UInt8] {
        let slash = UInt8(ascii: "/")
        let parts = target.split(separator: slash, omittingEmptySubsequences: false).map {
            body(Array($0))
        }
        return Array(parts.joined(separator: [slash]))
    }

    // MARK: Upper and lower case

    /// As the file system has it in that folder, `text` being the folder's as
    /// `FolderLocator.text(of:at:)` gives it.
    func stored(_ name: FileName, in folder: OpenFolder, _ text: String) throws(SystemError)
        -> [UInt8]
    {
        guard root.ignoresCase else { return stored(name) }
        if let known = caseTwins.withLock({ $0.twins(in: text) }) {
            return known[name] ?? stored(name)
        }
        return try lookForTwins(in: folder, text).twins[name] ?? stored(name)
    }

    /// All names in the folder, and those that are not in their plain form.
    @discardableResult
    func lookForTwins(
        in folder: OpenFolder, _ text: String
    ) throws(SystemError) -> (names: [[UInt8]], twins: [FileName: [UInt8]]) {
        let names = try listFolder(try folder.openForReading(), label: "folder.twins.list").map(
            \.name)
        var twins: [FileName: [UInt8]] = [:]
        for name in names {
            guard let shown = shown(name), stored(shown) != name else { continue }
            twins[shown] = name
        }
        // Whoever made the plain one did not know of the other, which is not shown then.
        for name in names where !twins.isEmpty {
            if let shown = shown(name), stored(shown) == name { twins[shown] = nil }
        }
        caseTwins.withLock { [twins] in $0.look(text, twins) }
        return (names, twins)
    }

    /// The form that a new name takes; `.conflict` when the name is taken.
    func freeForm(of name: FileName, in folder: LocatedFolder) throws(ProviderError) -> [UInt8] {
        let plain = stored(name)
        let form = try mapped("'\(name.display)' cannot be looked at") {
            () throws(SystemError) -> [UInt8]? in
            do throws(SystemError) {
                _ = try FileStatus.of(plain, in: folder.folder.number, label: "folder.free.status")
            } catch {
                if error.errno == ENOENT { return plain }
                throw error
            }
            guard root.facts.traits.ignoresCase else { return nil }
            let (names, twins) = try lookForTwins(in: folder.folder, folder.text)
            let twin = StoredName.caseTwin(of: name.bytes, root.facts.traits.escapes ?? [])
            return twins[name] != nil || names.contains(plain) || names.contains(twin) ? nil : twin
        }
        guard let form else {
            throw ProviderError(.conflict, "'\(name.display)' is taken in the folder")
        }
        return form
    }

    /// A name came there in that form.
    func learnForm(_ form: [UInt8], of name: FileName, in folder: String) {
        guard root.facts.traits.ignoresCase else { return }
        let isPlain = form == stored(name)
        caseTwins.withLock { $0.learn(name, in: folder, isPlain ? nil : form) }
    }
}
