import PromiseCore
import PromiseFilesystem
import PromiseProvider
import PromiseTestSupport
import Testing

/// Folders that stay on this machine, or are to, and hold what the provider has.
@Suite struct StayingFolderTests {
    private static let mark = "user.promisefs.excluded"

    /// The provider has the report, and knows nothing yet of the folder that it was moved into.
    private func withAReport(in folder: [String], _ body: (SimulatedDomain) async throws -> Void) async throws {
        let domain = try SimulatedDomain()
        try await domain.run {
            try await domain.write("first", to: ["report"])
            try await domain.makeFolder(["known"])
            try await domain.expectBothSidesTheSame("before")
            await domain.provider.fail(ProviderError(.offline, "the network is gone"))
            for count in 1...folder.count where folder[..<count] != ["known"] {
                try await domain.makeFolder(Array(folder.prefix(count)))
            }
            try await domain.rename(["report"], to: folder + ["report"])
            try await body(domain)
        }
    }

    /// It waited for ever for a folder that was never made, and what was written to it was never sent.
    @Test(arguments: [["new"], ["new", "inner"], ["known", "new"]])
    func aFolderThatIsNotSentYetCannotBeMarkedWhileItHoldsWhatTheProviderHas(folder: [String]) async throws {
        try await withAReport(in: folder) { domain in
            await #expect { try await domain.setAttribute(Self.mark, of: [folder[0]], to: "true") } throws: {
                ($0 as? Failure)?.code == .exists
            }
            try await domain.write("second", to: folder + ["report"])
            await domain.provider.fail(nil)
            try await domain.expectBothSidesTheSame()
            #expect(await domain.provider.tree().contains("\((folder + ["report"]).joined(separator: "/"))=second"))
        }
    }

    /// The same by a rename. Programs copy what cannot be renamed.
    @Test(arguments: [["new"], ["new", "inner"]])
    func aFolderThatIsNotSentYetIsNotMovedToWhereItStaysWithWhatTheProviderHas(folder: [String]) async throws {
        try await withAReport(in: folder) { domain in
            try await domain.makeFolder([".Trash-1"])
            await #expect { try await domain.rename([folder[0]], to: [".Trash-1", "new"]) } throws: {
                ($0 as? Failure)?.code == .crossDevice
            }
            try await domain.remove([".Trash-1"])
            await domain.provider.fail(nil)
            try await domain.expectBothSidesTheSame()
        }
    }

    /// As one that the provider has: it is sent under that name.
    @Test func aFolderThatIsNotSentYetKeepsWhatTheProviderHasUnderANameThatWouldStay() async throws {
        try await withAReport(in: ["new"]) { domain in
            try await domain.rename(["new"], to: [".Trash-1"])
            await domain.provider.fail(nil)
            try await domain.expectBothSidesTheSame()
            #expect(await domain.provider.tree() == [".Trash-1/", ".Trash-1/report=first", "known/"])
        }
    }

    /// Without such an item it stays, as before.
    @Test func aFolderThatIsNotSentYetCanBeMarked() async throws {
        let domain = try SimulatedDomain()
        try await domain.run {
            try await domain.expectBothSidesTheSame("before")
            await domain.provider.fail(ProviderError(.offline, "the network is gone"))
            try await domain.makeFolder(["private"])
            try await domain.write("mine", to: ["private", "diary"])
            try await domain.setAttribute(Self.mark, of: ["private"], to: "true")
            await domain.provider.fail(nil)
            try await domain.write("for all", to: ["letter"])
            while await domain.provider.tree() != ["letter=for all"] { try await Task.sleep(for: .milliseconds(5)) }
        }
    }
}
