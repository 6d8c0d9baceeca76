import Foundation
import Testing

@testable import promisefs

/// Where settings are is one question with one answer, whichever command asks it.
@Suite struct SettingsPlaceTests {
    /// `setup` wrote root's domain to /etc/promisefs, and `mount` looked for it in root's home.
    @Test func settingsOfRootAreTheMachinesForEveryCommand() {
        let machine = Array("/etc".utf8)
        #expect(BaseFolders.settingsFolder(of: 0, nil) == machine)
        // The specification has relative values ignored.
        #expect(BaseFolders.settingsFolder(of: 0, Array("settings".utf8)) == machine)
        #expect(BaseFolders.settingsFolder(of: 1000, nil) != machine)
        let given = Array("/srv/settings".utf8)
        #expect(BaseFolders.settingsFolder(of: 0, given) == given)
        #expect(BaseFolders.settingsFolder(of: 1000, given) == given)
    }

    /// Whoever upgraded had no domains any more, and no word of where they were.
    @Test func settingsInRootsHomeAreSaidToBeReadNoMore() throws {
        let place = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        let folder = place.appending(path: ".config/promisefs")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: place) }
        let home = Array(place.path.utf8)
        func paths(_ user: UInt32 = 0, _ given: [UInt8]? = nil, isNamed: Bool = false) -> [[UInt8]] {
            FormerSettings.paths(of: user, given, home: home, isNamed: isNamed)
        }
        #expect(paths().isEmpty)
        #expect(FormerSettings.sentence([]) == nil)
        for name in ["config.toml", "credentials"] {
            try Data().write(to: folder.appending(path: name))
        }
        #expect(paths().count == 2)
        #expect(paths(1000).isEmpty)
        #expect(paths(0, Array("/srv/settings".utf8)).isEmpty)
        #expect(paths(isNamed: true) == [home + Array("/.config/promisefs/credentials".utf8)])
        let sentence = try #require(FormerSettings.sentence(paths()))
        #expect(sentence.contains("config.toml and /") && sentence.hasSuffix("move them to /etc/promisefs"))
        let findings = FormerSettings.findings(paths())
        #expect(findings.allSatisfy { $0.level == .warning && $0.command?.contains("mv -n") == true })
        #expect(findings.count == 2)
    }
}
