import Synchronization

/// One writer at a time for each name, within this process: servers check conditions and write in two steps.
package final class PathTurns: Sendable {
    private let waiting = Mutex<[String: [CheckedContinuation<Void, Never>]]>([:])

    package init() {}

    package func take<Value: Sendable, Problem: Error>(
        _ path: String, _ body: () async throws(Problem) -> Value
    ) async throws(Problem) -> Value {
        await withCheckedContinuation { continuation in
            let isFree = waiting.withLock { waiting in
                if waiting[path] != nil {
                    waiting[path]?.append(continuation)
                    return false
                }
                waiting[path] = []
                return true
            }
            if isFree { continuation.resume() }
        }
        defer { give(path) }
        return try await body()
    }

    /// Both, in one order, so that two who cross do not wait for each other. Where they are the same
    /// one it is taken once: who waits for the turn that it has itself waits for ever.
    package func takeBoth<Value: Sendable, Problem: Error>(
        _ one: String, _ other: String, _ body: () async throws(Problem) -> Value
    ) async throws(Problem) -> Value {
        let (first, second) = (min(one, other), max(one, other))
        guard first != second else { return try await take(first, body) }
        return try await take(first) { () async throws(Problem) in try await take(second, body) }
    }

    private func give(_ path: String) {
        let next = waiting.withLock { waiting -> CheckedContinuation<Void, Never>? in
            guard var queue = waiting[path] else { return nil }
            if queue.isEmpty {
                waiting[path] = nil
                return nil
            }
            let next = queue.removeFirst()
            waiting[path] = queue
            return next
        }
        next?.resume()
    }
}
