import FoundationEssentials
import PromiseCore
import PromiseProvider
import PromiseS3
import Testing

/// What a server invents is not kept without end.
@Suite struct EndlessAnswerTests {
    private func document(_ rows: Int, _ values: Int = 1) -> S3Document? {
        let row = "<c>" + (0..<values).map { "<k\($0)/>" }.joined() + "</c>"
        return S3Document.parse(Data(("<a>" + String(repeating: row, count: rows) + "</a>").utf8))
    }

    /// Each of five million empty elements was a row with a dictionary.
    @Test func anAnswerWithMoreThanWasAskedForIsNone() {
        #expect(document(10_000)?.rows.count == 10_000)
        #expect(document(20_001) == nil)
        #expect(document(1, 100)?.rows.first?.values.count == 100)
        #expect(document(1, 101) == nil)
    }

    /// New keys on every page were listed until the disk was full.
    @Test func aListingOfEverNewPagesEnds() {
        var turns = PageTurns()
        var count = 0
        #expect(throws: ProviderError.self) {
            while count < 1_000_000 {
                count += 1
                try turns.take(PageToken(rawValue: "\(count)"), first: count)
            }
        }
        #expect(count == 100_001)
    }
}
