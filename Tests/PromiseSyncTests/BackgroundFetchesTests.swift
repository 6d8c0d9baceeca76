import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSync
import PromiseTestSupport
import Testing

@Suite struct BackgroundFetchesTests {
    private func node(_ number: Int) -> NodeID { NodeID(rawValue: UInt64(number)) }

    /// `pinned`: what is pinned and not here.
    private func next(_ fetches: inout BackgroundFetches, at seconds: Int = 0, pinned: [Int] = []) -> [Int] {
        fetches.next(at: .seconds(seconds)) { after, limit in
            Array(pinned.sorted().map(node).filter { $0 > after }.prefix(limit))
        }.map { Int($0.rawValue) }
    }

    @Test func aFewAreFetchedAtATimeInTheirOrder() {
        var fetches = BackgroundFetches()
        fetches.ask(for: (1...100).map(node))
        #expect(next(&fetches) == Array(1...32))
        #expect(next(&fetches) == [])
        #expect(fetches.waiting(limit: 2) == [node(33), node(34)])
        fetches.ended(node(7), .done, at: .zero)
        #expect(next(&fetches) == [33])
        for number in 1...33 { fetches.ended(node(number), .done, at: .zero) }
        #expect(next(&fetches) == Array(34...65))
    }

    @Test func whatIsPinnedComesAfterWhatWasAskedFor() {
        var fetches = BackgroundFetches()
        fetches.lookForPinned()
        fetches.ask(for: [node(500)])
        #expect(next(&fetches, pinned: [3, 1, 2]) == [500, 1, 2, 3])
    }

    @Test func allThatIsPinnedComesHoweverOftenItIsLookedFor() {
        var fetches = BackgroundFetches()
        var missing = Set(1...200)
        var fetched: [Int] = []
        while true {
            fetches.lookForPinned()
            let begun = next(&fetches, pinned: Array(missing))
            fetched += begun
            guard let last = fetches.running.first else { break }
            fetches.ended(last, .done, at: .zero)
            missing.remove(Int(last.rawValue))
        }
        #expect(fetched.sorted() == Array(1...200))
    }

    @Test func whatIsNotPinnedAnyMoreIsNotLookedForAgain() {
        var fetches = BackgroundFetches()
        #expect(next(&fetches, pinned: [1]) == [])
        fetches.lookForPinned()
        #expect(next(&fetches, pinned: []) == [])
        #expect(fetches.nextPass == nil)
    }

    /// It came to its end, of however many bytes, after its pin was taken away.
    @Test func whatIsPinnedNoLongerIsFetchedNoFurther() {
        var fetches = BackgroundFetches()
        fetches.lookForPinned()
        #expect(next(&fetches, pinned: [1, 2]) == [1, 2])
        let ends = [fetches.unpin(node(1)), fetches.unpin(node(1)), fetches.unpin(node(3))]
        #expect(ends == [true, false, false])
        fetches.ended(node(1), .interrupted, at: .zero)
        fetches.ended(node(2), .interrupted, at: .zero)
        #expect(next(&fetches, pinned: []) == [2])
    }

    @Test func whatIsPinnedAnewBeforeItsFetchEndedIsFetched() {
        var fetches = BackgroundFetches()
        fetches.lookForPinned()
        #expect(next(&fetches, pinned: [1]) == [1])
        let ends = fetches.unpin(node(1))
        fetches.lookForPinned()
        #expect(next(&fetches, pinned: [1]) == [])
        fetches.ended(node(1), .interrupted, at: .zero)
        #expect(ends && next(&fetches) == [1])
    }

    @Test func whatSomebodyHasAskedForComesAlthoughItIsPinnedNoLonger() {
        var fetches = BackgroundFetches()
        fetches.lookForPinned()
        #expect(next(&fetches, pinned: [1]) == [1])
        fetches.ask(for: [node(1)])
        #expect(next(&fetches) == [])
        let ends = fetches.unpin(node(1))
        #expect(!ends)
    }

    @Test func whatFailsIsTriedAgainEachTimeLater() {
        var fetches = BackgroundFetches()
        fetches.lookForPinned()
        #expect(next(&fetches, pinned: [1, 2]) == [1, 2])
        fetches.ended(node(1), .done, at: .zero)
        fetches.ended(node(2), .failed, at: .seconds(5))
        #expect(fetches.nextPass == .seconds(35))
        #expect(next(&fetches, at: 34, pinned: [2]) == [])
        #expect(next(&fetches, at: 35, pinned: [2]) == [2])
        fetches.ended(node(2), .failed, at: .seconds(36))
        #expect(fetches.nextPass == .seconds(96))
    }

    @Test func whatTheProviderCouldNotGiveWhileItWasAwayIsAskedForWhenItIsBack() {
        var fetches = BackgroundFetches()
        fetches.ask(for: [node(1), node(2)])
        #expect(next(&fetches) == [1, 2])
        fetches.interrupt()
        fetches.ended(node(1), .interrupted, at: .zero)
        fetches.ended(node(2), .done, at: .zero)
        #expect(next(&fetches) == [1])
    }

    /// It kept its place for ever: with thirty-two of them nothing else that is pinned came.
    @Test func whatNobodyWaitsForIsGivenUpForNowWhenTheProviderIsBusy() async throws {
        let fixture = try EngineFixture()
        await fixture.provider.put("a", "hello")
        let busy = ProviderError(.retryAfter(.milliseconds(1)), "busy")
        await fixture.provider.failFetches(Array(repeating: busy, count: 20))
        try await fixture.run {
            let node = try await fixture.listed("a").id
            fixture.engine.fetchInBackground([node])
            #expect(await fixture.eventually { fixture.engine.hydrator.problem(of: node) != nil })
            #expect(await fixture.eventually { !fixture.engine.hydrator.isBusy(node) })
            #expect(await fixture.provider.fetches.count == 8)
            #expect(try fixture.node("a")?.content == .absent)
            // A program waits for as long as it takes.
            try await fixture.hydrate(node)
            #expect(try fixture.text("a") == "hello")
            #expect(await fixture.provider.fetches.count == 21)
        }
    }
}
