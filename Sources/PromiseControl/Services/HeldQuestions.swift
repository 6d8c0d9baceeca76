package import PromiseCoordination
import Synchronization

/// How long presenters of a launch let others wait for answers about what it may only read: five seconds of a minute in all,
/// however many there are, however deep in folders, and whatever they are asked one after the other.
package struct HeldQuestions {
    private struct Question {
        var presenter: PresenterID
        var asked: ContinuousClock.Instant
    }

    /// As long as one presenter may take.
    static let allowance = Duration.seconds(5)
    private static let penalty = Duration.seconds(60)

    private var open: [UInt64: Question] = [:]
    /// Before the questions that are open now.
    private var used = Duration.zero
    /// When the first of those that are open was asked; else when the last one was answered.
    private var changed: ContinuousClock.Instant?
    private var barredUntil: ContinuousClock.Instant?

    package init() {}

    /// How long others may wait for the answer: nil, not at all.
    package mutating func ask(_ number: UInt64, of presenter: PresenterID, now: ContinuousClock.Instant) -> Duration? {
        if let barredUntil, now < barredUntil { return nil }
        barredUntil = nil
        if open.isEmpty {
            if let changed { used = max(.zero, used - (now - changed) / 12) }
            changed = now
        }
        open[number] = Question(presenter: presenter, asked: now)
        return max(.zero, HeldQuestions.allowance - waited(now))
    }

    package mutating func answered(_ number: UInt64, now: ContinuousClock.Instant) {
        if open[number] != nil { close([number], now) }
    }

    package mutating func removed(_ presenter: PresenterID, now: ContinuousClock.Instant) {
        close(open.filter { $0.value.presenter == presenter }.map(\.key), now)
    }

    /// What nobody is to wait for any more. Whom a presenter has let wait for all of its time goes on by himself, and
    /// asks it no more.
    package mutating func end(now: ContinuousClock.Instant) -> [UInt64: PresenterID] {
        guard !open.isEmpty, waited(now) >= HeldQuestions.allowance else { return [:] }
        let late = open.filter { now - $0.value.asked < HeldQuestions.allowance }.mapValues(\.presenter)
        open = [:]
        used = .zero
        changed = nil
        barredUntil = now + HeldQuestions.penalty
        return late
    }

    private func waited(_ now: ContinuousClock.Instant) -> Duration {
        used + (open.isEmpty ? .zero : changed.map { now - $0 } ?? .zero)
    }

    private mutating func close(_ numbers: [UInt64], _ now: ContinuousClock.Instant) {
        guard !open.isEmpty else { return }
        let waited = waited(now)
        for number in numbers { open[number] = nil }
        if open.isEmpty {
            used = waited
            changed = now
        }
    }
}

/// A presenter of a launch, which can be asked before its number is known here.
final class AskedPresenter: Sendable {
    private let state = Mutex<(id: PresenterID?, early: [UInt64])>((nil, []))

    /// Nil when `begin` gives the question.
    func ask(_ number: UInt64) -> PresenterID? {
        state.withLock { state in
            if state.id == nil { state.early.append(number) }
            return state.id
        }
    }

    func begin(_ id: PresenterID) -> [UInt64] {
        state.withLock { state in
            defer { state = (id, []) }
            return state.early
        }
    }
}
