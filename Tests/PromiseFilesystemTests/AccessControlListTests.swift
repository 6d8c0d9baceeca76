import PromiseFilesystem
import PromiseTestSupport
import Testing

@Suite struct AccessControlListTests {
    /// Entries as (tag, permissions, id), as the kernel passes them.
    private func bytes(_ lines: [(UInt16, UInt16, UInt32)], version: UInt8 = 2) -> [UInt8] {
        var result: [UInt8] = [version, 0, 0, 0]
        for (tag, permissions, id) in lines {
            result += [UInt8(tag & 0xFF), UInt8(tag >> 8), UInt8(permissions & 0xFF), UInt8(permissions >> 8)]
            result += (0..<4).map { UInt8(truncatingIfNeeded: id >> UInt32(8 * $0)) }
        }
        return result
    }

    private static let nobody: UInt32 = .max
    /// u::rw-, g::r--, o::---
    private var minimal: [UInt8] { bytes([(1, 6, Self.nobody), (4, 4, Self.nobody), (0x20, 0, Self.nobody)]) }
    /// u::rwx, u:1000:rw-, g::r-x, g:100:rwx, m::rwx, o::r--
    private var extended: [UInt8] {
        bytes([
            (1, 7, Self.nobody), (2, 6, 1000), (4, 5, Self.nobody), (8, 7, 100), (0x10, 7, Self.nobody), (0x20, 4, Self.nobody),
        ])
    }

    @Test func bytesGoThereAndBack() throws {
        for original in [minimal, extended] { #expect(try #require(AccessControlList(original)).bytes == original) }
        let list = try #require(AccessControlList(extended))
        #expect(list.lines.count == 6)
        #expect(list.lines[1].id == 1000 && list.lines[1].tag == 2 && list.lines[1].permissions == 6)
    }

    @Test func randomListsGoThereAndBack() throws {
        var random = SeededGenerator(for: "AccessControlList")
        for _ in 0..<200 {
            var lines: [(UInt16, UInt16, UInt32)] = [(1, 7, 0), (4, 7, 0), (0x20, 7, 0)]
            for _ in 0..<Int.random(in: 0...20, using: &random) {
                let tag: UInt16 = Bool.random(using: &random) ? 2 : 8
                lines.append((tag, .random(in: 0...7, using: &random), .random(in: 0 ... .max, using: &random)))
            }
            let original = bytes(lines)
            #expect(try #require(AccessControlList(original)).bytes == original, "seed \(random.seed)")
        }
    }

    @Test func nonsenseIsNoList() {
        #expect(AccessControlList([]) == nil)
        #expect(AccessControlList([2, 0, 0, 0]) == nil)
        #expect(AccessControlList(Array(minimal.dropLast())) == nil)
        #expect(AccessControlList(bytes([(1, 6, 0), (4, 4, 0), (0x20, 0, 0)], version: 1)) == nil)
        for missing: UInt16 in [1, 4, 0x20] {
            let lines = ([1, 4, 0x20] as [UInt16]).filter { $0 != missing }.map { ($0, UInt16(7), UInt32(0)) }
            #expect(AccessControlList(bytes(lines)) == nil, "without tag \(missing)")
        }
    }

    @Test func modeShowsTheMaskInPlaceOfTheGroup() throws {
        #expect(try #require(AccessControlList(minimal)).modeBits == 0o640)
        #expect(try #require(AccessControlList(extended)).modeBits == 0o774)
        #expect(try #require(AccessControlList(minimal)).isMinimal)
        #expect(try !#require(AccessControlList(extended)).isMinimal)
    }

    @Test func everyModeIsSetAndShown() throws {
        for original in [minimal, extended] {
            for mode: UInt32 in 0...0o777 {
                var list = try #require(AccessControlList(original))
                list.setMode(mode | 0o7000)
                #expect(list.modeBits == mode)
            }
        }
    }

    @Test func chmodChangesTheMaskAndLeavesNamedLines() throws {
        var list = try #require(AccessControlList(extended))
        list.setMode(0o600)
        #expect(list.lines.map(\.permissions) == [6, 6, 5, 7, 0, 0])
        var small = try #require(AccessControlList(minimal))
        small.setMode(0o755)
        #expect(small.lines.map(\.permissions) == [7, 5, 5])
    }

    @Test func newFileGetsNoMoreThanItsMode() throws {
        for mode: UInt32 in [0, 0o600, 0o644, 0o666, 0o777] {
            var list = try #require(AccessControlList(extended))
            let before = list.modeBits
            list.limit(to: mode)
            #expect(list.modeBits == before & mode)
            #expect(list.lines[1].permissions == 6)
        }
    }
}
