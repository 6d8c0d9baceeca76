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
