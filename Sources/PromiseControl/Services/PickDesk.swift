import PromiseCore
import PromiseWire
import Synchronization

/// Where applications that ask for documents meet whoever shows pickers to the person. Nothing of
/// it is kept: an ask ends with its application's connection, and with the connection of whoever
/// shows it.
///
/// **Threads.** Any; `state` is a leaf.
final class PickDesk: Sendable {
    /// For whoever shows pickers.
    enum Notice: Sendable {
        case asked(PickAsked)
        case withdrawn(PickAsked)
    }

    private struct Shower {
        /// Nil: of all launches.
        var launch: String?
        var tell: AsyncStream<Notice>.Continuation
    }

    private struct Ask {
        var asked: PickAsked
        var shower: UInt64
        var answer: AsyncStream<PickAnswer>.Continuation
    }

    private struct State {
        var showers: [UInt64: Shower] = [:]
        var asks: [UInt64: Ask] = [:]
        var next: UInt64 = 0

        mutating func number() -> UInt64 {
            next += 1
            return next
        }
    }

    private let state = Mutex(State())

    // MARK: Showing

    func show(
        launch: String?, _ tell: AsyncStream<Notice>.Continuation
    ) -> UInt64 {
        state.withLock { state in
            let number = state.number()
            state.showers[number] = Shower(launch: launch, tell: tell)
            return number
        }
    }

    /// Who was asking by it learns that nobody shows it any more.
    func stopShowing(_ number: UInt64) {
        let left = state.withLock { state in
            state.showers[number] = nil
            let left = state.asks.filter { $0.value.shower == number }
            for id in left.keys { state.asks[id] = nil }
            return left.values.map(\.answer)
        }
        for answer in left { answer.finish() }
    }

    /// False: nobody asks that any more.
    func answer(_ id: UInt64, _ answer: PickAnswer) -> Bool {
        guard let ask = state.withLock({ $0.asks.removeValue(forKey: id) }) else { return false }
        ask.answer.yield(answer)
        ask.answer.finish()
        return true
    }

    // MARK: Asking

    /// One at a time of a launch: nobody is to be buried in pickers.
    func ask(
        _ request: PickRequest, of application: String, launch: String
    ) throws(Failure) -> (id: UInt64, answers: AsyncStream<PickAnswer>) {
        let (answers, answer) = AsyncStream.makeStream(of: PickAnswer.self)
        return try state.withLock { state throws(Failure) in
            guard !state.asks.values.contains(where: { $0.asked.launch == launch }) else {
                throw Failure(.busy, "the person is being asked already")
            }
            // Whoever shows those of this launch alone is nearer than one for all.
            let fitting = state.showers.filter {
                $0.value.launch == nil || $0.value.launch == launch
            }
            let best = fitting.max { left, right in
                let (one, other) = (left.value.launch != nil, right.value.launch != nil)
                return one == other ? left.key < right.key : !one
            }
            guard let best else {
                throw Failure(
                    .notSupported,
                    "nobody shows pickers here: the person runs 'promisefs pick --serve'")
            }
            let asked = PickAsked(
                id: state.number(), application: application, launch: launch, request: request)
            state.asks[asked.id] = Ask(asked: asked, shower: best.key, answer: answer)
            best.value.tell.yield(.asked(asked))
            return (asked.id, answers)
        }
    }

    /// The application has gone, or wants nothing any more. Does nothing for one that was answered.
    func withdraw(_ id: UInt64) {
        state.withLock { state in
            guard let ask = state.asks.removeValue(forKey: id) else { return }
            ask.answer.finish()
            state.showers[ask.shower]?.tell.yield(.withdrawn(ask.asked))
        }
    }

    /// The domain is being unmounted.
    func end() {
        let showers = state.withLock { Array($0.showers.values) }
        for shower in showers { shower.tell.finish() }
    }
}
