package import PromiseCore

/// An entry is changed, perhaps once more, and is to be told when it has rested.
package struct PendingRenewal: Sendable {
    private let now: Timestamp
    private let due: Timestamp
    /// An eighth of the quiet time sooner is the same: changes follow each other, and each would move
    /// the row in the order of due times.
    private let early: Timestamp
    /// What waits since before then has waited for as long as it may.
    private let old: Timestamp

    /// `bound`: what goes on being changed is told after this time all the same.
    package init(now: Timestamp, due: Timestamp, bound: Duration) {
        (self.now, self.due) = (now, due)
        early = Timestamp(nanoseconds: due.rawValue - due.nanoseconds(since: now) / 8)
        old = now.advanced(by: .zero - bound)
    }

    /// What has waited for as long as it may keeps the time that the engine gave it, if that is sooner
    /// or the provider has refused it: all of it would be sent again for each change, and nobody would
    /// see why it does not arrive. By a clock that was set back it begins to wait now.
    static let statement: StaticString = """
        INSERT INTO pending VALUES (?1, NULL, ?2, ?3, 0, NULL, NULL)
        ON CONFLICT (id) DO UPDATE SET
            due = CASE WHEN since > ?2 THEN ?3 WHEN since > ?5 THEN min(?3, since + ?2 - ?5)
                WHEN attempts = 0 THEN min(due, ?3) ELSE due END,
            since = min(since, ?2), attempts = iif(since > ?5, 0, attempts),
            error = iif(since > ?5, NULL, error), message = iif(since > ?5, NULL, message)
            WHERE CASE WHEN since > ?2 THEN TRUE WHEN since <= ?5 THEN attempts = 0 AND due > ?3
                ELSE attempts <> 0 OR error IS NOT NULL
                    OR due NOT BETWEEN ?4 AND ?3 AND due <> since + ?2 - ?5 END
        """

    func bind(to binder: inout Binder) {
        for time in [now, due, early, old] { binder.time(time) }
    }
}
