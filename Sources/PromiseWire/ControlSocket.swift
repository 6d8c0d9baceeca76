/// Where a domain's control socket is.
public enum ControlSocket {
    /// sun_path holds 108 bytes with its NUL (unix(7)).
    public static let pathByteCountMax = 107

    /// The folder a daemon of this user puts its sockets in.
    public static func folder(user: UInt32, runtimeFolder: String?) -> String {
        if let runtimeFolder, runtimeFolder.hasPrefix("/") { return runtimeFolder + "/promisefs" }
        return user == 0 ? "/run/promisefs" : "/tmp/promisefs-\(user)"
    }

    public static func path(domain: String, user: UInt32, runtimeFolder: String?) -> String {
        folder(user: user, runtimeFolder: runtimeFolder) + "/\(domain).sock"
    }

    /// Where a client looks for the socket of a mount, most likely first: the daemon may have been started by another user
    /// or from a session with another environment.
    public static func candidates(domain: String, mountUser: UInt32, user: UInt32, runtimeFolder: String?) -> [String] {
        var folders: [String] = []
        if mountUser == user { folders.append(folder(user: user, runtimeFolder: runtimeFolder)) }
        if mountUser == 0 { folders.append("/run/promisefs") }
        folders.append("/run/user/\(mountUser)/promisefs")
        if mountUser != 0 { folders.append("/tmp/promisefs-\(mountUser)") }
        var seen: Set<String> = []
        return folders.filter { seen.insert($0).inserted }.map { "\($0)/\(domain).sock" }
    }
}

/// Names of domains: part of file names and of the mount table.
public enum DomainName {
    public static let byteCountMax = 64

    /// Letters and digits of ASCII, `.`, `_` and `-`; at most 64; not starting with a dot, nor with what begins an option.
    public static func isValid(_ name: String) -> Bool {
        !name.isEmpty && name.utf8.count <= byteCountMax && !name.hasPrefix(".") && !name.hasPrefix("-")
            && name.utf8.allSatisfy(isAllowed)
    }

    public static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"): true
        default: false
        }
    }
}
