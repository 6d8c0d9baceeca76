import PromiseCore
import PromiseIndex
import PromiseSystem
import PromiseTestSupport
import Testing

/// An index whose last owner is dead and cannot let go of its files.
@Suite struct RenewalTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("index") }

    /// Here the last owner lives in this process: it has a transaction open, and goes on writing.
    @Test func itsSuccessorHasEverythingAndHearsNothingOfIt() throws {
        let last = try folder.open()
        _ = try last.write { transaction throws(Failure) in try transaction.make(named: name("kept")) }
        try Index.renew(path: folder.database)
        _ = try last.write { transaction throws(Failure) in try transaction.make(named: name("late")) }
        let next = try folder.open()
        _ = try next.write { transaction throws(Failure) in try transaction.make(named: name("new")) }
        try next.read { transaction throws(Failure) in
            let names = try transaction.children(of: .root).map(\.name)
            #expect(Set(names) == [name("kept"), name("new")])
        }
        #expect(try next.verify() == [])
        next.close()
        let again = try folder.open()
        #expect(try again.verify() == [])
        let names = try again.read { transaction throws(Failure) in
            try transaction.children(of: .root).map(\.name)
        }
        #expect(Set(names) == [name("kept"), name("new")])
        // A dead process closes nothing, which would remove the log by its name.
        withExtendedLifetime(last) {}
    }

    @Test func whereThereIsNoneNothingIsMade() throws {
        try Index.renew(path: folder.database)
        #expect(try folder.names().isEmpty)
    }
}
