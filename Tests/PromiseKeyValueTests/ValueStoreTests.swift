import PromiseCore
import PromiseKeyValue
import Testing

private let application: Key = "com.example.editor"

private func second(_ number: Int) -> Timestamp { Timestamp(seconds: 1_700_000_000 + number, nanoseconds: 0) }

private func store(_ machine: Key) -> ValueStore { ValueStore(application: application, machine: machine) }

/// The values of an application on one machine, by examples.
@Suite struct ValueStoreTests {
    @Test func theLastWriterWinsByKeyOnBothMachines() throws {
        var (one, two) = (store("one"), store("two"))
        try one.set(.string("first"), for: "place", at: second(1))
        try two.set(.string("second"), for: "place", at: second(2))
        try one.set(.bool(true), for: "mine", at: second(3))
        #expect(one.merge(two.record, account: "a", at: second(4)) == [ValueNotice(.initialSync, ["place"])])
        #expect(two.merge(one.record, account: "a", at: second(4)) == [ValueNotice(.initialSync, ["mine"])])
        #expect(one.values == two.values)
        #expect(one.values == ["place": .string("second"), "mine": .bool(true)])
    }

    @Test func whatWasWrittenAtOneMomentIsTheSameOnBothMachines() throws {
        var (one, two) = (store("one"), store("two"))
        try one.set(.integer(1), for: "key", at: second(1))
        try two.set(.integer(2), for: "key", at: second(1))
        let others = one.record
        _ = one.merge(two.record, account: "a", at: second(2))
        _ = two.merge(others, account: "a", at: second(2))
        #expect(one.value(for: "key") == .integer(2) && two.value(for: "key") == .integer(2))
    }

    @Test func eachReasonIsToldOnceWithItsKeys() throws {
        var (one, two) = (store("one"), store("two"))
        let limits = ValueLimits(totalByteCount: 10)
        #expect(one.merge(nil, account: "a", at: second(1)) == [ValueNotice(.initialSync, [])])
        #expect(one.merge(nil, account: "a", at: second(2)).isEmpty)
        try two.set(.string("12345678"), for: "b", at: second(3), limits: limits)
        #expect(one.merge(two.record, account: "a", at: second(4), limits: limits) == [ValueNotice(.serverChange, ["b"])])
        #expect(one.merge(two.record, account: "a", at: second(5), limits: limits).isEmpty)
        // Each by itself fits; together they do not, and nothing is thrown away.
        try one.set(.string("1"), for: "c", at: second(6), limits: limits)
        try two.set(.string("12"), for: "d", at: second(6), limits: limits)
        #expect(
            one.merge(two.record, account: "a", at: second(7), limits: limits)
                == [ValueNotice(.serverChange, ["d"]), ValueNotice(.quotaViolation, ["d"])])
        #expect(one.merge(two.record, account: "a", at: second(8), limits: limits).isEmpty)
        #expect(one.values.count == 3)
        #expect(one.merge(nil, account: "b", at: second(9)) == [ValueNotice(.accountChange, ["b", "c", "d"])])
        #expect(one.values.isEmpty)
    }

    /// Whose credentials cannot be read just now is nobody else; who comes after that is.
    @Test func anotherAccountIsToldAlsoWhenNobodyWasKnownInBetween() throws {
        var one = store("one")
        #expect(one.merge(nil, account: "root", at: second(1)) == [ValueNotice(.initialSync, [])])
        #expect(one.merge(nil, account: "alice@root", at: second(2)).isEmpty)
        try one.set(.string("1"), for: "key", at: second(3))
        for time in [4, 5] { #expect(one.merge(nil, account: "root", at: second(time)).isEmpty) }
        #expect(one.merge(nil, account: "alice@root", at: second(6)).isEmpty)
        #expect(one.merge(nil, account: "root", at: second(7)).isEmpty)
        #expect(one.values.count == 1)
        // Who has another key to the same objects takes nothing away.
        var same = one
        #expect(same.merge(nil, account: "bob@root", at: second(8), isShared: true) == [ValueNotice(.accountChange, [])])
        #expect(same.values.count == 1)
        #expect(one.merge(nil, account: "bob@root", at: second(8)) == [ValueNotice(.accountChange, ["key"])])
    }

    @Test func limitsAreToTheByteAndTheOldValueStays() throws {
        let limit = 64 << 10
        var one = store("one")
        let name = Key(String(repeating: "é", count: 32))
        try one.set(.string("old"), for: name, at: second(1))
        for (key, value) in [
            (name, Value.data([UInt8](repeating: 1, count: limit + 1))), (Key(name.text + "e"), .bool(true)),
            ("", .bool(true)), ("number", .number(.nan)), ("number", .list([.number(-.infinity)])),
        ] {
            let before = one
            #expect(throws: ValueRefusal.self) { try one.set(value, for: key, at: second(2)) }
            #expect(one == before)
        }
        try one.set(.data([UInt8](repeating: 1, count: limit)), for: name, at: second(2))
        // Full to the last byte: a value of none still goes in, one of one byte does not.
        try one.set(.string(""), for: "empty", at: second(3))
        #expect(throws: ValueRefusal.self) { try one.set(.string("1"), for: "more", at: second(3)) }
        #expect(one.value(for: "more") == nil)
        try one.set(.data([UInt8](repeating: 1, count: limit - 1)), for: name, at: second(4))
        try one.set(.string("1"), for: "more", at: second(5))
        #expect(one.record.byteCount == limit)
    }

    @Test func thereAreAThousandAndTwentyFourKeysAndNoMore() throws {
        var one = store("one")
        for number in 0..<1024 { try one.set(.integer(0), for: Key("key \(number)"), at: second(1)) }
        #expect(throws: ValueRefusal.self) { try one.set(.integer(1), for: "one more", at: second(2)) }
        try one.set(.integer(1), for: "key 7", at: second(3))
        one.remove("key 8", at: second(4))
        let isThere = one.remove("key 8", at: second(4))
        #expect(!isThere)
        try one.set(.integer(1), for: "one more", at: second(5))
        #expect(one.values.count == 1024)
    }

    @Test func valuesTooDeepInEachOtherAreRefused() throws {
        var value = Value.bool(true)
        for _ in 1..<Value.depthMax { value = .list([value]) }
        var one = store("one")
        try one.set(value, for: "deep", at: second(1))
        #expect(Value(value.json) == value)
        #expect(throws: ValueRefusal.self) { try one.set(.list([value]), for: "deep", at: second(2)) }
        #expect(Value(Value.list([value]).json) == nil)
    }

    @Test func aMachineThatWasAwayDoesNotBringARemovedValueBack() throws {
        var (one, two) = (store("one"), store("two"))
        try one.set(.bool(true), for: "key", at: second(1))
        _ = two.merge(one.record, account: "a", at: second(2))
        one.remove("key", at: second(3))
        #expect(!two.record.hasNews(for: one.record))
        #expect(one.merge(two.record, account: "a", at: second(4)) == [ValueNotice(.initialSync, [])])
        #expect(one.values.isEmpty)
        #expect(two.merge(one.record, account: "a", at: second(5)) == [ValueNotice(.serverChange, ["key"])])
        #expect(two.values.isEmpty)
    }

    @Test func whatWasWrittenMeanwhileIsNotSent() throws {
        var one = store("one")
        #expect(one.isSent)
        try one.set(.bool(true), for: "key", at: second(1))
        let sent = one.record
        try one.set(.bool(false), for: "key", at: second(2))
        one.markSent(sent)
        #expect(!one.isSent)
        one.markSent(one.record)
        #expect(one.isSent)
    }

    /// Of more than a thousand that were removed offline the provider brought the others back.
    @Test func removalsThatTheProviderWasNotToldOfAreNotForgotten() throws {
        let limits = ValueLimits(totalByteCount: 1 << 20, keyCount: 3_000)
        var one = store("one")
        for number in 0..<2_000 {
            try one.set(.bool(true), for: Key("key \(number)"), at: second(number), limits: limits)
        }
        _ = one.merge(nil, account: "a", at: second(3_000), limits: limits)
        let theirs = one.record
        for number in 0..<2_000 { one.remove(Key("key \(number)"), at: second(4_000 + number)) }
        _ = one.merge(theirs, account: "a", at: second(9_000), limits: limits)
        #expect(one.values.isEmpty && one.record.hasNews(for: theirs))
        // Once it has been told, the oldest go.
        _ = one.merge(one.record, account: "a", at: second(9_001), limits: limits)
        #expect(one.record.entries.count == ValueRecord.removalCountMax)
    }

    /// A migration was another account: what the old storage was not told of was gone.
    @Test func whatWasNotSentIsMergedWithWhatAnotherStorageHas() throws {
        var one = store("one")
        try one.set(.bool(true), for: "old", at: second(1))
        _ = one.merge(nil, account: "user@there", at: second(2))
        let brought = one.record
        try one.set(.bool(true), for: "new", at: second(3))
        one.remove("old", at: second(4))
        one.beginAnew()
        _ = one.merge(brought, account: "user@elsewhere", at: second(5))
        #expect(Array(one.values.keys) == ["new"] && !one.isSent)
    }

    @Test func removalsAreForgottenAfterNinetyDaysAndBeyondAThousand() throws {
        var one = store("one")
        for number in 0..<1500 {
            try one.set(.bool(true), for: Key("key \(number)"), at: second(number))
            one.remove(Key("key \(number)"), at: second(number))
        }
        #expect(one.record.entries.count == ValueRecord.removalCountMax)
        #expect(one.record.entries["key 1499"] != nil)
        var later = one
        _ = later.merge(nil, account: "a", at: second(2000 + 90 * 86_400))
        #expect(later.record.entries.isEmpty)
        #expect(!one.record.hasNews(for: later.record), "who has forgotten a removal is not told of it for ever")
    }

    @Test func aClockADayAheadWinsNoKeyForLongerThanOthersLetIt() throws {
        var (fast, right) = (store("fast"), store("right"))
        let day = 86_400
        try fast.set(.string("fast"), for: "shared", at: second(day))
        _ = right.merge(fast.record, account: "a", at: second(1))
        #expect(right.value(for: "shared") == .string("fast"))
        // Who has seen it writes after it.
        try right.set(.string("right"), for: "shared", at: second(2))
        _ = fast.merge(right.record, account: "a", at: second(day + 2))
        #expect(fast.value(for: "shared") == .string("right"))
        // Nobody else's clock was pulled along, nor is its own for ever.
        try right.set(.bool(true), for: "other", at: second(3))
        let stamp = try #require(right.record.entries["other"]?.stamp)
        #expect(stamp.time.milliseconds < UInt64(1_700_000_000 + day) * 1000)
        try fast.set(.bool(true), for: "mended", at: second(4))
        let mended = try #require(fast.record.entries["mended"]?.stamp)
        #expect(mended.time.milliseconds == 1_700_000_004_000)
    }

    @Test func aClockThatStandsStillOrGoesBackStillPutsWritesInOrder() throws {
        var (one, other) = (store("one"), store("other"))
        for number in 0..<100 {
            try one.set(.integer(Int64(number)), for: "key", at: second(number % 3))
            _ = other.merge(one.record, account: "a", at: second(0))
            #expect(other.value(for: "key") == .integer(Int64(number)))
        }
    }
}

/// What is kept on disk and at the provider.
@Suite struct ValueRecordTests {
    private static let everyKind: [Key: Value] = [
        "string": .string("a \"quoted\" \\ line\n\u{1}\u{1F600}"), "integer": .integer(.min),
        "number": .number(.leastNonzeroMagnitude),
        "large": .number(1e300), "zero": .number(-0.0),
        "bool": .bool(false), "date": .date(Timestamp(nanoseconds: -1)),
        "data": .data([0, 1, 2, 255]), "data 1": .data([250]), "data 2": .data([1, 254]), "none": .data([]),
        "list": .list([.bool(true), .list([])]), "map": .map(["": .string(""), "é": .integer(1), "e\u{301}": .integer(2)]),
    ]

    @Test func everyKindComesBackAsItWas() throws {
        var one = store("one")
        for (key, value) in Self.everyKind { try one.set(value, for: key, at: second(1)) }
        one.remove("bool", at: second(2))
        _ = one.merge(nil, account: "a", at: second(2))
        let text = one.json.encoded
        let again = try ValueStore(JSONReader.read(text), of: application)
        #expect(again == one)
        #expect(again.json.encoded == text)
        #expect(try ValueRecord(JSONReader.read(one.record.json.encoded), of: application) == one.record)
    }

    @Test func fieldsOfALaterVersionAreKept() throws {
        let text = """
            {"application":"com.example.editor","entries":{"key":{"counter":0,"machine":"x","rank":1.50,"time":5,\
            "value":{"bool":true}},"new":{"counter":0,"machine":"x","time":5,"value":{"matrix":[1]}}},"owner":{"a":[null]},\
            "schema":1}
            """
        let record = try ValueRecord(JSONReader.read(Array(text.utf8)), of: application)
        #expect(record.values == ["key": .bool(true)])
        #expect(record.keyCount == 2)
        var one = store("one")
        _ = one.merge(record, account: "a", at: second(1))
        #expect(String(decoding: one.record.json.encoded, as: UTF8.self) == text)
    }

    @Test func aRecordOfALaterVersionOrOfAnotherApplicationIsNotTaken() throws {
        func trouble(_ text: String) -> RecordTrouble? {
            do throws(RecordTrouble) {
                _ = try ValueRecord(JSONReader.read(Array(text.utf8)), of: application)
                return nil
            } catch {
                return error
            }
        }
        #expect(trouble(#"{"schema":2,"application":"com.example.editor","entries":[]}"#) == .newer(schema: 2))
        #expect(trouble(#"{"schema":1,"application":"com.example.other","entries":{}}"#) == .damaged)
        #expect(trouble(#"{"schema":1,"application":"com.example.editor","entries":{}}"#) == nil)
        #expect(trouble(#"{"schema":1,"application":"com.example.editor","entries":{"a":{}}}"#) == .damaged)
        #expect(trouble("") == .damaged)
    }

    @Test func textThatIsNoJSONIsRefusedAndNeverTraps() throws {
        for text in [
            "", "{", "[1,]", "{\"a\":1,}", "{\"a\":1,\"a\":2}", "01", "1.", "1e", "-", "\"\\ud800\"", "\"\\ud800\\u0041\"",
            "\"\\u+123\"", "\"\u{1}\"", "tru", "nul", "[1] 2", "\"\\x\"", String(repeating: "[", count: 100_000),
        ] {
            #expect(JSONReader.read(Array(text.utf8)) == nil, "\(text.prefix(20))")
        }
        #expect(JSONReader.read([0x22, 0xFF, 0x22]) == nil)
        for text in ["-0.5e+10", "[]", " {\"a\" : [ true , null ] } ", "\"\\ud83d\\ude00\\u00e9\\/\""] {
            #expect(JSONReader.read(Array(text.utf8)) != nil, "\(text)")
        }
        var random = SeededBytes(state: 1)
        let whole = store("one").json.encoded
        for _ in 0..<20_000 {
            var bytes = whole
            for _ in 0..<3 { bytes[Int(random.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: random.next()) }
            _ = try? ValueStore(JSONReader.read(bytes), of: application)
        }
    }
}

private struct SeededBytes {
    var state: UInt64
    mutating func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return state >> 33
    }
}
