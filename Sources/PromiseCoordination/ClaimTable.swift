package import PromiseCore

/// Who may read and write what, as a state machine without clock, thread or I/O: calls go in, actions come out.
///
/// One rule makes it fair and free of deadlocks: a claim waits for every conflicting claim that came before it and still
/// exists, and for nothing else. A batch is one claim: it gets all of its items at once. So of all waiting claims the oldest
/// one never waits for another waiting one. What that does not cover, claims within claims, is looked for when a claim has
/// to wait: whoever would close a circle is refused.
///
/// A claim on a folder covers everything below it.
package struct ClaimTable: Sendable {
    package enum Action: Hashable, Sendable {
        case granted(ClaimID)
        case refused(ClaimID, Refusal)
        /// To be answered by `answered` with the same number.
        case ask(PresenterID, Question, number: UInt64, node: NodeID)
        case tell(PresenterID, Notice)
        /// Somebody waits for a claim for longer than that may hold others up as a matter of course.
        case overdue(ClaimID)
    }

    package enum Refusal: String, Hashable, Sendable {
        /// Not granted in time.
        case timedOut
        /// It would wait for somebody who waits for it.
        case deadlock
        /// A presenter could not do what it was asked, as save.
        case notPrepared
    }

    struct Claim: Sendable {
        var purpose: Purpose?
        /// The claims that end only after this one; nil: nobody said, so those of its purpose.
        var within: Set<ClaimID>?
        var intents: [Intent]
        /// It keeps nobody out: presenters are asked for all that is nested in it.
        var isPreparation = false
        /// Who is still to be asked, what is deepest first.
        var toAsk: [Asking] = []
        /// Of a preparation: who was asked what.
        var asked: [PresenterID: [Question]] = [:]
        /// Conflicting claims that came before, or were let in while this one's presenters were asked.
        var blockers: Set<ClaimID> = []
        var phase = Phase.waiting
        var deadline: Duration?
        /// Who was asked to give something up for this claim.
        var relinquished: [PresenterID] = []
        /// After so long it is said that somebody waits for it; nil: never.
        var patience: Duration?
        /// Somebody waits for it, and that is said then.
        var overdueAt: Duration?
    }

    enum Phase: Sendable {
        case waiting
        /// Presenters are asked; how many answers are missing.
        case preparing(Int)
        case granted
    }

    /// Claims at a node and below it.
    struct Place: Sendable {
        var claims: [ClaimID] = []
        var below: [ClaimID] = []
        var presenters: [PresenterID] = []
        var presentersBelow: [PresenterID] = []
        var isEmpty: Bool { claims.isEmpty && below.isEmpty && presenters.isEmpty && presentersBelow.isEmpty }
    }

    var claims: [ClaimID: Claim] = [:]
    var places: [NodeID: Place] = [:]
    var presenters: [PresenterID: Presenter] = [:]
    var questions: [UInt64: OpenQuestion] = [:]
    var preparations: Set<ClaimID> = []
    /// Those with a `patience`.
    var impatient: Set<ClaimID> = []
    private var nextNumber: UInt64
    var actions: [Action] = []
    /// How long a presenter may take for an answer.
    let answerLimit: Duration

    /// `firstNumber`: of claims, presenters and questions.
    package init(answerLimit: Duration, firstNumber: UInt64 = 1) {
        self.answerLimit = answerLimit
        nextNumber = firstNumber
    }

    mutating func takeNumber() -> UInt64 {
        defer { nextNumber += 1 }
        return nextNumber
    }

    /// What is to be done after the calls so far, in order; once.
    package mutating func takeActions() -> [Action] {
        if actions.isEmpty { return [] }
        defer { actions = [] }
        return actions
    }

    package var claimCount: Int { claims.count }
    package var presenterCount: Int { presenters.count }
    package func isGranted(_ claim: ClaimID) -> Bool { if case .granted? = claims[claim]?.phase { true } else { false } }

    // MARK: - Claims

    /// Enters a claim; `granted` or `refused` follows, at once or later. `deadline` is on the caller's clock. `within`: the
    /// claims that it is nested in. `isPreparation`: it keeps nobody out, and asks for what is nested in it. `patience`: how long
    /// others wait for it before that is said.
    package mutating func claim(
        _ intents: [Intent], purpose: Purpose? = nil, within: Set<ClaimID>? = nil, isPreparation: Bool = false,
        now: Duration = .zero, deadline: Duration? = nil, patience: Duration? = nil
    ) -> ClaimID {
        let id = ClaimID(rawValue: takeNumber())
        var claim = Claim(purpose: purpose, within: within, intents: intents, isPreparation: isPreparation)
        (claim.deadline, claim.patience) = (deadline, patience)
        var blockers: Set<ClaimID> = []
        forEachConflict(of: claim) { blockers.insert($0) }
        let (followers, others) = split(blockers, of: claim)
        claim.blockers = others
        if !claim.blockers.isEmpty, closesCircle(claim, followers) {
            actions.append(.refused(id, .deadlock))
            return id
        }
        for other in followers { claims[other]?.blockers.insert(id) }
        enter(id, claim)
        claims[id] = claim
        if isPreparation { preparations.insert(id) }
        if patience != nil { impatient.insert(id) }
        if claim.blockers.isEmpty { prepare(id, now: now) }
        return id
    }

    /// Ends a claim, granted or not; more than once is fine.
    package mutating func release(_ id: ClaimID, now: Duration = .zero) {
        guard let claim = claims.removeValue(forKey: id) else { return }
        leave(id, claim)
        preparations.remove(id)
        impatient.remove(id)
        for (number, question) in questions where question.claim == id { questions[number] = nil }
        for presenter in claim.relinquished { reacquire(presenter) }
        var freed: [ClaimID] = []
        forEachConflict(of: claim) { freed.append($0) }
        unblock(freed, from: id, now: now)
    }

    private mutating func unblock(_ others: [ClaimID], from id: ClaimID, now: Duration) {
        for other in Set(others).sorted() where claims[other]?.blockers.remove(id) != nil { goOn(other, now: now) }
    }

    /// Looks whether a claim has all it waited for.
    mutating func goOn(_ id: ClaimID, now: Duration) {
        guard let claim = claims[id], claim.blockers.isEmpty else { return }
        switch claim.phase {
        case .waiting: prepare(id, now: now)
        case .preparing(0): askNext(id, now: now)
        case .preparing, .granted: break
        }
    }

    mutating func grant(_ id: ClaimID) {
        claims[id]?.phase = .granted
        actions.append(.granted(id))
    }

    /// Refuses what has waited too long, and goes on without presenters that do not answer.
    package mutating func tick(now: Duration) {
        let late = claims.filter { claim in
            guard let deadline = claim.value.deadline, deadline <= now else { return false }
            if case .granted = claim.value.phase { return false }
            return true
        }
        for id in late.keys.sorted() {
            actions.append(.refused(id, .timedOut))
            release(id, now: now)
        }
        for id in Set(questions.values.lazy.filter { $0.deadline <= now }.map(\.presenter)).sorted() { giveUp(id, now: now) }
        tellOverdue(now)
    }

    /// When `tick` should be called next.
    package var nextDeadline: Duration? {
        let waiting: [Duration] = claims.values.compactMap { claim in
            if case .granted = claim.phase { nil } else { claim.deadline }
        }
        let overdue = impatient.compactMap { claims[$0]?.overdueAt }
        return (waiting + questions.values.map(\.deadline) + overdue).min()
    }

    // MARK: - Conflicts

    /// Every claim that cannot be inside together with this one. Some may come twice.
    func forEachConflict(of claim: Claim, _ body: (ClaimID) -> Void) {
        func look(_ id: ClaimID, at node: NodeID, _ access: Access, isBelow: Bool) {
            guard let other = claims[id], claim.purpose == nil || other.purpose != claim.purpose, !other.isPreparation
            else { return }
            for intent in other.intents where isBelow ? intent.folders.contains(node) : intent.isAt(node) {
                if intent.access.conflicts(with: access) { return body(id) }
            }
        }
        if claim.isPreparation { return }
        for intent in claim.intents {
            if let node = intent.place, node != intent.node, let place = places[node] {
                for id in place.claims { look(id, at: node, intent.access, isBelow: false) }
            }
            if let place = places[intent.node] {
                for id in place.claims { look(id, at: intent.node, intent.access, isBelow: false) }
                for id in place.below { look(id, at: intent.node, intent.access, isBelow: true) }
            }
            for folder in intent.folders {
                guard let place = places[folder] else { continue }
                for id in place.claims { look(id, at: folder, intent.access, isBelow: false) }
            }
        }
    }

    /// Whether an access of nobody in particular would have to wait now.
    package func isBlocked(_ intents: [Intent]) -> Bool {
        var isBlocked = false
        forEachConflict(of: Claim(purpose: nil, intents: intents)) { _ in isBlocked = true }
        return isBlocked
    }

    /// The claims in the way of an access of nobody in particular.
    package func conflicts(of intents: [Intent]) -> Set<ClaimID> {
        var result: Set<ClaimID> = []
        forEachConflict(of: Claim(purpose: nil, intents: intents)) { result.insert($0) }
        return result
    }

    /// Whether a claim is inside and allows to write one of these items, or something it is part of or has in it.
    package func isGranted(_ id: ClaimID, toWrite intents: [Intent]) -> Bool {
        guard isGranted(id), let claim = claims[id] else { return false }
        return claim.intents.contains { own in
            own.access.isWriting && intents.contains { own.covers($0) || $0.folders.contains(own.node) }
        }
    }
}

extension Intent {
    fileprivate func isAt(_ node: NodeID) -> Bool { self.node == node || place == node }

    /// It is about the other's item or place, or about something in it.
    fileprivate func covers(_ other: Intent) -> Bool {
        isAt(other.node) || other.place.map(isAt) ?? false || folders.contains(other.node)
    }
}
