import Glibc
import Logging
import PromiseCore
import PromiseProvider
import PromiseSystem
import Synchronization

/// Tells which folders changed, from inotify(7) watches on the folders that were listed.
///
/// One thread reads the events. Each makes the folder it happened in dirty with the next number of one sequence, and an anchor
/// is `INSTANCE:NUMBER`. Waiters are continuations; none holds a thread. Where inotify does not tell of everything (a shared
/// file system, no watches left), folders are called dirty every 30 s instead. That something was mounted inside, or is no more,
/// inotify does not tell of either: the kernel's table of mounts is watched for that.
final class FolderWatcher: Sendable {
    /// A file that is written to all the time dirties its folder this often.
    private static let writeDelay = Duration.milliseconds(500)
    private static let unwatchedInterval = Duration.seconds(30)
    /// A machine that mounts all the time has its table read no more often, in microseconds.
    private static let tablePause: UInt32 = 100_000
    private static let mask = UInt32(
        IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_CLOSE_WRITE | IN_MODIFY | IN_ATTRIB | IN_DELETE_SELF
            | IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK)

    private let instance: String
    private let logger: Logger
    private let clock = SystemClock()
    private let state = Mutex(WatcherState())
    /// Nil when the user has no inotify instance left; then no folder is watched.
    private let notifications: SharedDescriptor?
    private let alarm: SharedDescriptor?
    private let mountsInside: @Sendable () -> Set<String>
    /// Nil where there is no /proc.
    private let table: SharedDescriptor?

    /// `mountsInside`: what is mounted inside the folder now, a text each.
    init(instance: String, logger: Logger, mountsInside: @escaping @Sendable () -> Set<String>) {
        self.instance = instance
        self.logger = logger
        self.mountsInside = mountsInside
        let path = Array("/proc/self/mountinfo".utf8)
        table = try? SharedDescriptor(Descriptor.open(path, flags: O_RDONLY, label: "folder.watch.table"))
        var descriptors: (notifications: SharedDescriptor, alarm: SharedDescriptor)?
        do throws(SystemError) {
            let number = try call("folder.watch.begin") { inotify_init1(CInt(IN_CLOEXEC) | CInt(IN_NONBLOCK)) }
            let notifications = SharedDescriptor(Descriptor(adopting: number))
            descriptors = (notifications, SharedDescriptor(try makeEventDescriptor(label: "folder.watch.alarm")))
        } catch {
            logger.warning("no inotify instance: changes are looked for every 30 s", metadata: ["errno": "\(error.errno)"])
        }
        notifications = descriptors?.notifications
        alarm = descriptors?.alarm
        // The thread holds the watcher until `stop`; whoever owns the watcher calls it.
        OwnedThread(name: "folder-watch") { self.run() }.detach()
    }

    func begin(root: ItemIdentifier, isShared: Bool) {
        state.withLock { state in
            state.root = root
            state.isShared = isShared
        }
    }

    /// Ends the thread and every wait.
    func stop() {
        let waiters = state.withLock { state in
            state.isStopped = true
            defer { state.waiters = [:] }
            return Array(state.waiters.values)
        }
        ring()
        for waiter in waiters { waiter.continuation.resume(returning: .failure(FolderWatcher.cancelled)) }
    }

    // MARK: Folders

    /// From now on, tells of what happens in the folder. Once is enough; a folder that moves keeps its watch.
    func watch(_ folder: ItemIdentifier, descriptor: CInt) {
        if state.withLock({ $0.watches[folder] != nil }) { return }
        var problem: CInt = notifications == nil ? EMFILE : 0
        if let notifications {
            do throws(SystemError) {
                let watch = try withCPath(descriptorPath(descriptor)) { path throws(SystemError) in
                    try call("folder.watch.add") { inotify_add_watch(notifications.number, path, FolderWatcher.mask) }
                }
                state.withLock { state in
                    state.folders[watch, default: []].insert(folder)
                    state.watches[folder] = watch
                    if !state.isShared { state.unwatched.remove(folder) }
                }
            } catch {
                problem = error.errno
            }
        }
        let (isFirst, isShared) = state.withLock { state in
            guard problem != 0 || state.isShared else { return (false, false) }
            state.unwatched.insert(folder)
            if state.unwatchedDue == nil { state.unwatchedDue = clock.uptime() + FolderWatcher.unwatchedInterval }
            defer { if problem != 0 { state.isLimitLogged = true } }
            return (problem != 0 && !state.isLimitLogged, true)
        }
        if isFirst {
            let remedy = [ENOSPC, EMFILE].contains(problem) ? ": raise fs.inotify.max_user_watches" : ""
            logger.warning(
                "a folder cannot be watched and is looked at every 30 s\(remedy)",
                metadata: ["reason": "\(String(cString: strerror(problem)))"])
        }
        if isShared { ring() }
    }

    /// Forgets a folder that is gone.
    func unwatch(_ folder: ItemIdentifier) {
        let watch: CInt? = state.withLock { state in
            state.unwatched.remove(folder)
            state.written[folder] = nil
            let watch: CInt? = state.watches.removeValue(forKey: folder)
            guard let watch else { return nil }
            state.folders[watch]?.remove(folder)
            guard state.folders[watch]?.isEmpty == true else { return nil }
            state.folders[watch] = nil
            return watch
        }
        guard let watch, let notifications else { return }
        // EINVAL when the kernel removed the watch first, with the folder.
        _ = inotify_rm_watch(notifications.number, watch)
    }

    /// Listed folders that inotify does not tell of.
    var unwatchedFolders: Set<ItemIdentifier> { state.withLock { $0.unwatched } }

    /// How often file systems have gone, of which a folder was watched.
    var unmountCount: UInt64 { state.withLock { $0.unmountCount } }

    // MARK: Anchors

    func anchor() -> Anchor { text(state.withLock { $0.sequence }) }

    func changes(since anchor: Anchor) throws(ProviderError) -> ChangePage {
        guard let sequence = number(of: anchor) else { throw FolderWatcher.expired }
        let (folders, now): (Set<ItemIdentifier>?, UInt64) = state.withLock { state in
            guard sequence >= state.oldestSequence, sequence <= state.sequence else { return (nil, 0) }
            return (Set(state.dirty.lazy.filter { $0.value > sequence }.map(\.key)), state.sequence)
        }
        guard let folders else { throw FolderWatcher.expired }
        return ChangePage(foldersToList: folders, anchor: text(now))
    }

    /// Returns at once for an anchor that has expired: `changes` says so then.
    func wait(since anchor: Anchor) async throws(ProviderError) {
        guard let sequence = number(of: anchor) else { return }
        let identifier = state.withLock { state in
            state.waiterCount += 1
            return state.waiterCount
        }
        let outcome: Result<Void, ProviderError> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let now: Result<Void, ProviderError>? = state.withLock { state in
                    if state.isStopped || Task.isCancelled { return .failure(FolderWatcher.cancelled) }
                    if state.sequence > sequence || sequence < state.oldestSequence { return .success(()) }
                    state.waiters[identifier] = Waiter(sequence: sequence, continuation: continuation)
                    return nil
                }
                if let now { continuation.resume(returning: now) }
            }
        } onCancel: {
            let waiter = state.withLock { $0.waiters.removeValue(forKey: identifier) }
            waiter?.continuation.resume(returning: .failure(FolderWatcher.cancelled))
        }
        try outcome.get()
    }

    private func text(_ sequence: UInt64) -> Anchor { Anchor(rawValue: "\(instance):\(sequence)") }

    private func number(of anchor: Anchor) -> UInt64? {
        let parts = anchor.rawValue.split(separator: ":")
        guard parts.count == 2, parts[0] == instance else { return nil }
        return UInt64(parts[1])
    }

    private static let expired = ProviderError(.anchorExpired, "the folder was not watched all the time since")
    private static let cancelled = ProviderError(.cancelled, "the wait for changes was cancelled")

    // MARK: The thread

    private func run() {
        let room = 64 << 10
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: room, alignment: 8)
        defer { buffer.deallocate() }
        var mounts = table == nil ? [] : mountsInside()
        while let timeout = act() {
            guard let notifications, let alarm else {
                // Without descriptors to poll, the clock is all there is.
                usleep(200_000)
                continue
            }
            var descriptors = [
                pollfd(fd: notifications.number, events: Int16(POLLIN), revents: 0),
                pollfd(fd: alarm.number, events: Int16(POLLIN), revents: 0),
                // proc(5): an exceptional condition each time the table has changed. Without one it is left out.
                pollfd(fd: table?.number ?? -1, events: Int16(POLLPRI), revents: 0),
            ]
            // An interrupted poll only means another turn.
            guard poll(&descriptors, 3, timeout) > 0 else { continue }
            if descriptors[2].revents != 0 { look(for: &mounts) }
            if descriptors[1].revents != 0 {
                var count: UInt64 = 0
                _ = read(alarm.number, &count, 8)
            }
            guard descriptors[0].revents != 0 else { continue }
            let count = read(notifications.number, buffer.baseAddress!, room)
            if count > 0 { take(UnsafeRawBufferPointer(rebasing: buffer[..<count])) }
        }
    }

    /// The table has changed: everything is listed again when something inside came or went. Others mount as they like.
    private func look(for mounts: inout Set<String>) {
        usleep(FolderWatcher.tablePause)
        let now = mountsInside()
        guard now != mounts else { return }
        mounts = now
        let woken = state.withLock { state in
            state.takeUnmount()
            return state.takeWoken()
        }
        for waiter in woken { waiter.continuation.resume(returning: .success(())) }
    }

    /// Does what is due and says how many milliseconds to sleep (-1: until something happens); nil to end.
    private func act() -> CInt? {
        let now = clock.uptime()
        let (isStopped, next, woken) = state.withLock { state -> (Bool, Duration?, [Waiter]) in
            for (folder, due) in state.written where due <= now {
                state.written[folder] = nil
                state.makeDirty(folder)
            }
            if let due = state.unwatchedDue, due <= now {
                for folder in state.unwatched { state.makeDirty(folder) }
                state.unwatchedDue = state.unwatched.isEmpty ? nil : now + FolderWatcher.unwatchedInterval
            }
            let next = [state.written.values.min(), state.unwatchedDue].compactMap { $0 }.min()
            return (state.isStopped, next, state.takeWoken())
        }
        for waiter in woken { waiter.continuation.resume(returning: .success(())) }
        if isStopped { return nil }
        guard let next else { return -1 }
        return CInt(clamping: max(0, (next - now).nanoseconds / 1_000_000 + 1))
    }

    private func ring() {
        var one: UInt64 = 1
        // Fails only when the counter is full, and then the thread is awake anyway.
        if let alarm { _ = write(alarm.number, &one, 8) }
    }

    /// struct inotify_event: watch, mask, cookie, length of the name, name padded with zeros.
    private func take(_ events: UnsafeRawBufferPointer) {
        let now = clock.uptime()
        let woken = state.withLock { state in
            var offset = 0
            while offset + 16 <= events.count {
                let watch = events.loadUnaligned(fromByteOffset: offset, as: CInt.self)
                let mask = events.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self)
                let length = Int(events.loadUnaligned(fromByteOffset: offset + 12, as: UInt32.self))
                let name = events[(offset + 16)..<min(offset + 16 + length, events.count)].prefix { $0 != 0 }
                state.take(watch: watch, mask: mask, name: Array(name), writtenDue: now + FolderWatcher.writeDelay)
                offset += 16 + length
            }
            return state.takeWoken()
        }
        for waiter in woken { waiter.continuation.resume(returning: .success(())) }
    }
}

/// What the watcher knows; touched under its lock only.
private struct WatcherState {
    var root: ItemIdentifier?
    /// Other machines change the file system unseen.
    var isShared = false
    var sequence: UInt64 = 0
    /// Anchors below this missed something.
    var oldestSequence: UInt64 = 0
    var dirty: [ItemIdentifier: UInt64] = [:]
    /// One folder may be at several places (bind mounts), and has one watch.
    var folders: [CInt: Set<ItemIdentifier>] = [:]
    var watches: [ItemIdentifier: CInt] = [:]
    /// Listed, but inotify does not tell of them.
    var unwatched: Set<ItemIdentifier> = []
    var isLimitLogged = false
    /// Folders with a file that is being written to, and when they will be called dirty for it.
    var written: [ItemIdentifier: Duration] = [:]
    var unwatchedDue: Duration?
    var waiters: [UInt64: Waiter] = [:]
    var waiterCount: UInt64 = 0
    var isStopped = false
    var unmountCount: UInt64 = 0
}

/// A task that waits for the sequence to go beyond a number.
private struct Waiter {
    var sequence: UInt64
    var continuation: CheckedContinuation<Result<Void, ProviderError>, Never>
}

extension WatcherState {
    fileprivate mutating func makeDirty(_ folder: ItemIdentifier) {
        sequence += 1
        dirty[folder] = sequence
        // What was written until now is told with it.
        written[folder] = nil
    }

    /// Everything may have changed: every anchor until now has expired.
    private mutating func loseTrack() {
        sequence += 1
        oldestSequence = sequence
        dirty = [:]
    }

    /// Numbers of mounts and file systems may be others' from now on.
    fileprivate mutating func takeUnmount() {
        unmountCount += 1
        loseTrack()
    }

    fileprivate mutating func takeWoken() -> [Waiter] {
        let woken = waiters.filter { sequence > $0.value.sequence }
        for identifier in woken.keys { waiters[identifier] = nil }
        return Array(woken.values)
    }

    fileprivate mutating func take(watch: CInt, mask: UInt32, name: [UInt8], writtenDue: Duration) {
        if mask & UInt32(IN_Q_OVERFLOW) != 0 {
            loseTrack()
            return
        }
        guard let places = folders[watch] else { return }
        if mask & UInt32(IN_IGNORED) != 0 {
            folders[watch] = nil
            for folder in places where watches[folder] == watch { watches[folder] = nil }
            return
        }
        // The disk went away and took its watches along; when it is back, everything has to be listed again.
        if mask & UInt32(IN_UNMOUNT) != 0 {
            takeUnmount()
            return
        }
        for folder in places { take(mask, name, in: folder, writtenDue) }
    }

    private mutating func take(_ mask: UInt32, _ name: [UInt8], in folder: ItemIdentifier, _ writtenDue: Duration) {
        let isRoot = folder == root
        // The folder itself was moved, deleted or changed: the folder that holds it is told the same, with a name.
        if name.isEmpty {
            if isRoot { makeDirty(folder) }
            return
        }
        if ReservedName.contains(name, inRoot: isRoot) { return }
        if mask & UInt32(IN_MODIFY) != 0 {
            if written[folder] == nil { written[folder] = writtenDue }
            return
        }
        makeDirty(folder)
    }
}
