import Glibc
import PromiseCore

/// Where a path is in a PromiseFS mount.
public struct Location: Sendable, Equatable {
    public var mount: MountEntry
    /// Absolute, with links in the folders above it resolved.
    public var absolutePath: [UInt8]
    /// From the root of the domain, without a leading slash; empty for the root.
    public var path: [UInt8]

    public var domain: String { mount.domain }
    public var isMountPoint: Bool { absolutePath == mount.mountPoint }

    /// Finds the mount that holds a path. The final component is not resolved, so that links can be named; when the link is
    /// outside and leads into a mount, what it leads to is meant.
    ///
    /// Blocking: it resolves links in the folders above.
    public static func of(_ path: [UInt8], in table: MountTable) throws(PromiseError) -> Location {
        let resolved = try resolveParent(of: path, in: table)
        if let location = ofResolved(resolved, in: table) { return location }
        if let target = realPath(resolved), target != resolved, let location = ofResolved(target, in: table) {
            return location
        }
        let shown = escapedForDisplay(path)
        var status = stat()
        guard resolved.withCString({ lstat($0, &status) }) == 0 else {
            throw PromiseError(.notPromiseFS, "\(shown) does not exist, and its folder is on no PromiseFS mount", exitStatus: 3)
        }
        throw PromiseError(
            .notPromiseFS, "\(shown) is not on a PromiseFS mount; 'promisefs status' lists the mounts", exitStatus: 3)
    }

    /// Where this mount shows another item of the domain, given its path from the domain's root; nil where it does not.
    public func absolutePath(of path: [UInt8]) -> [UInt8]? { Location.absolutePath(of: path, on: mount) }

    public static func absolutePath(of path: [UInt8], on mount: MountEntry) -> [UInt8]? {
        guard let rest = remainder(of: [0x2F] + path, below: mount.root) else { return nil }
        let folder = mount.mountPoint == [0x2F] ? [] : mount.mountPoint
        return rest.isEmpty ? mount.mountPoint : folder + [0x2F] + rest
    }

    /// Of an absolute path without links in it: looks at no file system.
    package static func ofResolved(_ path: [UInt8], in table: MountTable) -> Location? {
        guard let entry = table.entry(holding: path), entry.isPromiseFS else { return nil }
        guard let rest = remainder(of: path, below: entry.mountPoint) else { return nil }
        let root = Array(entry.root.drop { $0 == 0x2F })
        let whole = root.isEmpty ? rest : rest.isEmpty ? root : root + [0x2F] + rest
        return Location(mount: entry, absolutePath: path, path: whole)
    }
}

/// The path with everything above its final component resolved, absolute.
///
/// A dead daemon's mount cannot be looked into (ENOTCONN); then the path is taken as it is spelt.
public func resolveParent(of path: [UInt8]) throws(PromiseError) -> [UInt8] {
    try resolveParent(of: path, in: MountTable(entries: []))
}

/// The same, where mounts of others are known: the kernel lets nobody else look into them, not
/// even root (EACCES), and a path there is taken as it is spelt, too.
private func resolveParent(
    of path: [UInt8], in table: MountTable
) throws(PromiseError) -> [UInt8] {
    guard !path.isEmpty, !path.contains(0) else {
        throw PromiseError(.local, "an empty path names nothing", exitStatus: 2)
    }
    let absolute = try absolutePath(path)
    var trimmed = absolute
    while trimmed.count > 1, trimmed.last == 0x2F { trimmed.removeLast() }
    guard trimmed != [0x2F], let slash = trimmed.lastIndex(of: 0x2F) else { return [0x2F] }
    let name = Array(trimmed[(slash + 1)...])
    let isSpecial = name == Array(".".utf8) || name == Array("..".utf8)
    let parent = isSpecial ? trimmed : slash == 0 ? [0x2F] : Array(trimmed[..<slash])
    guard let folder = realPath(parent) else {
        let code = errno
        let plain = simplified(absolute)
        if code == ENOTCONN || code == ECONNABORTED { return plain }
        // Whose daemon answers whom is the daemon's to say, at any depth.
        if code == EACCES, let mount = table.entry(holding: plain), mount.isPromiseFS,
            mount.user != geteuid()
        {
            return plain
        }
        // What is missing may be missing below a mount, which the mount's daemon then says.
        if code == ENOENT, !isSpecial {
            return try resolveParent(of: parent, in: table) + [0x2F] + name
        }
        throw PromiseError(
            .local, "\(escapedForDisplay(path)) cannot be found: \(String(cString: strerror(code)))", exitStatus: 1)
    }
    if isSpecial { return folder }
    return folder == [0x2F] ? folder + name : folder + [0x2F] + name
}

/// realpath(3) on bytes; nil with errno set.
public func realPath(_ path: [UInt8]) -> [UInt8]? {
    guard let resolved = path.withCString({ realpath($0, nil) }) else {
        // The calls take no path of PATH_MAX bytes; a program comes there step by step.
        return errno == ENAMETOOLONG ? longRealPath(path) : nil
    }
    defer { free(resolved) }
    return UnsafeBufferPointer(start: resolved, count: strlen(resolved)).map { UInt8(bitPattern: $0) }
}

/// The same of an absolute path of any length, step by step as the system does it.
private func longRealPath(_ path: [UInt8]) -> [UInt8]? {
    let flags: CInt = 0o10000000 | O_NOFOLLOW | O_CLOEXEC  // O_PATH, open(2)
    var (found, links): ([[UInt8]], Int) = ([], 0)
    var rest = Array(path.split(separator: 0x2F).reversed())
    var here = open("/", flags)
    defer { if here >= 0 { close(here) } }
    func go(to next: CInt) {
        if here >= 0 { close(here) }
        here = next
    }
    while let name = rest.popLast() {
        if name.elementsEqual(".".utf8) { continue }
        let next = Array(name).withCString { openat(here, $0, flags) }
        guard next >= 0 else { return nil }
        if name.elementsEqual("..".utf8) {
            _ = found.popLast()
            go(to: next)
            continue
        }
        var status = stat()
        guard fstat(next, &status) == 0, status.st_mode & S_IFMT == S_IFLNK else {
            found.append(Array(name))
            go(to: next)
            continue
        }
        defer { close(next) }
        var target = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = readlinkat(next, "", &target, target.count)
        links += 1
        guard count > 0, links <= 40 else {
            if count > 0 { errno = ELOOP }
            return nil
        }
        if target[0] == 0x2F {
            found = []
            go(to: open("/", flags))
        }
        rest += target[..<count].split(separator: 0x2F).reversed()
    }
    return found.isEmpty ? [0x2F] : found.flatMap { [0x2F] + $0 }
}

/// Makes a path absolute by the working directory, resolving nothing.
public func absolutePath(_ path: [UInt8]) throws(PromiseError) -> [UInt8] {
    if path.first == 0x2F { return path }
    guard let folder = getcwd(nil, 0) else {
        throw PromiseError(.local, "the working directory is gone; change to another", exitStatus: 1)
    }
    defer { free(folder) }
    let bytes = UnsafeBufferPointer(start: folder, count: strlen(folder)).map { UInt8(bitPattern: $0) }
    return bytes + [0x2F] + path
}

/// Takes `.`, `..` and doubled slashes out of an absolute path without looking at the disk.
public func simplified(_ path: [UInt8]) -> [UInt8] {
    var parts: [ArraySlice<UInt8>] = []
    for part in path.split(separator: 0x2F) {
        if part.elementsEqual(".".utf8) { continue }
        if part.elementsEqual("..".utf8) { _ = parts.popLast() } else { parts.append(part) }
    }
    return parts.isEmpty ? [0x2F] : parts.flatMap { [0x2F] + $0 }
}

extension [UInt8] {
    /// As a C string. The bytes hold no NUL: callers have checked or got them from the kernel.
    func withCString<Value>(_ body: (UnsafePointer<CChar>) -> Value) -> Value {
        let terminated = map { CChar(bitPattern: $0) } + [0]
        return terminated.withUnsafeBufferPointer { body($0.baseAddress!) }
    }
}

/// All of a small file; nil when it cannot be read.
func readWholeFile(_ path: String) -> [UInt8]? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var result: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65536)
    while true {
        let count = read(descriptor, &buffer, buffer.count)
        if count < 0 && errno == EINTR { continue }
        guard count >= 0 else { return nil }
        if count == 0 { return result }
        result += buffer[..<count]
    }
}
