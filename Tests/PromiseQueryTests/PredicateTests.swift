import PromiseQuery
import Testing

/// What predicates mean, and that nothing a stranger writes does harm.
@Suite struct PredicateTests {
    struct Item: AttributeSource {
        var values: [AttributeKey: QueryValue] = [
            .name: .text("Café Report.TXT"), .size: .integer(1234), .contentChangeDate: .time(1_700_000_000_000_000_000),
            .contentTypeTree: .list([.text("public.text"), .text("public.item")]), .isUploaded: .truth(true),
            .percentDownloaded: .real(12.5),
        ]
        func value(of key: AttributeKey) -> QueryValue { values[key] ?? .null }
    }

    private func holds(_ text: String, _ arguments: [QueryValue] = []) throws -> Bool {
        try PredicateParser.parse(text, arguments: arguments).isSatisfied(by: Item())
    }

    @Test(arguments: [
        ("kMDItemFSName == 'Café Report.TXT'", true), ("kMDItemFSName == 'café report.txt'", false),
        ("kMDItemFSName ==[cd] 'cafe report.txt'", true), ("kMDItemFSName =[d] 'Cafe\\u0301 Report.TXT'", true),
        ("kMDItemFSName == 'Cafe\\u0301 Report.TXT'", false), ("kMDItemFSName != 'x'", true),
        ("kMDItemFSName BEGINSWITH 'Caf'", true), ("kMDItemFSName beginswith[c] 'caf'", true),
        ("kMDItemFSName ENDSWITH '.TXT'", true), ("kMDItemFSName CONTAINS 'port'", true), ("kMDItemFSName CONTAINS ''", true),
        ("kMDItemFSName LIKE 'Caf? R*.TXT'", true), ("kMDItemFSName LIKE 'Caf?'", false), ("kMDItemFSName LIKE[c] '*.txt'", true),
        // What is escaped may be what folding leaves out: then the next sign keeps its meaning.
        ("kMDItemFSName LIKE[d] '\\\\\\u0301*'", true),
        ("kMDItemFSName LIKE '\\\\*'", false), ("kMDItemFSName MATCHES '.*\\\\.TXT'", true),
        ("kMDItemFSName MATCHES[c] '.*(report|letter)\\\\.[a-z]{3}'", true), ("kMDItemFSName MATCHES 'Report'", false),
        ("kMDItemFSName IN {'a', 'Café Report.TXT'}", true), ("'Report' IN kMDItemFSName", true),
        ("kMDItemFSSize > 1000", true), ("kMDItemFSSize >= 1234.5", false), ("kMDItemFSSize <> 1234", false),
        ("1000 < kMDItemFSSize", true), ("kMDItemFSSize BETWEEN {1000, 2000}", true), ("kMDItemFSSize IN {1, 2}", false),
        ("kMDItemFSSize == -1234", false), ("kMDItemFSSize == 0x4d2", true),
        ("kMDItemFSContentChangeDate > '2023-11-14'", true), ("kMDItemFSContentChangeDate < '2023-11-14T22:13:21Z'", true),
        ("kMDItemFSContentChangeDate == '2023-11-14T23:13:20.0+01:00'", true),
        ("kMDItemFSContentChangeDate >= CAST(721692800, 'NSDate')", true),
        ("kMDItemFSContentChangeDate > $time.iso('2024-01-01')", false),
        ("ANY kMDItemContentTypeTree == 'public.item'", true), ("ALL kMDItemContentTypeTree BEGINSWITH 'public.'", true),
        ("NONE kMDItemContentTypeTree == 'public.image'", true), ("kMDItemContentTypeTree CONTAINS 'public.text'", true),
        ("NSMetadataUbiquitousItemIsUploadedKey == YES", true), ("NSMetadataUbiquitousItemIsUploaded == 0", false),
        ("NSMetadataUbiquitousItemPercentDownloadedKey < 50", true), ("kMDItemPath == nil", true), ("kMDItemPath != NULL", false),
        ("kMDItemPath CONTAINS 'x'", false), ("kMDItemFSOwnerUserID < 5", false),
        ("TRUEPREDICATE", true), ("FALSEPREDICATE OR kMDItemFSSize > 1 AND NOT FALSEPREDICATE", true),
        ("!(kMDItemFSSize == 1 || kMDItemFSSize == 1234) && TRUEPREDICATE", false), ("#kMDItemFSSize > 1", true),
    ])
    func aPredicateMeansWhatNSPredicateMeans(text: String, expected: Bool) throws { #expect(try holds(text) == expected) }

    /// A list is satisfied by any of its elements, as in NSMetadataQuery; `!=` by none.
    @Test(arguments: [
        ("== 'public.item'", true), ("== 'public.image'", false), ("!= 'public.item'", false), ("!= 'public.image'", true),
        ("==[c] 'PUBLIC.ITEM'", true), ("LIKE '*.item'", true), ("LIKE '*.image'", false), ("MATCHES '.*text'", true),
        ("BEGINSWITH 'public.t'", true), ("ENDSWITH 'image'", false), ("IN {'public.image', 'public.text'}", true),
        ("IN {'public.image'}", false), ("BETWEEN {'public.i', 'public.j'}", true), ("> 'public.s'", true),
        ("> 'public.z'", false), ("!= nil", true), ("== nil", false), ("CONTAINS 'public'", false),
    ])
    func anyElementOfAListSatisfiesAComparison(text: String, expected: Bool) throws {
        #expect(try holds("kMDItemContentTypeTree \(text)") == expected)
    }

    @Test func aListOnTheRightIsComparedAsOneOnTheLeft() throws {
        #expect(try holds("'public.item' == kMDItemContentTypeTree"))
        #expect(try !holds("'public.item' != kMDItemContentTypeTree"))
        #expect(try holds("'public.item' IN kMDItemContentTypeTree"))
    }

    /// Case is folded in full, whichever side has the longer form; ICU's classes know every alphabet.
    @Test(arguments: [
        ("Straße", "==[c] 'STRASSE'", true), ("STRASSE", "==[c] 'straße'", true), ("ΣΊΣΥΦΟΣ", "==[c] 'σίσυφος'", true),
        ("\u{FB01}le", "==[c] 'FILE'", true), ("\u{212A}elvin", "BEGINSWITH[c] 'kel'", true), ("Ꭰ", "==[c] 'ꭰ'", true),
        ("Straße", "==[c] 'STRASE'", false), ("Straße", "== 'Strasse'", false), ("\u{130}", "==[c] 'i'", false),
        ("\u{130}", "==[cd] 'i'", true), ("É", "MATCHES[c] '[à-ÿ]'", true), ("é", "MATCHES[c] '[À-Þ]'", true),
        ("ß", "MATCHES[c] '[ß]'", true), ("é", "MATCHES[d] '[à-ÿ]'", true), ("ñ9_\u{301}", "MATCHES '\\\\w+'", true),
        ("a\u{D7}b", "MATCHES '\\\\w+'", false), ("\u{3000}", "MATCHES '\\\\s'", true), ("\u{85}", "MATCHES '\\\\s'", true),
        ("٣", "MATCHES '\\\\d'", true), ("٣", "MATCHES '[\\\\d]'", true), ("x", "MATCHES '[^\\\\s]'", true),
    ])
    func textsAreFoldedInFull(name: String, text: String, expected: Bool) throws {
        let item = Item(values: [.name: .text(name)])
        #expect(try PredicateParser.parse("kMDItemFSName \(text)").isSatisfied(by: item) == expected)
    }

    /// Syllables were taken apart: each one began with others, `?` was a third of one, and a class
    /// of syllables had none of them. So were vowels of India that are written of two.
    @Test(arguments: [
        ("한글", "BEGINSWITH[d] '하'", false), ("한글", "CONTAINS[cd] '그'", false), ("한글", "LIKE[d] '??'", true),
        ("한글", "BEGINSWITH[cd] '한'", true), ("한글.txt", "MATCHES[d] '[가-힣]{2}\\\\.txt'", true),
        ("한글", "MATCHES[d] '[^하]글'", true), ("한글", "MATCHES[d] '한글'", true),
        ("\u{1112}\u{1161}\u{11AB}글", "==[d] '한글'", true), ("한글", "ENDSWITH[d] '\u{1100}\u{1173}\u{11AF}'", true),
        ("한글", "LIKE[d] '\u{1112}\u{1161}\u{11AB}?'", true), ("한글", "MATCHES[d] '\u{1112}\u{1161}\u{11AB}+.'", true),
        ("\u{1112}\u{1161}\u{11AB}글", "BEGINSWITH[d] '하'", false), ("한글", "== '\u{1112}\u{1161}\u{11AB}글'", false),
        ("\u{995}\u{9CB}", "BEGINSWITH[d] '\u{995}\u{9C7}'", false), ("\u{995}\u{9CB}", "LIKE[d] '??'", true),
        ("\u{995}\u{9C7}\u{9BE}", "==[d] '\u{995}\u{9CB}'", true),
        ("\u{212B}ngström", "MATCHES[d] 'a?[A-Z]ngstro\u{308}m'", true),
    ])
    func whatIsNoAccentIsNotTakenApart(name: String, text: String, expected: Bool) throws {
        let item = Item(values: [.name: .text(name)])
        #expect(try PredicateParser.parse("kMDItemFSName \(text)").isSatisfied(by: item) == expected)
    }

    @Test(arguments: ["2026-02-30", "2025-02-29", "2100-02-29", "2026-04-31",
        "2026-01-01T25:00", "2026-01-01T12:60", "2026-13-01"])
    func aDateThatIsNoneIsRefused(date: String) {
        let error = #expect(throws: PredicateError.self) {
            _ = try PredicateParser.parse("kMDItemFSContentChangeDate > '\(date)'")
        }
        #expect(error?.message.contains("'\(date)' is no date") == true)
    }

    @Test func argumentsAreValuesWhateverTheyContain() throws {
        let injection = "x' OR TRUEPREDICATE OR 'a' == 'a"
        #expect(try !holds("kMDItemFSName == %@", [.text(injection)]))
        #expect(try holds("%K == %@ AND kMDItemFSSize == %d", [.text("kMDItemFSSize"), .integer(1234), .integer(1234)]))
        #expect(throws: PredicateError.self) { try holds("kMDItemFSName == %@") }
        #expect(throws: PredicateError.self) { try holds("TRUEPREDICATE", [.integer(1)]) }
    }

    @Test(arguments: [
        "", "(", ")", "kMDItemFSName", "kMDItemFSName ==", "foo == 1", "kMDItemFSSize == 'x'", "kMDItemFSName == 3",
        "kMDItemFSName LIKE 3", "kMDItemFSSize BETWEEN {1}", "kMDItemFSName == 'open", "kMDItemFSName MATCHES '(['",
        "kMDItemFSName MATCHES 'a{9999}'", "kMDItemFSName MATCHES '(a){900}(b){900}(c){900}(d){900}(e){900}'",
        "kMDItemFSName MATCHES '(?=x)'", "kMDItemFSName MATCHES '(a)\\\\1'", "kMDItemFSContentChangeDate > 'yesterday'",
        "kMDItemFSName ==[x] 'a'", "kMDItemFSSize == 99999999999999999999999999 AND", "kMDItemFSSize IN 5", "$now > 3",
        "kMDItemFSName == '\\u12'", "kMDItemFSName == {1, {2}}", "\u{0}", "TRUEPREDICATE TRUEPREDICATE",
    ])
    func whatIsNoPredicateIsRefusedInASentence(text: String) {
        let error = #expect(throws: PredicateError.self) { _ = try PredicateParser.parse(text) }
        #expect(error.map { !$0.message.isEmpty && !$0.message.hasSuffix(".") } ?? false)
    }

    @Test func depthAndLengthAreLimited() {
        for text in [
            String(repeating: "(", count: 60_000), String(repeating: "NOT ", count: 15_000) + "TRUEPREDICATE",
            "kMDItemFSSize IN {" + String(repeating: "1,", count: 20_000) + "1}", String(repeating: " ", count: 100_000),
        ] {
            #expect(throws: PredicateError.self) { _ = try PredicateParser.parse(text) }
        }
    }

    /// Patterns that take other engines years.
    @Test func aMaliciousPatternTakesNoLongerThanAnother() throws {
        let item = Item(values: [.name: .text(String(repeating: "a", count: 255))])
        for pattern in ["(a*)*b", "(a|a)*b", "(a|aa)+$b", "(.*)(.*)(.*)(.*)(.*)b", "(a?){200}b"] {
            let predicate = try PredicateParser.parse("kMDItemFSName MATCHES %@", arguments: [.text(pattern)])
            let time = ContinuousClock().measure { #expect(!predicate.isSatisfied(by: item)) }
            #expect(time < .seconds(60))
        }
        let like = try PredicateParser.parse(
            "kMDItemFSName LIKE %@", arguments: [.text(String(repeating: "*a", count: 120) + "b")])
        #expect(!like.isSatisfied(by: item))
    }

    /// Each of 1,900 classes was looked through from its beginning, for each character of each name.
    @Test func aClassOfManyMembersTakesNoLongerThanAnother() throws {
        let item = Item(values: [.name: .text(String(repeating: "a", count: 255))])
        let members = String(String.UnicodeScalarView((0..<20_000).compactMap { Unicode.Scalar(0x4E00 + 2 * $0 % 20_000) }))
        let pattern = "(([\(members)a]?){900}){2}b"
        for relation in ["MATCHES", "MATCHES[cd]"] {
            let predicate = try PredicateParser.parse("kMDItemFSName \(relation) %@", arguments: [.text(pattern)])
            let time = ContinuousClock().measure { #expect(!predicate.isSatisfied(by: item)) }
            #expect(time < .seconds(20))
        }
        let some = try PredicateParser.parse("kMDItemFSName MATCHES %@", arguments: [.text("[z\(members)b-ya]+")])
        #expect(some.isSatisfied(by: item))
    }

    @Test func argumentsAndPatternsCountAsPartsOfThePredicate() {
        let list = QueryValue.list((0..<20_000).map { .integer($0) })
        #expect(throws: PredicateError.self) { _ = try PredicateParser.parse("kMDItemFSSize IN %@", arguments: [list]) }
        let pattern = "kMDItemFSName MATCHES '.{1000}.{1000}.{1000}'"
        let patterns = Array(repeating: pattern, count: 10).joined(separator: " OR ")
        #expect(throws: PredicateError.self) { _ = try PredicateParser.parse(patterns) }
        let weight = try? PredicateParser.parse(pattern).weight
        #expect(weight.map { $0 >= 3_000 } == true)
    }

    @Test func repetitionsOfNothingAreNotWrittenOut() throws {
        let time = try ContinuousClock().measure {
            _ = try PredicateParser.parse("kMDItemFSName MATCHES '(((((){1000}){1000}){1000}){1000}){1000}'")
        }
        #expect(time < .seconds(60))
    }
}

/// Orders of results.
@Suite struct SortOrderTests {
    /// Two folders came before the two largest files.
    @Test func whatHasNoValueComesLastInBothDirections() {
        for isDescending in [false, true] {
            #expect(QueryValue.integer(1).sortOrder(against: .null, isDescending: isDescending) < 0)
            #expect(QueryValue.null.sortOrder(against: .integer(1), isDescending: isDescending) > 0)
        }
        #expect(QueryValue.integer(2).sortOrder(against: .integer(1), isDescending: true) < 0)
    }

    /// Lists were all alike.
    @Test func listsAreSortedByTheFirstElementsThatDiffer() {
        let (short, long, other) = (
            QueryValue.list([.text("a")]), QueryValue.list([.text("a"), .text("b")]), QueryValue.list([.text("b")])
        )
        #expect(short.sortOrder(against: long) < 0 && long.sortOrder(against: other) < 0)
        #expect(other.sortOrder(against: short, isDescending: true) < 0 && short.sortOrder(against: short) == 0)
    }
}

/// What strangers write, and what it costs.
@Suite struct HostilePredicateTests {
    private func holds(_ text: String, _ arguments: [QueryValue] = []) throws -> Bool {
        try PredicateParser.parse(text, arguments: arguments).isSatisfied(by: PredicateTests.Item())
    }

    /// Every character of a name was looked for in each of them, under the index's lock.
    @Test(.timeLimit(.minutes(1))) func aClassThatNamesOneKindOftenIsOne() throws {
        var item = PredicateTests.Item()
        item.values[.name] = .text(Array(String(repeating: "n", count: 250).utf8))
        let kinds = String(repeating: "\\\\d", count: 5_000)
        let predicate = try PredicateParser.parse("kMDItemFSName MATCHES '[^\(kinds)]*x'")
        for _ in 0..<500 { #expect(!predicate.isSatisfied(by: item)) }
    }

    /// It took seconds, as nothing was counted that adds nothing.
    @Test(.timeLimit(.minutes(1))) func whatIsEmptyAndRepeatedCostsNothing() throws {
        let empty = String(repeating: "()", count: 20_000)
        #expect(try holds("'b' MATCHES %@", [.text("((b\(empty)){1}){1}")]))
        #expect(try holds("'bbb' MATCHES %@", [.text("((b()()){3}(){1000}(a|)*)")]))
        #expect(try !holds("'b' MATCHES %@", [.text("(\(empty)){1000}")]))
        #expect(try holds("'' MATCHES %@", [.text("(a{0}()*){1000}")]))
    }

    @Test func whatIsCastManyTimesOverIsRefused() {
        let casts = String(repeating: "CAST(", count: 9_000)
        #expect(throws: PredicateError.self) { try PredicateParser.parse("kMDItemFSName == \(casts)") }
    }
}
