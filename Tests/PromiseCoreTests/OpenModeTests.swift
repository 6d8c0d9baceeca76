import PromiseCore
import Testing

@Suite struct OpenModeTests {
    private enum Event: CaseIterable, CustomStringConvertible {
        case openPassthrough, openCached, registered, refused, close

        var description: String {
            switch self {
            case .openPassthrough: "open, passthrough possible"
            case .openCached: "open, passthrough impossible"
            case .registered: "registered"
            case .refused: "refused"
            case .close: "close"
            }
        }
    }

    private static let backing = BackingID(rawValue: 7)
    private static let other = BackingID(rawValue: 8)

    /// States by what leads to them.
    private static let states: [(name: String, events: [Event])] = [
        ("idle", []),
        ("cached(1)", [.openCached]),
        ("cached(2)", [.openCached, .openCached]),
        ("passthrough(1)", [.openPassthrough, .registered]),
        ("passthrough(2)", [.openPassthrough, .registered, .openPassthrough]),
    ]

    private func shown(_ mode: OpenMode) -> String {
        switch mode.state {
        case .idle: "idle"
        case .cached(let opens): "cached(\(opens))"
        case .passthrough(let opens, let backing): "passthrough(\(opens))" + (backing == Self.backing ? "" : " of another file")
        }
    }

    /// nil: the event is a mistake of the caller in this state and traps.
    private func apply(_ event: Event, to mode: inout OpenMode, backing: BackingID) -> String? {
        switch event {
        case .openPassthrough: return "\(grant: mode.open(passthroughPossible: true))"
        case .openCached: return "\(grant: mode.open(passthroughPossible: false))"
        case .registered: return mode.isIdle ? "\(grant: mode.opened(with: backing))" : nil
        case .refused: return mode.isIdle ? "\(grant: mode.opened(with: nil))" : nil
        case .close:
            if mode.isIdle { return nil }
            switch mode.close() {
            case .nothing: return "nothing"
            case .lastClose(let release): return release.map { "release \($0.rawValue)" } ?? "last close"
            }
        }
    }

    /// > All opens of one file share one mode.
    @Test func everyEventInEveryState() {
        var transcript: [String] = []
        for (name, events) in Self.states {
            for event in Event.allCases {
                var mode = OpenMode()
                for past in events { _ = apply(past, to: &mode, backing: Self.backing) }
                #expect(shown(mode) == name)
                let answer = apply(event, to: &mode, backing: Self.backing) ?? "trap"
                transcript.append("\(name): \(event) -> \(answer), \(shown(mode))")
            }
        }
        #expect(
            transcript == [
                "idle: open, passthrough possible -> register, idle",
                "idle: open, passthrough impossible -> cached, cached(1)",
                "idle: registered -> passthrough 7, passthrough(1)",
                "idle: refused -> cached, cached(1)",
                "idle: close -> trap, idle",
                "cached(1): open, passthrough possible -> cached, cached(2)",
                "cached(1): open, passthrough impossible -> cached, cached(2)",
                "cached(1): registered -> trap, cached(1)",
                "cached(1): refused -> trap, cached(1)",
                "cached(1): close -> last close, idle",
                "cached(2): open, passthrough possible -> cached, cached(3)",
                "cached(2): open, passthrough impossible -> cached, cached(3)",
                "cached(2): registered -> trap, cached(2)",
                "cached(2): refused -> trap, cached(2)",
                "cached(2): close -> nothing, cached(1)",
                "passthrough(1): open, passthrough possible -> passthrough 7, passthrough(2)",
                "passthrough(1): open, passthrough impossible -> passthrough 7, passthrough(2)",
                "passthrough(1): registered -> trap, passthrough(1)",
                "passthrough(1): refused -> trap, passthrough(1)",
                "passthrough(1): close -> release 7, idle",
                "passthrough(2): open, passthrough possible -> passthrough 7, passthrough(3)",
                "passthrough(2): open, passthrough impossible -> passthrough 7, passthrough(3)",
                "passthrough(2): registered -> trap, passthrough(2)",
                "passthrough(2): refused -> trap, passthrough(2)",
                "passthrough(2): close -> nothing, passthrough(1)",
            ])
    }

    @Test func anInodeCanChangeItsModeBetweenItsOpens() {
        var mode = OpenMode()
        #expect(mode.open(passthroughPossible: false) == .cached && !mode.isPassthrough)
        #expect(mode.close() == .lastClose(release: nil) && mode.isIdle)
        #expect(mode.open(passthroughPossible: true) == .register)
        #expect(mode.opened(with: Self.other) == .passthrough(Self.other) && mode.isPassthrough)
        #expect(mode.close() == .lastClose(release: Self.other))
    }

    @Test func closingAnIdleInodeTraps() async {
        await #expect(processExitsWith: .failure) {
            var mode = OpenMode()
            _ = mode.close()
        }
    }

    @Test func registeringForAnOpenInodeTraps() async {
        await #expect(processExitsWith: .failure) {
            var mode = OpenMode()
            _ = mode.open(passthroughPossible: false)
            _ = mode.opened(with: BackingID(rawValue: 1))
        }
    }
}

extension String.StringInterpolation {
    fileprivate mutating func appendInterpolation(grant: OpenMode.Grant) {
        switch grant {
        case .register: appendLiteral("register")
        case .cached: appendLiteral("cached")
        case .passthrough(let backing): appendLiteral("passthrough \(backing.rawValue)")
        }
    }
}
