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
}
