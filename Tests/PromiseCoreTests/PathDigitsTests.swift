import PromiseCore
import Testing

@Suite struct PathDigitsTests {
    @Test func everyPathComesBackAsItWas() {
        let names = [[0x61], [0x0A, 0x20, 0xFF], Array("ä ö".utf8)].compactMap { FileName($0) }
        for count in 1...names.count {
            let path = Array(names.prefix(count))
            let text = PathDigits.text(path)
            #expect(PathDigits.path(text) == path)
            #expect(text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F })
        }
    }

    @Test(arguments: ["", "/", "zz", "00", "2e", "2e2e", "2f", "61/2f"]) func whatIsNoPathIsNone(_ text: String) {
        #expect(PathDigits.path(text).isEmpty)
    }
}
