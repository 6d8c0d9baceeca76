import PromiseCore
import PromiseSync
import Testing

@Suite struct QuietFoldersTests {
    private let folders = Set((0..<100).map { ItemIdentifier("/folder\($0)") })

    /// How many folders the polls look at from one time to another, with one poll each half minute.
    private func looks(
        _ quiet: inout QuietFolders, from begin: Int, to end: Int, using used: ItemIdentifier? = nil
    ) -> [ItemIdentifier: Int] {
        var counts: [ItemIdentifier: Int] = [:]
        for time in stride(from: begin, to: end, by: 30) {
            let now = Duration.seconds(time)
            if let used { quiet.used(used, at: now) }
            let due = quiet.due(of: folders, at: now)
            quiet.looked(at: due, of: folders, at: now)
            for folder in due { counts[folder, default: 0] += 1 }
        }
        return counts
    }

    @Test func whatNobodyHasUsedForTenMinutesIsLookedAtEverMoreRarely() {
        var quiet = QuietFolders()
        #expect(looks(&quiet, from: 0, to: 600).values.reduce(0, +) == 2_000)
        var last = 20.0
        for (begin, end) in [(600, 1_200), (1_200, 2_400), (2_400, 4_800), (4_800, 9_600)] {
            let count = looks(&quiet, from: begin, to: end).values.reduce(0, +)
            let perMinute = Double(count) * 60 / Double(end - begin)
            #expect(perMinute < last, "\(perMinute) from \(begin)")
            last = perMinute
        }
    }

    /// Never in one moment all of them.
    @Test func whatIsLookedAtRarelyIsSpreadOut() {
        var quiet = QuietFolders()
        _ = looks(&quiet, from: 0, to: 600)
        for begin in stride(from: 600, to: 7_200, by: 60) {
            let count = looks(&quiet, from: begin, to: begin + 60).values.reduce(0, +)
            #expect(count <= 30, "\(count) in the minute from \(begin)")
        }
    }

    @Test func whatIsUsedIsLookedAtAtEveryPoll() {
        var quiet = QuietFolders()
        _ = looks(&quiet, from: 0, to: 30)
        let used = ItemIdentifier("/folder7")
        #expect(looks(&quiet, from: 30, to: 6_030, using: used)[used] == 200)
        #expect(!quiet.isQuiet(used, at: .seconds(6_030)))
        #expect(quiet.isQuiet(ItemIdentifier("/folder8"), at: .seconds(6_030)))
    }

    @Test func aFolderThatComesNewIsLookedAt() {
        var quiet = QuietFolders()
        _ = looks(&quiet, from: 0, to: 3_000)
        let fresh = ItemIdentifier("/fresh")
        #expect(quiet.due(of: folders.union([fresh]), at: .seconds(3_000)).contains(fresh))
    }

    @Test func nothingWaitsForLongerThanADay() {
        var quiet = QuietFolders()
        _ = looks(&quiet, from: 0, to: 30)
        let day = 86_400
        quiet.looked(at: folders, of: folders, at: .seconds(100 * day))
        #expect(quiet.due(of: folders, at: .seconds(101 * day - 60)).isEmpty)
        #expect(quiet.due(of: folders, at: .seconds(101 * day)) == folders)
    }
}
