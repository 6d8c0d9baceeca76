import Glibc
package import PromiseCore
package import PromiseSystem

/// How a domain is mounted. `apply` takes the text of `-o` as mount(8) has it.
package struct MountOptions: Sendable, Equatable {
    /// Where: the bytes of a path.
    package let mountPoint: [UInt8]
    /// Shown as the mount's source.
    package var domain: String
    /// Other users see the mount. On by default for root; for others fuse.conf must have `user_allow_other`.
    package var allowsOthers: Bool
    package var isReadOnly = false
    /// A mount point that has entries is hidden by the mount instead of refused.
    package var permitsNonempty = false
    /// Ask the kernel for passthrough.
    package var wantsPassthrough = true
    /// Used where this process may not register files itself.
    package var backingHelper: BackingHelper?
    /// Bytes of the path of `promisefs-echo`, by which programs that watch hear of the provider's changes; nil: they do not.
    package var echoProgram: [UInt8]?
    /// Of a view, where it is.
    package var foreignMount: ForeignMount?
    /// Bytes of the path of `promisefs-locks`, by which locks in views hold on this mount; nil: views have none.
    package var lockProgram: [UInt8]?
    /// Of a view.
    package var servesLocks = false
    /// Use FUSE over io_uring where the kernel offers it. Open files end with the process then.
    package var wantsRings = false
    /// Keep processors awake while requests come fast, where this process may.
    package var wantsLatencyLimit = true
    /// Threads that read requests. At least 1.
    package var threads = 2
    /// `uid=` and `gid=`: who owns all items as they are shown, and `fmask=` and `dmask=`, or `umask=` for both: which bits of
    /// files and folders are not. For an ordinary user's daemon all is the user's own. For the domain; the mount does not use
    /// them.
    package var owner: UInt32?
    package var group: UInt32?
    /// Of a mount that somebody else made, in a namespace of theirs, and that waits to be served: the FUSE device, which the
    /// session closes. There is no mount point then.
    package var device: CInt?
    package var fileMask: UInt32 = 0
    package var folderMask: UInt32 = 0
    /// Flags of mount(2) by their names there: `nosuid`, `dev`, `noexec`, …; the later of a pair wins.
    package private(set) var mountFlags: [String] = []

    package init(mountPoint: [UInt8], domain: String, isSuperuser: Bool = geteuid() == 0) {
        self.mountPoint = mountPoint
        self.domain = domain
        allowsOthers = isSuperuser
        if !isSuperuser { (owner, group) = (geteuid(), getegid()) }
    }

    /// For a view: its kernel has no pages and hears of nothing, so one thread and the device are all that it needs.
    /// `hasLocks`: its file system has the locks, not the kernel. `mount`: where programs see it.
    package static func view(
        of domain: String, device: CInt, hasLocks: Bool, at mount: ForeignMount?
    ) -> MountOptions {
        var options = MountOptions(mountPoint: [], domain: domain, isSuperuser: false)
        options.device = device
        options.foreignMount = mount
        options.servesLocks = hasLocks
        options.wantsPassthrough = false
        options.wantsLatencyLimit = false
        options.threads = 1
        return options
    }

    private static let flagPairs: [(on: String, off: String)] = [
        ("suid", "nosuid"), ("dev", "nodev"), ("exec", "noexec"), ("atime", "noatime"), ("sync", "async"),
    ]

    /// Words of fstab(5) and mount(8) that mean nothing here, or what is done anyway.
    private static let ignored: Set<String> = [
        "defaults", "default_permissions", "auto", "noauto", "user", "nouser", "users", "_netdev", "nofail", "relatime",
        "dirsync",
    ]

    /// Reads `opt[,opt…]`; may be called several times.
    ///
    /// Throws `.invalid` with a sentence that names the first option that is unknown or has a bad value.
    package mutating func apply(_ text: String) throws(Failure) {
        for option in text.split(separator: ",") {
            let parts = option.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            try apply(name: String(parts[0]), value: parts.count > 1 ? String(parts[1]) : nil, option: String(option))
        }
    }

    private mutating func apply(name: String, value: String?, option: String) throws(Failure) {
        switch (name, value) {
        case ("ro", nil): isReadOnly = true
        case ("rw", nil): isReadOnly = false
        case ("allow_other", nil): allowsOthers = true
        case ("noallow_other", nil): allowsOthers = false
        case ("nonempty", nil): permitsNonempty = true
        case ("fsname", .some(let text)) where !text.isEmpty: domain = text
        case ("uid", .some(let text)): owner = try number(text, option)
        case ("gid", .some(let text)): group = try number(text, option)
        case ("umask", .some(let text)):
            fileMask = try mask(text, option)
            folderMask = fileMask
        case ("fmask", .some(let text)): fileMask = try mask(text, option)
        case ("dmask", .some(let text)): folderMask = try mask(text, option)
        case ("comment", .some): break
        case (_, nil) where Self.ignored.contains(name) || name.hasPrefix("x-"): break
        case (_, .some) where name.hasPrefix("x-"): break
        case (_, nil):
            guard let pair = Self.flagPairs.first(where: { $0.on == name || $0.off == name }) else { throw unknown(option) }
            mountFlags.removeAll { $0 == pair.on || $0 == pair.off }
            mountFlags.append(name)
        default: throw unknown(option)
        }
    }

    private func number(_ text: String, _ option: String) throws(Failure) -> UInt32 {
        guard let number = UInt32(text), number != .max else {
            throw Failure(.invalid, "mount option '\(option)' needs a number from 0 to 4294967294")
        }
        return number
    }

    private func mask(_ text: String, _ option: String) throws(Failure) -> UInt32 {
        guard let mask = UInt32(text, radix: 8), mask <= 0o777 else {
            throw Failure(.invalid, "mount option '\(option)' needs an octal number from 0 to 777")
        }
        return mask
    }

    private func unknown(_ option: String) -> Failure {
        Failure(
            .invalid,
            "mount option '\(option)' is not known: allow_other, ro, nonempty, uid=, gid=, umask=, dmask=, fmask=, suid, dev, "
                + "noexec and noatime are")
    }

    /// The arguments of fuse_session_new(3), the program's name first. Permissions are always the kernel's business.
    package var libraryArguments: [String] {
        var options = ["default_permissions", "subtype=promisefs", "fsname=" + escaped(domain), isReadOnly ? "ro" : "rw"]
        if allowsOthers { options.append("allow_other") }
        options += mountFlags
        return ["promisefs", "-o", options.joined(separator: ",")]
    }

    /// libfuse splits at commas and takes a backslash as the mark of a literal character.
    private func escaped(_ text: String) -> String {
        var result = ""
        for character in text {
            if character == "," || character == "\\" { result.append("\\") }
            result.append(character)
        }
        return result
    }
}
