import Glibc
import Logging
import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem
import Synchronization

// What is written through a mapping after the last close: it is the kernel's mapping of the content file, so the close comes at
// once and not when the mapping goes. The file counts as written to until then.

extension FileSystem {
    /// When lingering files are looked at again: first soon, as the kernel may not be done with the close itself.
    private static let pauses: [Duration] = [.milliseconds(50), .seconds(1)]

    /// The last close of a node that may be mapped, when its registration and its descriptors are given back. True: it is.
    func linger(_ id: NodeID) -> Bool {
        guard let node = try? known(id), node.content == .whole,
            let file = try? SharedDescriptor(content.open(id, node.generation, writable: false)), opens.linger(id, file)
        else { return false }
        guard hasWriters(file.number) else {
            opens.endLingering(id)
            return false
        }
        mappings.update { $0.isWanted = true }
        startWatchingMappings()
        return opens.lingers(id)
    }

    private func startWatchingMappings() {
        let isFirst = mappings.withLock { state in
            defer { state.isRunning = true }
            return !state.isRunning && !state.isEnded
        }
        guard isFirst else { return }
        OwnedThread(name: "mappings") { [weak self] in
            var seen = Set<NodeID>()
            while let pause = self?.nextPause(seen.isEmpty), self?.isEnded(after: pause) == false {
                self?.lookAtMappings(&seen)
            }
        }.detach()
    }

    /// Nil: nothing lingers, and the thread ends.
    private func nextPause(_ isFirst: Bool) -> Duration? {
        mappings.withLock { state in
            if !opens.isAnyLingering && !state.isWanted {
                state.isRunning = false
                return nil
            }
            state.isWanted = false
            return Self.pauses[isFirst ? 0 : 1]
        }
    }

    private func isEnded(after pause: Duration) -> Bool {
        mappings.wait(timeout: pause) { $0.isEnded ? true : nil } ?? false
    }

    /// `seen`: those that were found mapped in an earlier look, so that it was not the close itself.
    private func lookAtMappings(_ seen: inout Set<NodeID>) {
        var found = Set<NodeID>()
        for (id, file) in opens.lingering {
            if hasWriters(file.number) {
                found.insert(id)
                if seen.contains(id) { noteWrites(of: id, isClosing: false) }
                continue
            }
            opens.endLingering(id)
            // A page that was written to before may take more without its file's time moving.
            noteWrites(of: id, isClosing: true, countsDoubtful: false, isCertain: seen.contains(id))
            deleteIfNameless(id)
            opens.forgetIfUnused(id)
        }
        seen = found
    }
}

/// The thread that watches mappings.
struct MappingWatch {
    var isRunning = false
    /// Something has begun to linger since the thread looked last.
    var isWanted = false
    var isEnded = false
}
