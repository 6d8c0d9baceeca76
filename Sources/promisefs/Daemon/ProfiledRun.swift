import Glibc
import PromiseCore
import PromiseKit
import PromiseSystem
import PromiseWire
import Synchronization

/// Runs a command while the files that it opened the last time are fetched ahead of it, and notes which it opens this time.
///
/// Daemons know who belongs to the run by a variable in the environment, which children inherit.
struct ProfiledRun {
    /// The last files are told of a moment after they were opened.
    private static let silence = Duration.milliseconds(200)
    private static let silenceMax = Duration.seconds(5)

    /// Where the profile is: a list of paths in the order in which they were opened first.
    let profile: [UInt8]
    let command: [[UInt8]]

    /// The command's exit status. One that fails may have opened only a part: then the profile is added to, not replaced. Where
    /// nothing was opened it stays as it is: what it is about may not be mounted.
    func run() async throws -> Int32 {
        // A place that cannot be written is found before the command runs.
        if withCPath(profile, { access($0, F_OK) }) != 0 { try PathList(paths: []).write(to: profile) }
        let known = try PathList(of: profile).paths
        let name = String(UInt64.random(in: 0 ... .max), radix: 36)
        setenv("PROMISEFS_RECORDING", name, 1)
        let opened = OpenedFiles()
        let listeners = await listen(name, opened)
        defer { for listener in listeners { listener.cancel() } }
        let ahead = Task { await fetch(known) }
        defer { ahead.cancel() }
        let command = command
        let status = try await Blocking.run { () throws(CommandFailure) in
            // Ctrl-C is for the command; what it opened until then is noted.
            try Spawn.run(command) { for number in [SIGINT, SIGQUIT] { signal(number, SIG_IGN) } }
        }
        await opened.settle(Self.silence, atMost: Self.silenceMax)
        let fresh = opened.paths
        if !fresh.isEmpty { try PathList(paths: status == 0 ? fresh : added(fresh, to: known)).write(to: profile) }
        return status
    }

    private func added(_ fresh: [[UInt8]], to known: [[UInt8]]) -> [[UInt8]] {
        let before = Set(known)
        return known + fresh.filter { !before.contains($0) }
    }

    /// Returns when every mount's daemon tells. One that cannot be asked is left out, and said so.
    private func listen(_ name: String, _ opened: OpenedFiles) async -> [Task<Void, Never>] {
        var result: [Task<Void, Never>] = []
        for mount in (try? await Targets.ownMounts()) ?? [] {
            do throws(PromiseError) {
                let events = try await PromiseClient(mount: mount).stream("GET", "trace?recording=\(name)")
                let (begun, begin) = AsyncStream.makeStream(of: Void.self)
                result.append(
                    Task {
                        defer { begin.finish() }
                        do {
                            for try await event in events {
                                begin.finish()
                                opened.note(event, on: mount)
                            }
                        } catch where !Task.isCancelled {
                            Output.problem("what is opened on \(escapedForDisplay(mount.mountPoint)) is not noted any more")
                        } catch {
                            // The command has ended.
                        }
                    })
                for await _ in begun {}
            } catch {
                Output.problem("what is opened on \(escapedForDisplay(mount.mountPoint)) is not noted: \(error.message)")
            }
        }
        return result
    }

    /// What is not there any more, or cannot be fetched, is the command's to find out.
    private func fetch(_ paths: [[UInt8]]) async {
        var failures = FailureCollector()
        for (mount, locations) in await Targets.byDomain(paths.map { PathArgument(bytes: $0) }, &failures) {
            _ = try? await PromiseClient(mount: mount).fetch(locations.map(\.path))
        }
    }
}

/// Each file once, in the order in which they were opened first.
private final class OpenedFiles: Sendable {
    private struct State {
        var known: Set<[UInt8]> = []
        var paths: [[UInt8]] = []
        var lastEvent = ContinuousClock.now
    }

    private let state = Mutex(State())

    var paths: [[UInt8]] { state.withLock { $0.paths } }

    func note(_ event: ServerEvent, on mount: MountEntry) {
        guard event.name == "request" else { return }
        let request = WireCoding.decode(TraceDocument.self, from: Array(event.data.utf8))
        state.withLock { state in
            state.lastEvent = .now
            guard let request, request.operation == "open", request.errorNumber == 0,
                let bytes = request.pathBytes.flatMap({ PercentCoding.decode($0[...]) }),
                let path = Location.absolutePath(of: Array(bytes.drop { $0 == 0x2F }), on: mount)
            else { return }
            if state.known.insert(path).inserted { state.paths.append(path) }
        }
    }

    /// Returns when nothing was told for `silence`.
    func settle(_ silence: Duration, atMost limit: Duration) async {
        let start = ContinuousClock.now
        state.withLock { $0.lastEvent = start }
        while true {
            let now = ContinuousClock.now
            let rest = silence - (now - state.withLock { $0.lastEvent })
            guard rest > .zero, now - start < limit else { return }
            do { try await Task.sleep(for: rest) } catch { return }
        }
    }
}
