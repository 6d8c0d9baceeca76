import PromiseCore
import PromiseFilesystem
import PromiseProvider
import PromiseSync
import PromiseSystem
import PromiseTestSupport
import Testing

/// fsync in a folder where it means the provider. The upload delay is an hour: nothing goes by itself.
@Suite struct FsyncReachTests {
    private static let attribute = "user.promisefs.fsync"

    private func withDomain(_ body: (SimulatedDomain) async throws -> Void) async throws {
        let domain = try SimulatedDomain(uploadDelay: .seconds(3600))
        try await domain.run {
            try await domain.makeFolder(["d"])
            try await domain.write("first", to: ["d", "x"])
            try await domain.setAttribute(FsyncReachTests.attribute, of: ["d"], to: "provider")
            try await body(domain)
        }
    }

    private func code(_ body: () async throws -> Void) async throws -> Failure.Code? {
        do throws(any Error) { try await body() } catch let failure as Failure { return failure.code }
        return nil
    }

    /// > Where the attribute `user.promisefs.fsync` of a folder is `provider`
    @Test func theProviderHasWhatWasSyncedAlthoughTheFileIsOpen() async throws {
        try await withDomain { domain in
            let file = try await domain.open(["d", "x"])
            for text in ["one", "two", "three"] {
                try await domain.write(text, to: file)
                try await domain.synchronize(file)
                let tree = await domain.provider.tree()
                #expect(tree.contains { $0.hasPrefix("d/x=\(text)") }, "\(tree)")
            }
            domain.close(file)
        }
    }

    @Test func elsewhereItIsTheDiskOfThisMachine() async throws {
        try await withDomain { domain in
            try await domain.setAttribute(FsyncReachTests.attribute, of: ["d"], to: "local")
            let file = try await domain.open(["d", "x"])
            try await domain.write("other", to: file)
            try await domain.synchronize(file)
            try await domain.synchronizeFolder(["d"])
            domain.close(file)
            #expect(await domain.provider.tree() == [])
        }
    }

    @Test func theNearestFolderSaysIt() async throws {
        try await withDomain { domain in
            try await domain.makeFolder(["d", "local"])
            try await domain.setAttribute(FsyncReachTests.attribute, of: ["d", "local"], to: "local")
            try await domain.write("y", to: ["d", "local", "y"])
            let file = try await domain.open(["d", "local", "y"])
            try await domain.synchronize(file)
            domain.close(file)
            #expect(await domain.provider.tree() == [])
        }
    }

    @Test func ofAFolderTheProviderHasItsNames() async throws {
        try await withDomain { domain in
            try await domain.write("second", to: ["d", "y"])
            try await domain.write("third", to: ["d", "z"])
            try await domain.synchronizeFolder(["d"])
            #expect(await domain.provider.tree() == ["d/", "d/x=first", "d/y=second", "d/z=third"])
            try await domain.remove(["d", "x"])
            try await domain.rename(["d", "y"], to: ["d", "new"])
            try await domain.rename(["d", "z"], to: ["elsewhere"])
            try await domain.synchronizeFolder(["d"])
            #expect(await domain.provider.tree() == ["d/", "d/new=second", "elsewhere=third"])
        }
    }

    /// A write is taken all the same, also by a provider that is full: what is written is sent later.
    @Test(arguments: [(Failure.Code.refused, ProviderError.Code.refused), (.offline, .offline), (.quotaExceeded, .outOfSpace)])
    func aProviderThatIsAwayFullOrRefusesIsSaid(code expected: Failure.Code, told: ProviderError.Code) async throws {
        try await withDomain { domain in
            await domain.provider.fail(ProviderError(told, "it cannot be"))
            let file = try await domain.open(["d", "x"])
            try await domain.write("mine!", to: file)
            #expect(try await code { try await domain.synchronize(file) } == expected)
            await domain.provider.fail(nil)
            domain.close(file)
            domain.engine.lookNow()
            try await domain.expectBothSidesTheSame()
            #expect(await domain.provider.tree() == ["d/", "d/x=mine!"])
        }
    }

    @Test func manyAtOnceAreAllAnswered() async throws {
        try await withDomain { domain in
            for number in 0..<20 { try await domain.write("\(number)", to: ["d", "f\(number)"]) }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<20 {
                    group.addTask {
                        let file = try await domain.open(["d", "f\(number)"])
                        try await domain.write("again \(number)", to: file)
                        try await domain.synchronize(file)
                        let tree = await domain.provider.tree()
                        #expect(tree.contains("d/f\(number)=again \(number)"))
                        domain.close(file)
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    @Test func whatNobodyWaitsForAnyMoreIsForgotten() async throws {
        try await withDomain { domain in
            let gate = Gate()
            await domain.provider.holdAnswers(at: gate)
            let file = try await domain.open(["d", "x"])
            try await domain.write("again", to: file)
            let parked = domain.filesystem.synchronize(file.node, handle: file.handle, dataOnly: true) { result in
                #expect(throws: Failure.self) { try result.get() }
            }
            domain.filesystem.interrupt(try #require(parked))
            await domain.provider.holdAnswers(at: nil)
            gate.open()
            try await domain.synchronize(file)
            domain.close(file)
            #expect(await domain.provider.tree() == ["d/", "d/x=again"])
        }
    }

    @Test func onlyFoldersHaveItAndTwoValuesOnly() async throws {
        try await withDomain { domain in
            for (path, value) in [(["d", "x"], "provider"), (["d"], "cloud")] {
                let found = try await code { try await domain.setAttribute(FsyncReachTests.attribute, of: path, to: value) }
                #expect(found == .invalid)
            }
        }
    }
}

/// Two that wait for the provider to have everything.
@Suite struct DrainingTests {
    /// The one that ended first ended it for the other, which then waited for the upload delay.
    @Test func itLastsUntilAllWhoBeganItHaveEndedIt() async throws {
        let domain = try SimulatedDomain(uploadDelay: .seconds(3600))
        try await domain.run {
            domain.engine.setDraining(true)
            domain.engine.setDraining(true)
            domain.engine.setDraining(false)
            try await domain.write("text", to: ["file"])
            let file = try await domain.open(["file"])
            try await domain.write("longer text", to: file)
            domain.engine.lookNow()
            try await domain.expectBothSidesTheSame()
            domain.close(file)
            domain.engine.setDraining(false)
        }
    }
}
