// Who must not wait for whom: a presenter that saves for the one who asks it, and claims that are nested.

extension ClaimTable {
    /// A presenter that was asked to save does so by a claim of its own, which must not wait for the one that asks, nor for
    /// anybody who waits for that one, through whomever. Those wait for it: the followers.
    func split(_ conflicts: Set<ClaimID>, of claim: Claim) -> (followers: Set<ClaimID>, others: Set<ClaimID>) {
        guard let purpose = claim.purpose, !questions.isEmpty else { return ([], conflicts) }
        let asking = Set(questions.values.lazy.filter { presenters[$0.presenter]?.purpose == purpose }.map(\.claim))
        guard !asking.isEmpty else { return ([], conflicts) }
        let followers = conflicts.filter { waits($0, forOneOf: asking) }
        return (followers, conflicts.subtracting(followers))
    }

    /// The same of claims of its purpose that waited already when a presenter is asked: who waits for one of
    /// them before it answers would wait for himself.
    mutating func letIn(_ purpose: Purpose, before asking: ClaimID, now: Duration) {
        let waiting = claims.filter { id, claim in
            claim.purpose == purpose && !claim.blockers.isEmpty && id != asking
        }
        for id in waiting.keys.sorted() {
            let followers = claims[id]?.blockers.filter { waits($0, forOneOf: [asking]) } ?? []
            claims[id]?.blockers.subtract(followers)
            for other in followers { claims[other]?.blockers.insert(id) }
            if !followers.isEmpty { goOn(id, now: now) }
        }
    }

    /// Whether a claim is one of these, or waits for one of them, through whomever.
    func waits(_ id: ClaimID, forOneOf wanted: Set<ClaimID>) -> Bool {
        var seen: Set<ClaimID> = []
        var waiting = [id]
        while let next = waiting.popLast() {
            if wanted.contains(next) { return true }
            if seen.insert(next).inserted, let claim = claims[next] { waiting += claim.blockers }
        }
        return false
    }

    /// Whether the claim would wait for somebody who waits for it, or for a claim that it is nested in. `followers`: who is
    /// going to wait for it.
    func closesCircle(_ claim: Claim, _ followers: Set<ClaimID>) -> Bool {
        guard claim.purpose != nil || claim.within != nil else { return false }
        func isAround(_ id: ClaimID, _ other: Claim) -> Bool {
            if case .waiting = other.phase { return false }
            return claim.isWithin(id, other)
        }
        guard !followers.isEmpty || claims.contains(where: { isAround($0.key, $0.value) }) else { return false }
        var seen: Set<ClaimID> = []
        var waiting = Array(claim.blockers)
        while let id = waiting.popLast() {
            if followers.contains(id) { return true }
            guard seen.insert(id).inserted, let other = claims[id] else { continue }
            waiting += other.blockers
            if case .waiting = other.phase { continue }
            if isAround(id, other) { return true }
            // It ends when what is nested in it has ended.
            for (next, third) in claims where !third.blockers.isEmpty && third.isWithin(id, other) { waiting.append(next) }
        }
        return false
    }
}

extension ClaimTable.Claim {
    func isWithin(_ id: ClaimID, _ other: ClaimTable.Claim) -> Bool {
        within?.contains(id) ?? (purpose != nil && other.purpose == purpose)
    }
}
