import PromiseCore
import PromiseFilesystem
import Testing

/// Names of attributes that are the product's own.
@Suite(.timeLimit(.minutes(5))) struct VirtualAttributeTests {
    private let caller = Caller(user: 0, group: 0, process: 0)

    private func set(
        _ name: String, _ value: String, in domain: SimulatedDomain, by caller: Caller? = nil
    ) throws(Failure) {
        try domain.filesystem.setExtendedAttribute(
            Array(name.utf8), of: .root, to: Array(value.utf8), mode: .any, clearsSetGroupID: false,
            caller: caller ?? self.caller)
    }

    /// The kernel checks nothing of such names: a second user pinned, evicted and held back what was not his.
    @Test func whatTheKernelDoesNotGuardIsTheOwnersToSet() async throws {
        let domain = try SimulatedDomain()
        let stranger = Caller(user: 12_345, group: 0, process: 0)
        try await domain.run {
            for (name, value) in [("pin", "pinned"), ("excluded", "true")] {
                let found = failure { () throws(Failure) in
                    try set("system.promisefs." + name, value, in: domain, by: stranger)
                }
                #expect(found?.code == .notPermitted)
            }
            let removed = failure { () throws(Failure) in
                try domain.filesystem.removeExtendedAttribute(
                    Array("system.promisefs.excluded".utf8), of: .root, caller: stranger)
            }
            #expect(removed?.code == .notPermitted)
            try set("system.promisefs.pin", "automatic", in: domain)
            let ofFolder = failure { () throws(Failure) in
                try set("system.promisefs.excluded", "true", in: domain)
            }
            #expect(ofFolder?.code == .notSupported)
        }
    }

    @Test(arguments: ["user.promisefs.foo", "user.promisefs.pinn", "user.promisefs.", "system.promisefs.foo"])
    func aSlipInAnAttributesNameIsRefused(name: String) async throws {
        let domain = try SimulatedDomain()
        try await domain.run {
            let written = failure { () throws(Failure) in try set(name, "pinned", in: domain) }
            #expect(written?.code == .notSupported)
            let read = failure { () throws(Failure) in
                _ = try domain.filesystem.extendedAttribute(Array(name.utf8), of: .root, caller: caller)
            }
            #expect(read?.code == .noAttribute)
            let names = try domain.filesystem.extendedAttributeNames(of: .root)
            #expect(names.isEmpty)
        }
    }

    private func failure(of body: () throws(Failure) -> Void) -> Failure? {
        do throws(Failure) { try body() } catch { return error }
        return nil
    }

    @Test func otherNamesAndThoseThatAreKnownAreSet() async throws {
        let domain = try SimulatedDomain()
        try await domain.run {
            try set("user.promisefs.pin", "automatic", in: domain)
            try set("user.promisefsx", "other", in: domain)
            let names = try domain.filesystem.extendedAttributeNames(of: .root)
            #expect(names == [Array("user.promisefsx".utf8)])
        }
    }
}
