import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem
import Synchronization

// What is written through a mapping after the last close: it is the kernel's mapping of the content file, so the close comes at
// once and not when the mapping goes. The file counts as written to until then.

extension FileSystem {
    /// A file is looked at first when the kernel is surely done with the close itself.
    private static let firstPause = Duration.milliseconds(50)
    private static let pause = Duration.seconds(1)

    /// The last close of a node that may be mapped, when its registration and its descriptors are given back. True: it is.
    func linger(_ id: NodeID) -> Bool {
        guard let node = try? known(id), node.content == .whole,
            let file = try? SharedDescriptor(content.open(id, node.generation, writable: false)),
            opens.linger(id, file)
        else { return false }
        guard hasWriters(file.number) else {
            opens.endLingering(id)
            return false
        }
        let due = clock.uptime() + Self.firstPause
        mappings.withLock { state in
            guard state.watched[id] == nil else { return }
            state.watched[id] = MappingWatch.Look(due: due, isMapped: false)
        }
        mappingLookout.wake(at: due)
        return opens.lingers(id)
    }

    /// Looks at the files that are due; returns when the next is.
    func lookAtMappings() -> Duration? {
        let now = clock.uptime()
        for (id, last) in mappings.withLock({ $0.take(at: now) }) {
            guard let isMapped = look(id, last.isMapped) else { continue }
            let next = MappingWatch.Look(due: clock.uptime() + Self.pause, isMapped: isMapped)
            // Whoever closes it meanwhile has perhaps put it there again.
            mappings.withLock { $0.watched[id] = next }
        }
        return mappings.withLock { $0.next }
    }

    /// `wasMapped`: an earlier look has found it mapped, so that it was not the close itself. Returns what the next look is to
    /// know of this one; nil when there is to be none.
    private func look(_ id: NodeID, _ wasMapped: Bool) -> Bool? {
        guard opens.lingers(id) else { return nil }
        // Somebody has it open, which cannot be told from a mapping.
        guard let file = opens.lingeringFile(of: id) else { return wasMapped }
        if hasWriters(file.number) {
            if wasMapped { noteWrites(of: id, isClosing: false) }
            return true
        }
        opens.endLingering(id)
        // A page that was written to before may take more without its file's time moving.
        noteWrites(of: id, isClosing: true, countsDoubtful: false, isCertain: wasMapped)
        settleIfUnused(id)
        return nil
    }
}

/// Files that nobody has open and that are mapped perhaps, and when each is looked at.
struct MappingWatch {
    struct Look {
        var due: Duration
        /// The one before has found a mapping.
        var isMapped: Bool
    }

    var watched: [NodeID: Look] = [:]

    /// When the first look is due.
    var next: Duration? { watched.values.lazy.map(\.due).min() }

    /// Those that are due, in an order that a seed can replay; whoever looks puts them back.
    mutating func take(at now: Duration) -> [(NodeID, Look)] {
        let due = watched.filter { $0.value.due <= now }.sorted { $0.key < $1.key }
        for (id, _) in due { watched[id] = nil }
        return due
    }
}
