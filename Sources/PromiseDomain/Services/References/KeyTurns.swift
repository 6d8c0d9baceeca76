import Synchronization

/// One at a time for each key, in the order of asking. For what waits for a provider, never for a request of the mount.
final class KeyTurns<Key: Hashable & Sendable>: Sendable {
    /// Who waits for each key that somebody has.
    private let waiting = Mutex<[Key: [CheckedContinuation<Void, Never>]]>([:])

    /// Returns when it is the caller's turn, who gives it back.
    func take(_ key: Key) async {
        await withCheckedContinuation { continuation in
            let isFree = waiting.withLock { waiting in
                if waiting[key] == nil {
                    waiting[key] = []
                    return true
                }
                waiting[key]?.append(continuation)
                return false
            }
            if isFree { continuation.resume() }
        }
    }

    func giveBack(_ key: Key) {
        let next = waiting.withLock { waiting -> CheckedContinuation<Void, Never>? in
            guard let others = waiting[key], let first = others.first else {
                waiting[key] = nil
                return nil
            }
            waiting[key] = Array(others.dropFirst())
            return first
        }
        next?.resume()
    }
}
