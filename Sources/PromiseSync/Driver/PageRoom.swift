import Synchronization

/// Pages of one listing that the engine has not stored yet: memory holds a few of them, not a
/// million items.
final class PageRoom: Sendable {
    private static let countMax = 4

    private struct State {
        var count = 0
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    /// Returns when there is room.
    func add() async {
        await withCheckedContinuation { continuation in
            let hasRoom = state.withLock { state in
                state.count += 1
                if state.count > PageRoom.countMax { state.waiting.append(continuation) }
                return state.count <= PageRoom.countMax
            }
            if hasRoom { continuation.resume() }
        }
    }

    /// A page is stored, or will never be.
    func remove() {
        let next = state.withLock { state in
            state.count -= 1
            return state.waiting.isEmpty ? nil : state.waiting.removeFirst()
        }
        next?.resume()
    }
}
