/// How much may be fetched because of one program.
package struct HydrationBudget: Sendable, Hashable {
    package var bytes: UInt64
    /// After so long, counted from the first fetch, the program may fetch as much again.
    package var period: Duration

    package static let day = Duration.seconds(86_400)

    package init(bytes: UInt64, period: Duration = HydrationBudget.day) {
        self.bytes = bytes
        self.period = period
    }
}

/// What programs with a budget have fetched in their present period. Pure: the time is handed in. Bounded: when there are too
/// many programs, those that come later share one purse.
package struct HydrationBudgets: Sendable, Hashable {
    private struct Purse: Sendable, Hashable {
        var end: Duration
        var spent: UInt64 = 0
    }

    package static let purseCountMax = 256
    private var purses: [String: Purse] = [:]

    package init() {}

    /// Whether the program may begin another fetch. One that has begun goes on, so a budget may be exceeded by what a program
    /// has open.
    package mutating func admits(_ program: String, _ budget: HydrationBudget, at now: Duration) -> Bool {
        if purses[program] == nil, purses.count >= HydrationBudgets.purseCountMax {
            purses = purses.filter { $0.value.end > now }
        }
        let name = owner(of: program)
        if let purse = purses[name], purse.end > now { return purse.spent < budget.bytes }
        purses[name] = Purse(end: now + budget.period)
        return budget.bytes > 0
    }

    /// Bytes have come for a program; of one without a budget nothing is kept.
    package mutating func fetched(_ bytes: UInt64, for program: String) {
        let name = owner(of: program)
        purses[name]?.spent += bytes
    }

    private func owner(of program: String) -> String {
        purses[program] != nil || purses.count < HydrationBudgets.purseCountMax ? program : HydrationLedger.others
    }
}
