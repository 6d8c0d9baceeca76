import PromiseCore
import PromiseFilesystem
import Testing

/// `setfattr -n foo` succeeded, and `cp -a` of that file to another disk did not.
struct AttributeSpaceTests {
    @Test(arguments: [
        "user.a", "trusted.a", "security.capability", "system.posix_acl_access", "system.posix_acl_default",
        "system.promisefs.excluded",
    ])
    func aNameOfAKnownSpaceIsTaken(name: String) throws {
        try AttributeSpace.check(Array(name.utf8))
    }

    @Test(arguments: [
        ("foo", Failure.Code.notSupported), ("userfoo", .notSupported), ("system.other", .notSupported), ("", .notSupported),
        ("user.", .invalid), ("trusted.", .invalid),
    ])
    func anyOtherIsRefusedAsOnADisk(name: String, code: Failure.Code) {
        let error = #expect(throws: Failure.self) { try AttributeSpace.check(Array(name.utf8)) }
        #expect(error?.code == code)
    }
}
