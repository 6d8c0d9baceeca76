import PromiseCore
import PromiseFilesystem
import PromiseMount
import Testing

/// Parked requests and interruptions in every order, the kernel's mount table, and the flags of an open.
@Suite struct MountStateTests {
    @Test func anInterruptionFindsTheWaitingRequestOnce() {
        let lot = ParkingLot()
        let ticket = lot.enter()
        #expect(lot.wait(ticket, ParkedRequest(7)))
        #expect(lot.interrupt(ticket) == ParkedRequest(7))
        #expect(lot.interrupt(ticket) == nil)
        #expect(lot.count == 0)
    }

    @Test func anInterruptionBeforeTheRequestWaitsIsNotLost() {
        let lot = ParkingLot()
        let ticket = lot.enter()
        #expect(lot.interrupt(ticket) == nil)
        #expect(!lot.wait(ticket, ParkedRequest(7)))
        #expect(lot.count == 0)
    }

    @Test func anAnsweredRequestIsNotInterrupted() {
        let lot = ParkingLot()
        let ticket = lot.enter()
        #expect(lot.wait(ticket, ParkedRequest(7)))
        lot.leave(ticket)
        #expect(lot.interrupt(ticket) == nil)
        #expect(lot.interruptAll().isEmpty)
    }

    @Test func theEndInterruptsEverybodyWhoWaits() {
        let lot = ParkingLot()
        for number in 1...3 { #expect(lot.wait(lot.enter(), ParkedRequest(UInt64(number)))) }
        #expect(Set(lot.interruptAll()) == [ParkedRequest(1), ParkedRequest(2), ParkedRequest(3)])
        #expect(lot.count == 0)
    }

    @Test func theMountTableIsReadWithItsEscapes() {
        let text = """
            27 1 254:1 / / rw,relatime shared:1 - ext4 /dev/root rw
            43 27 0:39 / /mnt/a\\040b\\134c rw,nosuid,nodev - fuse.promisefs my\\040work rw,user_id=0
            44 27 0:40 / /mnt/two rw shared:5 master:3 - tmpfs none rw
            nonsense

            """
        let entries = MountTable.parse(Array(text.utf8))
        #expect(entries.map(\.type) == ["ext4", "fuse.promisefs", "tmpfs"])
        #expect(entries[1].mountPoint == Array(#"/mnt/a b\c"#.utf8))
        #expect(entries[1].source == "my work")
        #expect(entries[2].source == "none")
    }

    @Test func thisMachineHasARoot() throws {
        #expect(try MountTable.entries().contains { $0.mountPoint == [0x2F] })
    }

    /// The kernel refuses an open with FOPEN_PASSTHROUGH and a cache flag (fs/fuse/iomode.c).
    @Test func passthroughIsNeverMixedWithCacheFlags() {
        for keepsCache in [false, true] {
            for isDirect in [false, true] {
                let backed = OpenReply(
                    handle: HandleID(1), backing: BackingID(rawValue: 3), keepsCache: keepsCache, isDirect: isDirect)
                #expect(openFlags(backed) == 1 << 7)
                let plain = OpenReply(handle: HandleID(1), keepsCache: keepsCache, isDirect: isDirect)
                #expect(openFlags(plain) == (isDirect ? 1 : 0) | (keepsCache ? 2 : 0))
            }
        }
    }
}
