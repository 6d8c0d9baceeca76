import PromiseAccess
import PromiseCore
import Testing

@Suite struct FormerNamesTests {
    private func names(_ count: Int) -> FormerNames {
        var names = FormerNames()
        for number in 0..<count {
            let identifier = number.isMultiple(of: 2) ? ItemIdentifier("new \(number)") : nil
            names.items[ItemIdentifier("old/\(number)")] = FormerNames.Now(
                identifier: identifier, path: [FileName("a folder")!, FileName([0xFF, 0x41])!])
        }
        return names
    }

    @Test func whatIsWrittenInPiecesIsReadBack() {
        for count in [0, 1, 20_000, 20_001] {
            let written = names(count)
            #expect(written.pieces.count == (count + 19_999) / 20_000)
            var read = FormerNames()
            for piece in written.pieces.reversed() { read.add(piece: piece) }
            #expect(read == written)
        }
    }

    /// A piece of long names was larger than providers keep, and could not be read.
    @Test func noPieceIsLargerThanAPrivateObject() {
        var written = FormerNames()
        let long = String(repeating: "%D0%B4", count: 100)
        let folder = Array(repeating: FileName(String(repeating: "д", count: 100))!, count: 3)
        for number in 0..<18_000 {
            written.items[ItemIdentifier("\(long)/\(number)")] = FormerNames.Now(
                identifier: ItemIdentifier("\(long)\(number)"), path: folder + [FileName("\(number)")!])
        }
        var read = FormerNames()
        for piece in written.pieces {
            #expect(piece.count < 16 << 20)
            read.add(piece: piece)
        }
        #expect(read == written)
    }

    private func path(_ text: String) -> [FileName] { text.split(separator: "/").map { FileName(String($0))! } }

    @Test func whatWasMovedIsFoundByItsPlaceThroughFoldersAndSeveralMoves() {
        var written = names(1)
        written.moved.places = [
            path("a"): path("b"), path("b/file"): path("c"), path("there"): path("nowhere"), path("x"): path("y"),
            path("y"): path("x"),
        ]
        var read = FormerNames()
        for piece in written.pieces { read.add(piece: piece) }
        #expect(read == written)
        func now(_ text: String) -> [FileName] { read.moved.now(of: path(text)) { $0 == path("there") } }
        #expect(now("a/file") == path("c") && now("a/other/deep") == path("b/other/deep"))
        #expect(now("there") == path("there"), "what is there is something else")
        #expect(now("z") == path("z") && [path("x"), path("y")].contains(now("x")))
    }

    @Test func whatIsDamagedOrOfALaterVersionIsNothing() {
        let piece = String(decoding: names(3).pieces[0], as: UTF8.self)
        var read = FormerNames()
        for text in [
            "", "{}", String(piece.dropLast(9)), piece.replacing("\"schema\":1", with: "\"schema\":2"),
            "{\"items\":{\"a\":[],\"b\":1,\"c\":[2]},\"schema\":1}",
        ] { read.add(piece: Array(text.utf8)) }
        #expect(read.items.isEmpty)
    }
}
