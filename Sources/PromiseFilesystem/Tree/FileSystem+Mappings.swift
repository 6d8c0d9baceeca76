import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem

// What is written through a mapping after the last close: it is the kernel's mapping of the content file, so the close comes at
// once and not when the mapping goes. The file counts as written to until then.

extension FileSystem {
    /// A file is looked at first when the kernel is surely done with the close itself.
    private static let firstPause = Duration.milliseconds(50)
    private static let pause = Duration.seconds(1)

    /// The last close of a node that may be mapped, when its registration and its descriptors are given back. True: it is.
    func linger(_ id: NodeID) -> Bool {
        guard let node = try? known(id), node.content == .whole,
            let file = try? SharedDescriptor(content.open(id, node.generation, writable: false)), opens.linger(id, file)
        else { return false }
        guard hasWriters(file.number) else {
            opens.endLingering(id)
            return false
        }
        let due = clock.uptime() + Self.firstPause
        mappings.update { state in
            if state.watched[id] == nil { state.watched[id] = MappingWatch.Look(due: due, isMapped: false) }
            guard state.thread == nil, !state.isEnded else { return }
            state.thread = OwnedThread(name: "mappings") { [self] in watchMappings() }
        }
        return opens.lingers(id)
    }

    /// Nothing is noted by the thread from here on.
    func endWatchingMappings() {
        let thread = mappings.update { state in
            state.isEnded = true
            defer { state.thread = nil }
            return state.thread
        }
        thread?.join()
    }

    private func watchMappings() {
        while true {
            let next = mappings.withLock { $0.next }
            let isEnded = mappings.wait(timeout: next.map { $0 - clock.uptime() }) { state in
                state.isEnded ? true : state.next != next ? false : nil
            }
            if isEnded == true { return }
            let now = clock.uptime()
            for (id, last) in mappings.withLock({ $0.take(at: now) }) {
                guard let isMapped = look(id, last.isMapped) else { continue }
                let next = MappingWatch.Look(due: clock.uptime() + Self.pause, isMapped: isMapped)
                // Whoever closes it meanwhile has perhaps put it there again.
                mappings.withLock { $0.watched[id] = next }
            }
        }
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
        deleteIfNameless(id)
        opens.forgetIfUnused(id)
        return nil
    }
}

/// Files that nobody has open and that are mapped perhaps, and the thread that looks at them: from the first of them on.
struct MappingWatch {
    struct Look {
        var due: Duration
        /// The one before has found a mapping.
        var isMapped: Bool
    }

    var watched: [NodeID: Look] = [:]
    var thread: OwnedThread?
    var isEnded = false

    /// When the first look is due.
    var next: Duration? { watched.values.lazy.map(\.due).min() }

    /// Those that are due; they are put back by whoever looks.
    mutating func take(at now: Duration) -> [NodeID: Look] {
        let due = watched.filter { $0.value.due <= now }
        for id in due.keys { watched[id] = nil }
        return due
    }
}
