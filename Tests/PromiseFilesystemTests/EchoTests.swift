import PromiseCore
import PromiseFilesystem
import PromiseSync
import Testing

/// How calls of the process that shows changes are answered: each once, and only if the kernel has asked before.
@Suite struct EchoTests {
    private let a = TreePlace(FileName("a")!, in: NodeID(2))
    private let b = TreePlace(FileName("b")!, in: NodeID(3))

    @Test func aNameThatAppearsIsAbsentUntilItIsMade() {
        var echo = Echo(.appeared(a))
        #expect(echo.lookup(a) == .absent)
        #expect(echo.lookup(b) == nil)
        let isElsewhere = echo.makes(b)
        #expect(!isElsewhere)
        let isMade = echo.makes(a)
        #expect(isMade)
        #expect(echo.lookup(a) == nil)
        let isMadeTwice = echo.makes(a)
        #expect(!isMadeTwice)
    }

    @Test func aNameThatIsGoneIsThereUntilItIsRemoved() {
        var echo = Echo(.gone(a, NodeID(7)))
        #expect(echo.lookup(a) == .node(NodeID(7)))
        let isRemoved = echo.removes(a)
        #expect(isRemoved)
        #expect(echo.lookup(a) == nil)
        let isRemovedTwice = echo.removes(a)
        #expect(!isRemovedTwice)
    }

    /// Then it knows a file under that name which is newer than what is gone.
    @Test func whatTheKernelHasNotAskedForIsNotRemoved() {
        var echo = Echo(.gone(a, NodeID(7)))
        let isRemoved = echo.removes(a)
        #expect(!isRemoved)
    }

    @Test func aMoveIsFromWhatIsStillThereToWhatIsNotThereYet() {
        var echo = Echo(.moved(NodeID(7), from: a, to: b))
        let isEarly = echo.moves(a, to: b)
        #expect(!isEarly)
        #expect(echo.lookup(a) == .node(NodeID(7)))
        #expect(echo.lookup(b) == .absent)
        let isElsewhere = echo.moves(b, to: a)
        #expect(!isElsewhere)
        let isMoved = echo.moves(a, to: b)
        #expect(isMoved)
        #expect(echo.lookup(b) == nil)
    }

    @Test func whoIsTouchedIsLookedUpAsByEverybody() {
        var echo = Echo(.touched)
        #expect(echo.lookup(a) == nil)
        let isMade = echo.makes(a)
        #expect(!isMade)
    }
}
