import Glibc

/// One line of the mount table.
public struct MountEntry: Sendable, Equatable {
    /// Unique while mounted.
    public var identifier: UInt64
    /// What of the file system is seen here; `/` unless it is a bind mount of a part.
    public var root: [UInt8]
    public var mountPoint: [UInt8]
    /// `fuse.promisefs`, `ext4`, …
    public var type: String
    public var source: [UInt8]
    public var superOptions: [UInt8]
    /// `0:46`: the two numbers of its device.
    public var device: [UInt8] = []

    public static let promiseType = "fuse.promisefs"

    public var isPromiseFS: Bool { type == MountEntry.promiseType }
    /// Of a PromiseFS mount whose source is another word than its domain's name (`-o fsname=`).
    var servedDomain: String?
    /// The name of the domain, of a PromiseFS mount.
    public var domain: String { servedDomain ?? String(decoding: source, as: UTF8.self) }
    /// Who mounted it (`user_id=` of a FUSE mount); 0 when the table does not say.
    public var user: UInt32 {
        for option in superOptions.split(separator: UInt8(ascii: ",")) {
            let text = String(decoding: option, as: UTF8.self)
            if text.hasPrefix("user_id="), let number = UInt32(text.dropFirst(8)) { return number }
        }
        return 0
    }

    /// Two users may have domains of one name; one domain may be seen at several places.
    public func isOfSameDomain(as other: MountEntry) -> Bool { domain == other.domain && user == other.user }
    /// By the name of its domain, or by its source.
    public func isCalled(_ name: [UInt8]) -> Bool { domain.utf8.elementsEqual(name) || source == name }

    /// For people: a name, or the number where nobody has one.
    public var userName: String {
        guard let record = getpwuid(user), let name = record.pointee.pw_name else { return "user \(user)" }
        return String(cString: name)
    }
}

/// The mounts that this process sees (`/proc/self/mountinfo`, proc_pid_mountinfo(5)), in the order they were made.
public struct MountTable: Sendable, Equatable {
    public var entries: [MountEntry]

    public init(entries: [MountEntry]) { self.entries = entries }

    /// Lines that do not look like the manual's are skipped.
    public init(parsing bytes: some Sequence<UInt8>) {
        entries = Array(bytes).split(separator: 0x0A).compactMap { MountTable.entry(ofLine: $0) }
    }

    /// Reads the kernel's table now. Blocking, but never on a file system.
    public static func current() throws(PromiseError) -> MountTable {
        guard let bytes = readWholeFile("/proc/self/mountinfo") else {
            throw PromiseError(.local, "the mount table cannot be read: /proc/self/mountinfo; mount /proc", exitStatus: 1)
        }
        var table = MountTable(parsing: bytes)
        table.nameDomains()
        return table
    }

    /// One entry a domain, the latest mount first choice. The names of domains are per user.
    public var promiseMounts: [MountEntry] {
        let all = entries.filter(\.isPromiseFS)
        func key(_ entry: MountEntry) -> [UInt8] { Array("\(entry.user)/\(entry.domain)".utf8) }
        var devices: [[UInt8]: [UInt8]] = [:]
        for entry in all { devices[key(entry)] = entry.device }
        // Of the newest mount of a domain the one of all of it, and bind mounts only where there is no other.
        var chosen: [[UInt8]: MountEntry] = [:]
        for entry in all where entry.device == devices[key(entry)] {
            if let known = chosen[key(entry)], known.root == [0x2F] || entry.root != [0x2F] { continue }
            chosen[key(entry)] = entry
        }
        return all.filter { chosen[key($0)]?.identifier == $0.identifier }
    }

    /// Those of one user.
    public func promiseMounts(of user: UInt32) -> [MountEntry] { promiseMounts.filter { $0.user == user } }

    /// The mount that an absolute, resolved path is on: the longest mount point above it, the latest of equal ones.
    public func entry(holding path: [UInt8]) -> MountEntry? {
        var best: MountEntry?
        for entry in entries where remainder(of: path, below: entry.mountPoint) != nil {
            if entry.mountPoint.count >= best?.mountPoint.count ?? 0 { best = entry }
        }
        return best
    }

    /// `36 35 98:0 /root /mount rw,noatime master:1 - type source super-options`
    private static func entry(ofLine line: ArraySlice<UInt8>) -> MountEntry? {
        let fields = line.split(separator: 0x20)
        guard fields.count >= 10, let identifier = UInt64(String(decoding: fields[0], as: UTF8.self)) else { return nil }
        guard let dash = fields[6...].firstIndex(where: { $0.elementsEqual([UInt8(ascii: "-")]) }), fields.count > dash + 3 else {
            return nil
        }
        return MountEntry(
            identifier: identifier, root: unescaped(fields[3]), mountPoint: unescaped(fields[4]),
            type: String(decoding: unescaped(fields[dash + 1]), as: UTF8.self), source: unescaped(fields[dash + 2]),
            superOptions: unescaped(fields[dash + 3]), device: Array(fields[2]))
    }

    /// The kernel writes space, tab, newline and backslash as `\ooo`.
    private static func unescaped(_ field: ArraySlice<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        var rest = field
        while let byte = rest.popFirst() {
            let digits = rest.prefix(3)
            if byte == UInt8(ascii: "\\"), digits.count == 3, digits.allSatisfy({ (0x30...0x37).contains($0) }) {
                let value = digits.reduce(0) { $0 * 8 + Int($1 - 0x30) }
                result.append(UInt8(truncatingIfNeeded: value))
                rest = rest.dropFirst(3)
            } else {
                result.append(byte)
            }
        }
        return result
    }
}

/// What is left of `path` below `folder`, without a leading slash; nil when it is not below it.
func remainder(of path: [UInt8], below folder: [UInt8]) -> [UInt8]? {
    if folder == [0x2F] { return path.first == 0x2F ? Array(path.dropFirst()) : nil }
    guard path.starts(with: folder) else { return nil }
    if path.count == folder.count { return [] }
    return path[folder.count] == 0x2F ? Array(path[(folder.count + 1)...]) : nil
}
