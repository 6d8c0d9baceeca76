import PromiseCore
import PromiseMount
import Testing

/// `-o` as mount(8) writes it, and what libfuse is given.
@Suite struct MountOptionsTests {
    private func options(_ text: String, isSuperuser: Bool = false) throws -> MountOptions {
        var options = MountOptions(mountPoint: Array("/mnt".utf8), domain: "work", isSuperuser: isSuperuser)
        try options.apply(text)
        return options
    }

    @Test func rootSharesTheMountUnlessToldNot() throws {
        #expect(try options("", isSuperuser: true).allowsOthers)
        #expect(try !options("", isSuperuser: false).allowsOthers)
        #expect(try options("allow_other", isSuperuser: false).allowsOthers)
        #expect(try !options("noallow_other", isSuperuser: true).allowsOthers)
    }

    @Test func theLaterOfAPairWins() throws {
        #expect(try options("ro,rw").isReadOnly == false)
        #expect(try options("rw,ro").isReadOnly)
        #expect(try options("dev,nodev,exec,dev").mountFlags == ["exec", "dev"])
    }

    @Test func ownersAreNumbers() throws {
        let options = try options("uid=1000,gid=0")
        #expect(options.owner == 1000)
        #expect(options.group == 0)
    }

    @Test(arguments: [
        "uid=", "uid=me", "uid=-1", "gid=4294967295", "gid=99999999999", "colour=red", "ro=1", "Ro", "uid", "fsname=",
    ])
    func whatIsNotUnderstoodIsNamed(option: String) {
        #expect {
            _ = try options("rw,\(option),dev")
        } throws: { error in
            guard let failure = error as? Failure else { return false }
            return failure.code == .invalid && failure.message.contains("'\(option)'")
        }
    }

    @Test func wordsOfFstabAreAccepted() throws {
        let text = "defaults,_netdev,nofail,noauto,user,x-systemd.automount,x-gvfs-name=Work,comment=mine,default_permissions,,"
        #expect(try options(text) == options(""))
    }

    @Test func theKernelAlwaysChecksPermissions() throws {
        let arguments = try options("ro,noatime", isSuperuser: true).libraryArguments
        #expect(arguments.count == 3)
        #expect(arguments[2] == "default_permissions,subtype=promisefs,fsname=work,ro,allow_other,noatime")
    }

    @Test func aDomainNameCannotAddOptions() {
        let options = MountOptions(mountPoint: [0x2F], domain: #"a,suid\b"#, isSuperuser: false)
        #expect(options.libraryArguments[2] == #"default_permissions,subtype=promisefs,fsname=a\,suid\\b,rw"#)
    }
}
