import Glibc
import NIOCore
import Synchronization

/// How many connections the control socket has at once. Each is a descriptor, of which open files
/// of the mount need theirs: beyond so many the one that was idle for the longest time is ended,
/// and whoever has a request under way stays. Presenters, claims and live queries have one for as long
/// as they last: when they are so many that none is idle, there is room for some that ask briefly.
final class ConnectionBudget: Sendable {
    private struct Entry {
        let channel: any Channel
        var requestCount = 0
        /// Larger is later.
        var lastUse: UInt64
        /// It came when there was no room but for those that ask briefly.
        var isBrief = false
    }

    private struct State {
        var entries: [ObjectIdentifier: Entry] = [:]
        var uses: UInt64 = 0
    }

    let connectionsMax: Int
    private let briefMax: Int
    private let idleMax: Int
    /// How long a brief one has.
    private static let briefTime = TimeAmount.seconds(10)
    private let state = Mutex(State())

    private init(connectionsMax: Int) {
        self.connectionsMax = connectionsMax
        briefMax = max(connectionsMax / 8, 2)
        idleMax = min(connectionsMax, 128)
    }

    /// An eighth of what the process may open, no more than 512.
    static func ofOwner() -> ConnectionBudget {
        ConnectionBudget(connectionsMax: share(8, 512))
    }

    /// There may be two hundred.
    static func ofLaunch() -> ConnectionBudget {
        ConnectionBudget(connectionsMax: share(64, 32))
    }

    private static func share(_ part: UInt, _ most: UInt) -> Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 8 }
        return Int(min(max(limit.rlim_cur / part, 8), most))
    }

    /// A connection was accepted.
    func add(_ channel: any Channel) {
        let key = ObjectIdentifier(channel)
        let surplus: (any Channel)? = state.withLock { state in
            state.uses += 1
            state.entries[key] = Entry(channel: channel, lastUse: state.uses)
            let idle = state.entries.filter { $0.key != key && $0.value.requestCount == 0 }
            guard idle.count >= idleMax || state.entries.count > connectionsMax else { return nil }
            if let oldest = idle.min(by: { $0.value.lastUse < $1.value.lastUse }) {
                return oldest.value.channel
            }
            guard state.entries.count <= connectionsMax + briefMax else { return channel }
            state.entries[key]?.isBrief = true
            channel.eventLoop.scheduleTask(in: ConnectionBudget.briefTime) { [self] in endBrief(key) }
            return nil
        }
        channel.closeFuture.whenComplete { [self] _ in forget(key) }
        guard let surplus else { return }
        // At once, as many may come before its end is noticed.
        forget(ObjectIdentifier(surplus))
        surplus.close(promise: nil)
    }

    /// Its time is over: it stays when there is room for it by now.
    private func endBrief(_ key: ObjectIdentifier) {
        let channel: (any Channel)? = state.withLock { state in
            guard state.entries[key]?.isBrief == true else { return nil }
            state.entries[key]?.isBrief = false
            return state.entries.count > connectionsMax ? state.entries[key]?.channel : nil
        }
        channel?.close(promise: nil)
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
