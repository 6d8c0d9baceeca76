import PromiseExtension
import PromiseProvider
import Testing

/// When an extension's program is started, given up and started again.
struct ExtensionLifeTests {
    @Test func itIsStartedAtOnceAndRestedLongerAfterEachEnd() {
        var life = ExtensionLife(now: .zero)
        var now = Duration.zero
        var rests: [Duration] = []
        for _ in 0..<12 {
            let isStarted = life.beginStart(now: now)
            #expect(isStarted)
            life.ended("it ended with status 1", now: now)
            guard case .resting(let until) = life.phase else { return #expect(Bool(false), "it does not rest") }
            rests.append(until - now)
            let isEarly = life.beginStart(now: until - .milliseconds(1))
            #expect(!isEarly)
            now = until
        }
        #expect(rests.prefix(4) == [.milliseconds(200), .milliseconds(400), .milliseconds(800), .milliseconds(1600)])
        #expect(rests.last == .seconds(30) && life.trouble == "it ended with status 1")
    }

    @Test func whoServedLongIsStartedAgainSoon() {
        var life = ExtensionLife(now: .zero)
        for second in [0, 10, 20] {
            _ = life.beginStart(now: .seconds(second))
            life.ended("", now: .seconds(second))
        }
        _ = life.beginStart(now: .seconds(30))
        life.listens(now: .seconds(31))
        life.ended("", now: .seconds(100))
        #expect(life.phase == .resting(until: .seconds(100) + .milliseconds(200)))
    }

    @Test func itIsTakenToHangAfterSilencesInARow() {
        var life = ExtensionLife(now: .zero)
        _ = life.beginStart(now: .zero)
        #expect(!life.isLate(now: .seconds(9)) && life.isLate(now: .seconds(10)))
        life.listens(now: .seconds(1))
        #expect(!life.isLate(now: .seconds(60)))
        let before = (0..<2).map { _ in life.fellSilent() }
        life.answered()
        let after = (0..<3).map { _ in life.fellSilent() }
        #expect(before == [false, false] && after == [false, false, true])
    }

    @Test func whatIsStoppedIsNeverStartedAgain() {
        var life = ExtensionLife(now: .zero)
        _ = life.beginStart(now: .zero)
        life.stop()
        life.ended("", now: .seconds(1))
        let isStarted = life.beginStart(now: .seconds(100))
        #expect(life.phase == .stopped && !isStarted)
    }

    @Test func outputBecomesLinesAndAFloodIsCut() {
        var lines = OutputLines()
        let first = lines.take(Array("one\ntw".utf8), now: .zero) + lines.take(Array("o\n".utf8), now: .zero)
        #expect(first == [Array("one".utf8), Array("two".utf8)])
        let long = lines.take([UInt8](repeating: 0x61, count: 5000) + [0x0A], now: .zero)
        #expect(long.count == 1 && long[0].count < 1100)
        let flood = lines.take([UInt8](repeating: 0x0A, count: 1000), now: .zero)
        #expect(flood.count == OutputLines.linesMax - 3)
        let later = lines.take(Array("x\nrest".utf8), now: .seconds(10)).map { String(decoding: $0, as: UTF8.self) }
        #expect(later == ["(903 more lines were left out)", "x"])
        let rest = lines.end()
        #expect(rest == [Array("rest".utf8)])
    }

    @Test func namesOfExtensionsComeBackAsTheyWere() throws {
        for name in ["extension:/a/b.sock", "extension+exec:/usr/lib/x", "extension+exec:/x?--store%3D%2Fa%20b&-v"] {
            let location = try ExtensionLocation(parsing: name)
            #expect(location.name == name)
        }
        let location = try ExtensionLocation(parsing: "extension+exec:/x/y.py?--store=/a&b%26c")
        #expect(location.form == .program(path: "/x/y.py", arguments: ["--store=/a", "b&c"]) && location.shortName == "y.py")
        for name in ["extension:a", "extension+exec:", "extension+exec:/x?%zz", "extension+exec:/x?%00", "extension+tcp:/x"] {
            #expect(throws: ProviderError.self) { try ExtensionLocation(parsing: name) }
        }
    }
}
