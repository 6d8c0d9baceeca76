package import PromiseCore
import Synchronization

/// What is known of objects that listings do not tell: modes, owners, times and links. Listings tell tag and time of an object,
/// by which it is seen whether what is known still holds.
///
/// Bounded: details that many others followed are forgotten, but not that somebody has been told them.
package final class KnownDetails: Sendable {
    package enum Answer: Equatable {
        case known(ObjectDetails)
        /// Whoever asks has heard them before, and nothing has changed since.
        case told
        case unknown
    }

    /// What a listing says of an object; of a folder it says nothing.
    package struct Stamp: Hashable, Sendable {
        var tag: String
        /// Nil: just written by us, and the server has not said yet which time it gave it.
        var lastModified: Timestamp?

        package init(tag: String, lastModified: Timestamp?) {
            self.tag = tag
            self.lastModified = lastModified
        }

        package static let folder = Stamp(tag: "folder", lastModified: .zero)
    }

    private struct Entry {
        var stamp: Stamp
        var details: ObjectDetails
        /// Nil: not told yet.
        var size: UInt64?
    }

    private struct State {
        var entries: [[UInt8]: Entry] = [:]
        /// Hashes of keys and stamps.
        var told: Set<Int> = []
    }

    private let state = Mutex(State())
    private let entriesMax: Int
    private let toldMax: Int

    package init(entriesMax: Int = 50_000, toldMax: Int = 4_000_000) {
        self.entriesMax = entriesMax
        self.toldMax = toldMax
    }

    /// Asked for a listing, which says the size: an answer counts as told.
    package func answer(_ key: [UInt8], _ stamp: Stamp, size: UInt64? = nil) -> Answer {
        state.withLock { state in
            let mark = KnownDetails.mark(key, stamp)
            if var entry = state.entries[key], entry.stamp.tag == stamp.tag {
                // The first listing after our own write says which time the server gave it.
                if entry.stamp.lastModified == nil { entry.stamp.lastModified = stamp.lastModified }
                if entry.stamp == stamp {
                    entry.size = size ?? entry.size
                    state.entries[key] = entry
                    tell(mark, &state)
                    return .known(entry.details)
                }
            }
            return state.told.contains(mark) ? .told : .unknown
        }
    }

    /// What is known, if it still holds, without anybody being told.
    func known(_ key: [UInt8], _ stamp: Stamp) -> ObjectDetails? {
        state.withLock { state in state.entries[key].flatMap { $0.stamp == stamp ? $0.details : nil } }
    }

    /// Of an object that has this tag still, as if it had been looked at; nil unless all of it is known.
    func status(_ key: [UInt8], tag: String) -> ObjectStatus? {
        let entry = state.withLock { $0.entries[key] }
        guard let entry, entry.stamp.tag == tag, let size = entry.size else { return nil }
        let details = entry.details
        guard let time = entry.stamp.lastModified ?? details.modificationTime else { return nil }
        if details.isLink, details.target == nil { return nil }
        return ObjectStatus(tag: tag, size: size, lastModified: time, details)
    }

    /// A listing says it.
    package func tell(_ key: [UInt8], _ stamp: Stamp) {
        state.withLock { tell(KnownDetails.mark(key, stamp), &$0) }
    }

    private func tell(_ mark: Int, _ state: inout State) {
        if state.told.count >= toldMax { state.told = [] }
        state.told.insert(mark)
    }

    package func note(_ key: [UInt8], _ stamp: Stamp, _ details: ObjectDetails, size: UInt64? = nil) {
        state.withLock { state in
            if state.entries.count >= entriesMax, state.entries[key] == nil { state.entries = [:] }
            let known = state.entries[key].flatMap { $0.stamp.tag == stamp.tag ? $0.size : nil }
            state.entries[key] = Entry(stamp: stamp, details: details, size: size ?? known)
        }
    }

    /// Of a folder's marker, which only the listing of the folder itself tells. Returns whether it is another one than before.
    package func isChanged(marker key: [UInt8], _ stamp: Stamp) -> Bool {
        // Under a key that no object has.
        let own = key + [0]
        return state.withLock { state in
            let old = state.entries[own]?.stamp
            if state.entries.count >= entriesMax, old == nil { state.entries = [:] }
            state.entries[own] = Entry(stamp: stamp, details: ObjectDetails())
            return old != nil && old != stamp
        }
    }

    package func forgetEverything() { state.withLock { $0 = State() } }
    package func forget(_ key: [UInt8]) { state.withLock { $0.entries[key] = nil } }

    /// Copies keep what belongs to an object, but not its time.
    package func copied(_ key: [UInt8], to target: [UInt8], tag: String) {
        state.withLock { state in
            guard let entry = state.entries[key] else { return }
            let stamp = key.last == KeyNames.slash ? Stamp.folder : Stamp(tag: tag, lastModified: nil)
            state.entries[target] = Entry(stamp: stamp, details: entry.details, size: entry.size)
        }
    }

    private static func mark(_ key: [UInt8], _ stamp: Stamp) -> Int {
        var hasher = Hasher()
        hasher.combine(key)
        hasher.combine(stamp)
        return hasher.finalize()
    }
}
