import PromiseKit
import PromiseWire
import Synchronization

/// Tells a page when there is something new to be seen: by the journals of the domains, which their
/// daemons send as they are written.
final class OverviewWatch: Sendable {
    private struct State {
        var version = 0
        var watched: Set<String> = []
        /// Something is under way: how far is in no journal.
        var isBusy = false
    }

    /// As long as a page waits at most.
    private static let patience = Duration.seconds(10)
    /// Of what comes close together one is told.
    private static let rest = Duration.milliseconds(100)
    private static let busyPatience = Duration.seconds(1)

    private let mounts: @Sendable () throws -> [MountEntry]
    private let state = Mutex(State())

    init(_ mounts: @escaping @Sendable () throws -> [MountEntry]) { self.mounts = mounts }

    var isBusy: Bool {
        get { state.withLock { $0.isBusy } }
        set { state.withLock { $0.isBusy = newValue } }
    }

    /// Waits for one that is newer; not for ever, as domains come and go.
    func version(after known: Int) async -> Int {
        begin()
        let start = ContinuousClock.now
        while true {
            let (version, isBusy) = state.withLock { ($0.version, $0.isBusy) }
            let patience = isBusy ? OverviewWatch.busyPatience : OverviewWatch.patience
            if version > known || .now - start > patience { return version }
            guard (try? await Task.sleep(for: OverviewWatch.rest)) != nil else { return version }
        }
    }

    private func begin() {
        for mount in (try? mounts()) ?? [] {
            let name = mount.domain
            guard state.withLock({ $0.watched.insert(name).inserted }) else { continue }
            note()
            Task { [self] in
                await OverviewWatch.follow(mount) { self.note() }
                // It has ended, or cannot be followed: looked at again with the next question.
                state.withLock { _ = $0.watched.remove(name) }
                note()
            }
        }
    }

    private func note() { state.withLock { $0.version += 1 } }

    private static func follow(_ mount: MountEntry, _ note: @escaping @Sendable () -> Void) async {
        guard let client = try? PromiseClient(mount: mount),
            let latest = try? await client.changes(since: 0).last,
            let events = try? await client.stream("GET", "changes?since=\(latest)&follow=true")
        else {
            try? await Task.sleep(for: patience)
            return
        }
        do {
            for try await _ in events { note() }
        } catch {
            // The daemon has ended.
        }
    }
}
