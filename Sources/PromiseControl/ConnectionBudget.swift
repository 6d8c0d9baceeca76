import Glibc
import NIOCore
import Synchronization

/// How many connections the control socket has at once. Each is a descriptor, of which open files
/// of the mount need theirs: beyond so many the one that was idle for the longest time is ended,
/// and whoever has a request under way stays.
final class ConnectionBudget: Sendable {
    private struct Entry {
        let channel: any Channel
        var requestCount = 0
        /// Larger is later.
        var lastUse: UInt64
    }

    private struct State {
        var entries: [ObjectIdentifier: Entry] = [:]
        var uses: UInt64 = 0
    }

    let connectionsMax: Int
    private let state = Mutex(State())

    init(connectionsMax: Int = ConnectionBudget.share()) { self.connectionsMax = connectionsMax }

    /// An eighth of what the process may open; no more than 128.
    private static func share() -> Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 16 }
        return Int(min(max(limit.rlim_cur / 8, 8), 128))
    }

    /// A connection was accepted.
    func add(_ channel: any Channel) {
        let key = ObjectIdentifier(channel)
        let surplus: (any Channel)? = state.withLock { state in
            state.uses += 1
            state.entries[key] = Entry(channel: channel, lastUse: state.uses)
            guard state.entries.count > connectionsMax else { return nil }
            let idle = state.entries.filter { $0.key != key && $0.value.requestCount == 0 }
            return idle.min { $0.value.lastUse < $1.value.lastUse }?.value.channel ?? channel
        }
        channel.closeFuture.whenComplete { [self] _ in forget(key) }
        guard let surplus else { return }
        // At once, as many may come before its end is noticed.
        forget(ObjectIdentifier(surplus))
        surplus.close(promise: nil)
    }

    func closeAll() {
        let channels = state.withLock { $0.entries.values.map(\.channel) }
        for channel in channels { channel.close(promise: nil) }
    }

    func began(_ channel: any Channel) { note(channel, 1) }
    func ended(_ channel: any Channel) { note(channel, -1) }

    private func note(_ channel: any Channel, _ change: Int) {
        state.withLock { state in
            state.uses += 1
            state.entries[ObjectIdentifier(channel)]?.requestCount += change
            state.entries[ObjectIdentifier(channel)]?.lastUse = state.uses
        }
    }

    private func forget(_ key: ObjectIdentifier) {
        state.withLock { _ = $0.entries.removeValue(forKey: key) }
    }
}
