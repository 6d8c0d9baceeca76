// Claims that may keep others out for a while only: whoever has one is told on when somebody waits for its end.

extension ClaimTable {
    mutating func tellOverdue(_ now: Duration) {
        for id in impatient.sorted() {
            guard let patience = claims[id]?.patience, let end = claims[id]?.overdueAt, end <= now else { continue }
            claims[id]?.overdueAt = now + patience
            actions.append(.overdue(id))
        }
    }

    /// Looks who is waited for, of the claims for which that is to be said; to be called after each change. Returns when the
    /// first of them is overdue.
    package mutating func watchWaiters(now: Duration) -> Duration? {
        var first: Duration?
        for id in impatient {
            guard let claim = claims[id], let patience = claim.patience else { continue }
            var isWanted = false
            if isGranted(id) {
                forEachConflict(of: claim) { if claims[$0]?.blockers.contains(id) == true { isWanted = true } }
            }
            let end = isWanted ? claim.overdueAt ?? now + patience : nil
            claims[id]?.overdueAt = end
            first = [first, end].compactMap { $0 }.min()
        }
        return first
    }
}
