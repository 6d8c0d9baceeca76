import PromiseMount
import Testing

/// Who reads the device: one thread while it keeps up, another one when it does not.
@Suite struct ReaderRotaTests {
    private let patience = ReaderRota.patience

    @Test func oneThreadReadsAndTheOtherRests() {
        var rota = ReaderRota()
        #expect(rota.turn(isRested: false, now: 0) == .read)
        #expect(rota.turn(isRested: false, now: 0) == .rest(watches: false))
        #expect(rota.received(wasThere: false, now: 10) == .afterPatience)
        #expect(rota.turn(isRested: false, now: 20) == .read)
    }

    @Test func theTimerIsSetOnceForManyRequests() {
        var rota = ReaderRota()
        #expect(rota.turn(isRested: false, now: 0) == .read)
        #expect(rota.received(wasThere: false, now: 10) == .afterPatience)
        for time in [UInt64(20), 30, 40] {
            #expect(rota.turn(isRested: false, now: time) == .read)
            #expect(rota.received(wasThere: false, now: time + 5) == .leave)
        }
    }

    @Test func whoIsWokenWhileARequestIsYoungGoesOnResting() {
        var rota = ReaderRota()
        #expect(rota.turn(isRested: false, now: 0) == .read)
        #expect(rota.received(wasThere: false, now: 10) == .afterPatience)
        #expect(rota.turn(isRested: true, now: patience / 2) == .rest(watches: true))
    }

    @Test func aRequestThatTakesLongHasAnotherThreadRead() {
        var rota = ReaderRota()
        #expect(rota.turn(isRested: false, now: 0) == .read)
        #expect(rota.received(wasThere: false, now: 10) == .afterPatience)
        #expect(rota.turn(isRested: true, now: 10 + patience) == .read)
        // The first one is through at last, and is not needed.
        #expect(rota.turn(isRested: false, now: 20 + patience) == .rest(watches: false))
    }

    @Test func requestsThatWaitBringASecondReaderForAWhile() {
        var rota = ReaderRota()
        var timers: [ReaderRota.Timer] = []
        for time in [UInt64(0), 10, 20] {
            #expect(rota.turn(isRested: false, now: time) == .read)
            timers.append(rota.received(wasThere: true, now: time + 5))
        }
        #expect(timers == [.afterPatience, .leave, .now])
        #expect(rota.turn(isRested: true, now: 40) == .read)
        #expect(rota.turn(isRested: false, now: 50) == .read)
        #expect(rota.received(wasThere: false, now: 60) == .leave)
        #expect(rota.turn(isRested: false, now: 100 * patience) == .rest(watches: false))
    }

    @Test func atTheEndEverybodyLeaves() {
        var rota = ReaderRota()
        #expect(rota.turn(isRested: false, now: 0) == .read)
        rota.end()
        #expect(rota.turn(isRested: true, now: 1) == .end)
        #expect(rota.turn(isRested: false, now: 1) == .end)
    }

    /// What tells a mount that nobody serves from one that is not used: both take no request.
    @Test func threadsThatAllServeOneRequestForEverAreNotTakenForIdleOnes() {
        var rota = ReaderRota()
        func ask() -> Bool { rota.isServing() }
        #expect(rota.turn(isRested: false, now: 0) == .read)
        #expect([ask(), ask()] == [true, true], "an idle mount is served")
        _ = rota.received(wasThere: false, now: 10)
        #expect(ask() == true, "a request has just come")
        #expect(rota.turn(isRested: true, now: 10 + patience) == .read)
        #expect([ask(), ask()] == [true, true], "one thread hangs, another reads")
        _ = rota.received(wasThere: false, now: 20 + patience)
        #expect([ask(), ask()] == [true, false], "both hang")
        #expect(rota.turn(isRested: false, now: 30 + patience) == .read)
        #expect(ask() == true, "one has come back")
        rota.end()
        #expect(ask() == true)
    }
}
