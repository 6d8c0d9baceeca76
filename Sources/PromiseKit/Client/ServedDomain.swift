import Glibc
import PromiseWire

// A mount's source is its domain's name, but for `-o fsname=`: then the words of the process that serves it say the domain.

extension MountTable {
    /// Looks for the domains of mounts whose sources name none that has a socket, and of those that have one source: that may
    /// be the name of one of them. Blocking.
    mutating func nameDomains() { nameDomains(hasSocket: hasSocket, serving: servingProcesses) }

    package mutating func nameDomains(hasSocket: (MountEntry) -> Bool, serving: () -> [ServingProcess]) {
        let mounts = entries.filter(\.isPromiseFS)
        let unnamed = entries.indices.filter { index in
            let entry = entries[index]
            guard entry.isPromiseFS else { return false }
            return !hasSocket(entry)
                || mounts.contains { $0.source == entry.source && $0.user == entry.user && $0.device != entry.device }
        }
        if !unnamed.isEmpty { name(unnamed, by: serving()) }
    }

    private mutating func name(_ unnamed: [Int], by serving: [ServingProcess]) {
        for index in unnamed {
            let entry = entries[index]
            let found = serving.first { $0.mountPoint == entry.mountPoint && ($0.user == entry.user || $0.user == 0) }
            if let found, !found.domain.utf8.elementsEqual(entry.source) { entries[index].servedDomain = found.domain }
        }
    }
}

private func hasSocket(_ entry: MountEntry) -> Bool {
    guard DomainName.isValid(entry.domain) else { return false }
    let runtimeFolder = getenv("XDG_RUNTIME_DIR").map { String(cString: $0) }
    let paths = ControlSocket.candidates(
        domain: entry.domain, mountUser: entry.user, user: geteuid(), runtimeFolder: runtimeFolder)
    return paths.contains { isSocket($0, of: entry.user) } || boundSocket(of: entry) != nil
}

package struct ServingProcess {
    package var user: UInt32
    package var domain: String
    package var mountPoint: [UInt8]

    package init(user: UInt32, domain: String, mountPoint: [UInt8]) {
        (self.user, self.domain, self.mountPoint) = (user, domain, mountPoint)
    }
}

/// The daemons and holders of this machine, by `mount --foreground --domain NAME … -- PROVIDER MOUNTPOINT`.
private func servingProcesses() -> [ServingProcess] {
    guard let folder = opendir("/proc") else { return [] }
    defer { closedir(folder) }
    var result: [ServingProcess] = []
    while let entry = readdir(folder) {
        let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        guard name.utf8.first.map({ (0x31...0x39).contains($0) }) == true,
            readWholeFile("/proc/\(name)/comm")?.starts(with: "promisefs".utf8) == true,
            let words = readWholeFile("/proc/\(name)/cmdline")?.split(separator: 0, omittingEmptySubsequences: false),
            let option = words.firstIndex(where: { $0.elementsEqual("--domain".utf8) }), option + 1 < words.count,
            words[..<option].contains(where: { $0.elementsEqual("--foreground".utf8) }),
            let last = words.dropLast().last, let user = user(ofProcess: name)
        else { continue }
        result.append(
            ServingProcess(user: user, domain: String(decoding: words[option + 1], as: UTF8.self), mountPoint: Array(last)))
    }
    return result
}

/// The files of a process that may not be looked into belong to root.
private func user(ofProcess name: String) -> UInt32? {
    let lines = readWholeFile("/proc/\(name)/status")?.split(separator: 0x0A) ?? []
    guard let line = lines.first(where: { $0.starts(with: "Uid:".utf8) }) else { return nil }
    let words = line.dropFirst(4).split { $0 == 0x09 || $0 == 0x20 }
    return words.first.flatMap { UInt32(String(decoding: $0, as: UTF8.self)) }
}
