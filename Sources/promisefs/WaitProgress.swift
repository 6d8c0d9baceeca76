import PromiseCore
import PromiseKit
import PromiseWire

/// One line on a terminal that says how far a wait for what is pending is.
enum WaitProgress {
    private static let pause = Duration.milliseconds(500)

    /// Runs `body`, which waits.
    static func showing<Value: Sendable>(
        of mount: MountEntry, if isWanted: Bool, _ body: () async throws(PromiseError) -> Value
    ) async throws(PromiseError) -> Value {
        guard isWanted, Terminal.isOutput else { return try await body() }
        let drawing = Task { await draw(mount) }
        let outcome: Result<Value, PromiseError>
        do throws(PromiseError) { outcome = .success(try await body()) } catch { outcome = .failure(error) }
        drawing.cancel()
        // A line that is being drawn is not left behind.
        await drawing.value
        return try outcome.get()
    }

    private static func draw(_ mount: MountEntry) async {
        guard let client = try? PromiseClient(mount: mount) else { return }
        let bar = ProgressBar()
        var most = WaitingWork()
        while (try? await Task.sleep(for: pause)) != nil {
            guard let items = try? await client.pending().items else { continue }
            let left = WaitingWork(items)
            most.grow(to: left)
            if Task.isCancelled { break }
            bar.show(most.progress(with: left))
        }
        bar.clear()
    }
}

/// What waits to be sent.
struct WaitingWork: Equatable {
    var count = 0
    var byteCount: UInt64 = 0

    init() {}

    init(_ items: [PendingItemDocument]) {
        for item in items where !["download", "excluded", "list"].contains(item.kind) {
            count += 1
            byteCount += UInt64(Double(item.size) * (1 - min(max(item.progress ?? 0, 0), 1)))
        }
    }

    mutating func grow(to other: WaitingWork) {
        count = max(count, other.count)
        byteCount = max(byteCount, other.byteCount)
    }

    /// This is the most that has waited.
    func progress(with left: WaitingWork) -> ProgressDocument {
        ProgressDocument(
            filesDone: count - left.count, filesTotal: count, bytesDone: byteCount - left.byteCount, bytesTotal: byteCount,
            failures: [])
    }
}

/// What changes from one look of a watched status to the next.
struct StatusWatch {
    private static let shownMax = 3
    private var last: [String: (status: StatusDocument, at: Duration)] = [:]

    /// Rates, what is under way, and the time left. `place`: how an item is shown.
    mutating func rows(
        _ status: StatusDocument, _ pending: [PendingItemDocument], at now: Duration, _ place: (PendingItemDocument) -> String
    ) -> [[String]] {
        let before = last.updateValue((status, now), forKey: status.name)
        var rows: [[String]] = []
        if let before, now > before.at {
            let seconds = Double((now - before.at).nanoseconds) / 1e9
            let down = rate(status.bytesFetched, before.status.bytesFetched, seconds)
            let up = rate(status.bytesUploaded, before.status.bytesUploaded, seconds)
            rows.append(["  rates", "\(ByteSize.text(down))/s fetched, \(ByteSize.text(up))/s sent"])
            let left = pending.filter { $0.kind != "excluded" }.reduce(0.0) {
                $0 + Double($1.size) * (1 - ($1.progress ?? 0))
            }
            let all = Double(down + up)
            if left > 0, all > 0 { rows.append(["  time left", "about \(StatusCommand.age(Int(min(left / all, 1e9))))"]) }
        }
        for item in pending.filter(\.isRunning).prefix(StatusWatch.shownMax) {
            let percent = item.progress.map { " \(Int($0 * 100)) %" } ?? ""
            let silence = StatusCommand.silence(item.silentSince).map { ", \($0)" } ?? ""
            rows.append(["  under way", "\(item.kind) \(place(item)), \(ByteSize.text(item.size))\(percent)\(silence)"])
        }
        return rows
    }

    private func rate(_ now: UInt64, _ before: UInt64, _ seconds: Double) -> UInt64 {
        now < before ? 0 : UInt64(Double(now - before) / max(seconds, 0.001))
    }
}
