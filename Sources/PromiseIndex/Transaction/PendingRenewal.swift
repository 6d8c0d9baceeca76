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
        early = Timestamp(nanoseconds: due.rawValue - (due.rawValue - now.rawValue) / 8)
        old = now.advanced(by: .zero - bound)
    }

    /// What has waited for as long as it may keeps the time that the engine gave it, if that is sooner.
    /// By a clock that was set back it begins to wait now.
    static let statement: StaticString = """
        INSERT INTO pending VALUES (?1, NULL, ?2, ?3, 0, NULL, NULL)
        ON CONFLICT (id) DO UPDATE SET
            due = CASE WHEN since > ?2 THEN ?3 WHEN since > ?5 THEN min(?3, since + ?2 - ?5) ELSE min(due, ?3) END,
            since = min(since, ?2), attempts = 0, error = NULL, message = NULL
            WHERE attempts <> 0 OR error IS NOT NULL OR since > ?2 OR due NOT BETWEEN ?4 AND ?3
                AND NOT (since <= ?5 AND due <= ?3) AND due <> since + ?2 - ?5
        """

    func bind(to binder: inout Binder) {
        for time in [now, due, early, old] { binder.time(time) }
    }
}
