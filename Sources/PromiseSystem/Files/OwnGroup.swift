import Glibc

/// A group that nobody is in but this user, as distributions make one for each and let it write by
/// default (umask 002). A group of several, as `users` is, is a stranger.
enum OwnGroup {
    /// Asks the system's databases (getgrgid_r(3)), which may be another machine's.
    static func isOne(_ number: UInt32) -> Bool {
        guard number == getegid() else { return false }
        guard let user = userName(geteuid()), let known = named(number) else {
            // In a container there may be numbers only.
            return number == geteuid()
        }
        return known.name == user && known.members.allSatisfy { $0 == user }
    }

    private static func named(_ number: UInt32) -> (name: String, members: [String])? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 1 << 16) { text in
            var record = group()
            var found: UnsafeMutablePointer<group>?
            guard let start = text.baseAddress, getgrgid_r(number, &record, start, text.count, &found) == 0, found != nil,
                let name = record.gr_name
            else { return nil }
            var members: [String] = []
            var next = record.gr_mem
            while let member = next?.pointee {
                members.append(String(cString: member))
                next = next?.advanced(by: 1)
            }
            return (String(cString: name), members)
        }
    }

    private static func userName(_ number: UInt32) -> String? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 1 << 16) { text in
            var record = passwd()
            var found: UnsafeMutablePointer<passwd>?
            guard let start = text.baseAddress, getpwuid_r(number, &record, start, text.count, &found) == 0, found != nil,
                let name = record.pw_name
            else { return nil }
            return String(cString: name)
        }
    }
}
