import PromiseCore
import PromiseHTTP
import PromiseProvider
import Synchronization

/// The folders that were listed, and what the server said of them then: which hold something with
/// which something of ours is kept, which have numbers, and what they gave out. A leaf: nothing
/// else is called under its lock.
final class ListedFolders: Sendable {
    private struct State {
        /// To be listed again when changes are asked for.
        var folders: Set<ItemIdentifier> = []
        /// Of those, what they gave out when they were listed.
        var tokens: [ItemIdentifier: SyncToken] = [:]
        /// Which hold something with which something of ours is kept.
        var keeping = KeepingFolders()
        /// Folders that have numbers, by place: as they were called last.
        var numbers: [[FileName]: ItemIdentifier] = [:]
    }

    private let state = Mutex(State())

    var all: Set<ItemIdentifier> { state.withLock { $0.folders } }

    /// Of those that are known, what they gave out.
    var tokens: [ItemIdentifier: SyncToken] {
        state.withLock { state in state.tokens.filter { state.folders.contains($0.key) } }
    }

    func listed(_ folder: ItemReference, _ token: SyncToken?) {
        state.withLock { state in
            state.folders.insert(folder.identifier)
            state.keeping.isListed(folder.path)
            if folder.identifier.isNumber { state.numbers[folder.path] = folder.identifier }
            state.tokens[folder.identifier] = token
        }
    }

    func forget(_ folder: ItemIdentifier, at path: [FileName]) {
        state.withLock { state in
            state.numbers[path] = nil
            state.keeping.forget(path)
            state.folders.remove(folder)
            state.tokens[folder] = nil
        }
    }

    // MARK: Numbers

    func number(at path: [FileName]) -> ItemIdentifier? { state.withLock { $0.numbers[path] } }

    func note(_ folder: ItemReference) {
        if folder.identifier.isNumber {
            state.withLock { $0.numbers[folder.path] = folder.identifier }
        }
    }

    // MARK: What is kept

    /// What the server says of a folder.
    func note(keeps: Bool, _ stamp: String? = nil, in path: [FileName]) {
        state.withLock { $0.keeping.note(keeps: keeps, stamp, in: path) }
    }

    /// It was listed without what is kept in it.
    func noteOther(_ stamp: String?, in path: [FileName]) {
        state.withLock { $0.keeping.noteOther(stamp, in: path) }
    }

    func keeps(_ path: [FileName]) -> Bool { state.withLock { $0.keeping.contains(path) } }

    /// Nil when the folder was listed before, or holds something with which something is kept; else
    /// what the server said of it when it kept nothing, which may be nothing.
    func firstListing(_ folder: ItemReference) -> String?? {
        state.withLock { state in
            guard !state.folders.contains(folder.identifier), !state.keeping.contains(folder.path)
            else { return nil }
            return .some(state.keeping.stampOfOther(folder.path))
        }
    }
}

/// What a folder gave out when it was listed.
struct SyncToken: Sendable, Hashable {
    var folder: [FileName]
    /// Opaque.
    var text: String
}
