import Logging
import PromiseCore
import PromiseHTTP
import PromiseProvider
import Synchronization

// Which folders hold something with which something of ours is kept. To look for it costs some servers more than all else that
// they tell in a listing, Apache four times as much. So a folder that does not say that it holds such a thing is first listed
// without it. That is a hint: another program may have moved something there, which the next listing shows, as those after the
// first one ask for everything.

extension WebDAVProvider {
    /// What the server says of a folder.
    func note(keeps: Bool, _ stamp: String? = nil, in path: [FileName]) {
        shared.withLock { $0.keeping.note(keeps: keeps, stamp, in: path) }
    }

    /// Called before something is kept with what is in a folder: the folder says so from then on, and those above say it of it.
    /// Where the server does not let it say so, modes and times come later to others, and no more.
    func noteKeeping(in folder: [FileName]) async {
        // Nobody lists what is hidden.
        if folder.first == ReservedName.folder || shared.withLock({ $0.keeping.contains(folder) }) { return }
        await turns.take("keeps") { () async in
            for count in 0...folder.count {
                let path = Array(folder.prefix(count))
                if shared.withLock({ $0.keeping.contains(path) }) { continue }
                do throws(ProviderError) {
                    if try await resource(at: path, isFolder: true).keeps { continue }
                    try await store(nil, at: path, isFolder: true, keeps: true, token: nil)
                } catch {
                    logger.debug("a folder does not say what it holds", metadata: ["reason": "\(error.message)"])
                }
                // Not tried again for each file.
                note(keeps: true, in: path)
            }
        }
    }
}
