import PromiseDomain
import Synchronization
import Testing

@Suite struct SandboxWallTests {
    private final class Machine: Sendable {
        private let state = Mutex((isInstalled: true, canBeMade: false, tries: 0, warnings: 0))
        var tries: Int { state.withLock { $0.tries } }
        var warnings: Int { state.withLock { $0.warnings } }

        func set(isInstalled: Bool, canBeMade: Bool) {
            state.withLock { ($0.isInstalled, $0.canBeMade) = (isInstalled, canBeMade) }
        }

        var wall: SandboxWall {
            SandboxWall(
                isInstalled: { self.state.withLock { $0.isInstalled } },
                canBeMade: {
                    self.state.withLock { state in
                        state.tries += 1
                        return state.canBeMade
                    }
                }, warn: { self.state.withLock { $0.warnings += 1 } })
        }
    }

    /// After one failure thumbnailers ran without a sandbox for as long as the daemon lived.
    @Test func aWallThatCouldNotBeMadeOnceIsTriedAgain() {
        let machine = Machine()
        let wall = machine.wall
        #expect(!wall.stands() && !wall.stands())
        #expect(machine.tries == 2 && machine.warnings == 1)
        machine.set(isInstalled: true, canBeMade: true)
        #expect(wall.stands() && wall.stands())
        #expect(machine.tries == 3 && machine.warnings == 1)
    }

    @Test func whereThereIsNoneNothingIsTriedAndNobodyWarned() {
        let machine = Machine()
        let wall = machine.wall
        machine.set(isInstalled: false, canBeMade: true)
        #expect(!wall.stands() && machine.tries == 0 && machine.warnings == 0)
        machine.set(isInstalled: true, canBeMade: true)
        #expect(wall.stands())
    }
}
