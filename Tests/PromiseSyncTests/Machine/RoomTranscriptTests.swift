import PromiseCore
import PromiseProvider
import PromiseSync
import Testing

@Suite struct RoomTranscriptTests {
    @Test func withALimitRoomIsLookedForEveryFiveSeconds() throws {
        let fixture = try MachineFixture(cacheLimit: 1 << 20)
        fixture.start()
        fixture.machine.pass(.seconds(16))
        fixture.expect(
            """
            > 16 s later
            make room
            make room
            make room
            """)
    }

    @Test func withoutALimitAnIdleMachineLooksForNothing() throws {
        let fixture = try MachineFixture()
        fixture.start()
        fixture.machine.pass(.seconds(3_600))
        let uses: [NodeID: Timestamp] = [NodeID(rawValue: 5): .zero, NodeID(rawValue: 6): .zero]
        fixture.machine.happen("programs used two files", .used(uses))
        fixture.expect(
            """
            > 3600 s later
            make room
            > programs used two files
            note uses of 2
            """)
    }
}
