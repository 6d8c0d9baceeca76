import PromiseCore
import PromiseFilesystem
import PromiseIndex
import Testing

/// Where launches have what is no document.
@Suite struct ViewFoldersTests {
    /// Their end was told of folders that nobody had heard of.
    @Test func theirFoldersAreToldOfWhenTheyAreMadeAndWhenTheyGo() async throws {
        let domain = try SimulatedDomain()
        try await domain.run {
            let before = domain.index.newestChange
            let folders = ViewFolders(domain.filesystem)
            let place = try folders.make(FileName("7")!)
            folders.remove(place)
            let changes = try domain.index.read { transaction throws(Failure) in
                try transaction.changes(since: before, limit: 99)
            }
            func names(_ kind: Change.Kind) -> [String] {
                changes.filter { $0.kind == kind }.compactMap { $0.name?.display }.sorted()
            }
            #expect(names(.created) == [".promisefs-views", "7", "imports", "scratch"])
            // The folder of all launches stays.
            #expect(names(.deleted) == ["7", "imports", "scratch"])
        }
    }
}
