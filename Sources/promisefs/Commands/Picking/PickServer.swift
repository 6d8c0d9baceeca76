import PromiseCore
import PromiseKit
import PromisePicker
import PromiseWire
import Synchronization

/// Shows pickers to the person for applications that ask from inside their views.
struct PickServer: Sendable {
    /// How a picker is shown.
    typealias Shower =
        @Sendable (PickerRequest, MountedData, PickerLaunch) async throws -> PickerOutcome

    private static let look = Duration.seconds(2)

    let show: Shower

    /// Of one launch, until it ends.
    func serve(_ mount: MountEntry, launch: String) async throws {
        try await serve(mount, try PromiseClient(mount: mount), launch)
    }

    /// Of all domains that are mounted, also later, until the process ends.
    func serve() async throws {
        let served = ServedDomains()
        while true {
            for mount in (try? await Targets.ownMounts()) ?? [] {
                guard served.begin(mount.domain) else { continue }
                Task {
                    if let client = try? PromiseClient(mount: mount) {
                        try? await serve(mount, client, nil)
                    }
                    served.end(mount.domain)
                }
            }
            try await Task.sleep(for: PickServer.look)
        }
    }

    private func serve(
        _ mount: MountEntry, _ client: PromiseClient, _ launch: String?
    ) async throws(PromiseError) {
        let events = try await client.picks(ofLaunch: launch)
        let shown = ShownPickers()
        defer { shown.cancelAll() }
        for try await event in events {
            guard let asked = WireCoding.decode(PickAsked.self, from: Array(event.data.utf8)) else {
                continue
            }
            switch event.name {
            case "asked":
                shown.begin(asked.id) { await answer(asked, mount, client) }
            case "withdrawn": shown.cancel(asked.id)
            default: break
            }
        }
    }

    private func answer(_ asked: PickAsked, _ mount: MountEntry, _ client: PromiseClient) async {
        var answer = PickAnswer()
        do {
            answer = try await self.answer(to: asked, mount)
        } catch {
            answer.problem = "\(error)"
        }
        _ = try? await client.answer(pick: asked.id, answer)
    }

    private func answer(to asked: PickAsked, _ mount: MountEntry) async throws -> PickAnswer {
        guard let mode = PickerRequest.Mode(rawValue: asked.request.mode) else {
            throw CommandFailure("no picker has the mode '\(asked.request.mode)'")
        }
        var request = PickerRequest(mode)
        request.types = asked.request.types ?? []
        request.allowsMultiple = asked.request.multiple ?? false
        request.picksFolders = asked.request.folders ?? false
        request.application = asked.application
        request.requester = asked.application
        request.start = PickerFolder(domain: mount.domain)
        request.suggestedName = Array((asked.request.name ?? "").utf8)
        for source in asked.request.sources ?? [] {
            guard let bytes = PercentCoding.decode(source[...]),
                let path = Location.absolutePath(of: Array(bytes.drop { $0 == 0x2F }), on: mount)
            else { throw CommandFailure("a source is no path") }
            request.sources.append(PickerRequest.Source(path: path))
        }
        let launch = PickerLaunch(asked.launch, of: mount.domain)
        // What is picked to be opened is in the application's view: that of one domain.
        let mounts = mode == .import ? try await Targets.ownMounts() : [mount]
        let data = MountedData(mounts, application: asked.application)
        switch try await show(request, data, launch) {
        case .cancelled: return PickAnswer(cancelled: true)
        case .picked(let documents):
            let table = try await Targets.table()
            return PickAnswer(
                paths: documents.compactMap { document in
                    (try? Location.of(document.path, in: table)).map {
                        "/" + PercentCoding.encode($0.path)
                    }
                })
        }
    }
}

/// Those of one domain that are shown, or wait for their turn.
private final class ShownPickers: Sendable {
    private let tasks: Mutex<[UInt64: Task<Void, Never>]> = Mutex([:])

    func begin(_ id: UInt64, _ body: @escaping @Sendable () async -> Void) {
        tasks.withLock { tasks in
            tasks[id] = Task { [weak self] in
                await body()
                self?.end(id)
            }
        }
    }

    func cancel(_ id: UInt64) { tasks.withLock { $0.removeValue(forKey: id) }?.cancel() }

    func cancelAll() {
        let all = tasks.withLock { tasks in
            defer { tasks = [:] }
            return tasks
        }
        for task in all.values { task.cancel() }
    }

    private func end(_ id: UInt64) { tasks.withLock { $0[id] = nil } }
}

/// Those whose asks are heard now.
private final class ServedDomains: Sendable {
    private let names: Mutex<Set<String>> = Mutex([])

    func begin(_ name: String) -> Bool { names.withLock { $0.insert(name).inserted } }
    func end(_ name: String) { names.withLock { _ = $0.remove(name) } }
}
