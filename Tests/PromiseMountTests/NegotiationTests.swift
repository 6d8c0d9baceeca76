import Glibc
import PromiseMount
import Testing

/// What the transport writes into the INIT reply of libfuse 3.14, byte for byte (struct fuse_init_out).
@Suite struct NegotiationTests {
    static let extended: UInt64 = 1 << 30
    static let passthrough = Negotiation.passthroughFlag
    static let killPrivilege: UInt64 = 1 << 28
    static let attributeFlags: UInt64 = 1 << 29
    static let parallelFolders: UInt64 = 1 << 18
    static let writebackCache: UInt64 = 1 << 16

    /// A reply with `flags`, and a mark in every other byte that must survive.
    private func reply(flags: UInt64) -> [UInt8] {
        var bytes = [UInt8](repeating: 0xA5, count: 64)
        set(&bytes, at: 12, UInt32(truncatingIfNeeded: flags))
        set(&bytes, at: 32, UInt32(truncatingIfNeeded: flags >> 32))
        return bytes
    }

    private func set(_ bytes: inout [UInt8], at offset: Int, _ word: UInt32) {
        for index in 0..<4 { bytes[offset + index] = UInt8(truncatingIfNeeded: word >> (8 * UInt32(index))) }
    }

    private func word(_ bytes: [UInt8], at offset: Int) -> UInt32 {
        (0..<4).reduce(0) { $0 | UInt32(bytes[offset + $1]) << (8 * UInt32($1)) }
    }

    private func edit(_ bytes: inout [UInt8], offered: UInt64, wantsPassthrough: Bool) -> UInt64 {
        Negotiation.edit(&bytes, offered: offered, wantsPassthrough: wantsPassthrough)
    }

    @Test func passthroughIsSetWithADepthOfOneLayer() {
        var bytes = reply(flags: Self.extended)
        let flags = edit(&bytes, offered: Self.extended | Self.passthrough, wantsPassthrough: true)
        #expect(flags == Self.extended | Self.passthrough)
        #expect(word(bytes, at: 12) == UInt32(Self.extended))
        #expect(word(bytes, at: 32) == 1 << 5)
        #expect(word(bytes, at: 36) == 1)
    }

    @Test(arguments: [
        (offered: extended, wanted: true), (offered: passthrough, wanted: true), (offered: extended | passthrough, wanted: false),
    ]) func passthroughIsNotSetUnlessOfferedAndWanted(offered: UInt64, wanted: Bool) {
        var bytes = reply(flags: Self.extended)
        let flags = edit(&bytes, offered: offered, wantsPassthrough: wanted)
        #expect(flags & Self.passthrough == 0)
        #expect(word(bytes, at: 32) == 0)
        #expect(word(bytes, at: 36) == 0)
    }

    @Test func ringsAreSetWhenOfferedAndMade() {
        var bytes = reply(flags: Self.extended)
        let offered = Self.extended | Negotiation.ringsFlag
        #expect(Negotiation.edit(&bytes, offered: offered, wantsPassthrough: false, wantsRings: true) == offered)
        #expect(word(bytes, at: 32) == 1 << 9)
        bytes = reply(flags: Self.extended)
        #expect(Negotiation.edit(&bytes, offered: offered, wantsPassthrough: false, wantsRings: false) == Self.extended)
        bytes = reply(flags: Self.extended)
        #expect(Negotiation.edit(&bytes, offered: Self.extended, wantsPassthrough: false, wantsRings: true) == Self.extended)
    }

    @Test func theTransportSaysWhyItIsTheDeviceWhereRingsWereAskedFor() {
        let offered = Negotiation.ringsFlag
        #expect(TransportStatus(isWanted: true, offered: offered, accepted: offered, problem: 0) == .rings)
        let plain = TransportStatus(isWanted: false, offered: offered, accepted: 0, problem: 0)
        #expect(plain.name == "device" && plain.message == nil)
        for (offered, problem, word) in [(0, CInt(0), "io_uring"), (offered, EPERM, "sysctl")] {
            let status = TransportStatus(isWanted: true, offered: offered, accepted: 0, problem: problem)
            #expect(status.name == "device" && (status.message?.contains(word) ?? false), "\(status)")
        }
    }

    @Test func onlyWhatTheKernelOffersIsAdded() {
        var bytes = reply(flags: 1)
        #expect(edit(&bytes, offered: 0, wantsPassthrough: true) == 1)
        bytes = reply(flags: 1)
        #expect(
            edit(
                &bytes, offered: Self.killPrivilege | Self.attributeFlags | Self.parallelFolders | 1 << 5, wantsPassthrough: true)
                == Self.killPrivilege | Self.attributeFlags | Self.parallelFolders | 1)
    }

    @Test func theWritebackCacheIsAlwaysOff() {
        var bytes = reply(flags: Self.writebackCache | 1)
        #expect(edit(&bytes, offered: Self.writebackCache, wantsPassthrough: false) == 1)
    }

    @Test func theRestOfTheReplyIsLeftAlone() {
        var bytes = reply(flags: Self.extended)
        let before = bytes
        _ = edit(&bytes, offered: .max, wantsPassthrough: true)
        let changed: Set<Int> = Set(12..<16).union(32..<40)
        for index in before.indices where !changed.contains(index) { #expect(bytes[index] == before[index], "byte \(index)") }
    }

    @Test func aReplyOfAnOlderProtocolIsLeftAlone() {
        var bytes = [UInt8](repeating: 7, count: 24)
        #expect(edit(&bytes, offered: .max, wantsPassthrough: true) == 0)
        #expect(bytes == [UInt8](repeating: 7, count: 24))
    }
}
