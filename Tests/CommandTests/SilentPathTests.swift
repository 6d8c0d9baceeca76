import Testing

@testable import promisefs

/// What is looked at by a process that is left behind when nothing comes back.
@Suite struct SilentPathTests {
    @Test func whatIsThereAndWhatIsNotThereBothAnswer() {
        for path in ["/", "/dev/null", "/no-such-folder/here", "/dev/null/below"] {
            #expect(SystemMounts.answers(Array(path.utf8)), "\(path)")
        }
    }

    /// `doctor` waited for the mount point of a line of fstab(5).
    @Test func aPlaceThatIsNotThereIsToldOfALineOfFstab() {
        let found = DoctorUnits.fstab("folder:/srv /no-such-folder/here promisefs noauto 0 0\n")
        #expect(found.contains { $0.message == "the mount point /no-such-folder/here does not exist" })
        #expect(DoctorUnits.fstab("folder:/srv / ext4 noauto 0 0\n").isEmpty)
        let silent = DoctorFolders.silent(Array("/srv/x".utf8), "domain a", "its state folder ")
        #expect(silent.message == "its state folder /srv/x does not answer")
    }
}
