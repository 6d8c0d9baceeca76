import Glibc
import PromiseCore
import PromiseProvider
import PromiseSystem

/// Finds out what a file system keeps, by making a few files in a folder that nobody sees.
struct FolderProbe {
    let folder: OpenFolder
    /// Of every name that is made, so that nothing else is touched.
    let prefix: [UInt8]

    private static let reserved = "\"*:<>?|"
    /// What each escape makes unnecessary: names that have to come back as they were. `%` stands for the prefix.
    private static let tries: [(what: NameEscapes, names: [String])] = [
        (.controls, ["%\u{1}\u{9}\n\u{1B}\u{1F}\u{7F}"]),
        (.backslash, ["%\\x"]),
        (.reserved, reserved.map { "%\($0)x" }),
        (.ends, [" %", "% ", "%."]),
        (.decomposed, ["%e\u{301}"]),
        (.composed, ["%\u{E9}"]),
    ]

    func run() throws(SystemError) -> FolderTraits {
        var escapes = try escapes()
        if try ignoresCase() { escapes = (escapes ?? []).union(.cases) }
        return FolderTraits(escapes: escapes, kept: try keptMetadata().union(try keptLinks()))
    }

    /// One name with everything answers for most file systems.
    private func escapes() throws(SystemError) -> NameEscapes? {
        let all = [0x20] + prefix + Array("\u{1}\u{7F}\n\\\(FolderProbe.reserved)e\u{301}\u{E9}".utf8) + [0xFF, 0xFE]
        if try keeps(all), try keeps(prefix + Array(" ".utf8)), try keeps(prefix + Array(".".utf8)) { return nil }
        var result: NameEscapes = []
        for (what, names) in FolderProbe.tries {
            for name in names where !result.contains(what) {
                let bytes = name.utf8.flatMap { $0 == UInt8(ascii: "%") ? prefix : [$0] }
                if try !keeps(bytes) { result.insert(what) }
            }
        }
        // Who knows Windows' names may be asked by a driver that cuts what Windows would cut.
        if result.contains(.reserved) { result.insert(.ends) }
        return result
    }

    private func keeps(_ name: [UInt8]) throws(SystemError) -> Bool {
        do throws(SystemError) {
            _ = try make(name)
        } catch {
            // Room, and the right to write, are missing for any name.
            if [EROFS, EACCES, EPERM, ENOSPC, EDQUOT, EIO].contains(error.errno), try !canMake() { throw error }
            return false
        }
        let names = try listFolder(try folder.openForReading(), label: "folder.probe.list").map(\.name)
        // Under whatever name it is there now.
        try? unlink(name, in: folder.number, label: "folder.probe.remove")
        for name in names where contains(name, prefix) { try? unlink(name, in: folder.number, label: "folder.probe.remove") }
        return names.contains(name)
    }

    private func canMake() throws(SystemError) -> Bool {
        guard (try? make(prefix)) != nil else { return false }
        try unlink(prefix, in: folder.number, label: "folder.probe.remove")
        return true
    }

    private func make(_ name: [UInt8]) throws(SystemError) -> SharedDescriptor {
        SharedDescriptor(
            try Descriptor.open(
                name, in: folder.number, flags: O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600, label: "folder.probe.make"))
    }

    private func contains(_ name: [UInt8], _ part: [UInt8]) -> Bool {
        name.indices.contains { name[$0...].starts(with: part) }
    }

    /// Two modes, as a mount of one mode for all files may show any one of them.
    private func keptMetadata() throws(SystemError) -> FolderTraits.Kept {
        let file = try make(prefix)
        defer { try? unlink(prefix, in: folder.number, label: "folder.probe.remove") }
        let time = Timestamp(seconds: 1_000_000_001, nanoseconds: 123_456_789)
        try? setTimes(file.number, access: time, modification: time, label: "folder.probe.times")
        var kept: FolderTraits.Kept = [.modes, .times]
        for mode: mode_t in [0o640, 0o755] {
            _ = try? call("folder.probe.mode") { fchmod(file.number, mode) }
            let status = try FileStatus.of(descriptor: file.number, label: "folder.probe.status")
            if status.permissions != mode { kept.remove(.modes) }
        }
        let status = try FileStatus.of(descriptor: file.number, label: "folder.probe.kept")
        if status.modificationTime != time { kept.remove(.times) }
        return kept
    }

    private func ignoresCase() throws(SystemError) -> Bool {
        let name = prefix + Array("case".utf8)
        _ = try make(name)
        defer { try? unlink(name, in: folder.number, label: "folder.probe.remove") }
        do throws(SystemError) {
            _ = try FileStatus.of(prefix + Array("CASE".utf8), in: folder.number, label: "folder.probe.case")
            return true
        } catch {
            guard error.errno == ENOENT else { throw error }
            return false
        }
    }

    private func keptLinks() throws(SystemError) -> FolderTraits.Kept {
        let target = Array("target \u{E9}".utf8)
        do throws(SystemError) {
            _ = try withCPath(target) { target throws(SystemError) in
                try withCPath(prefix) { name throws(SystemError) in
                    try call("folder.probe.symlink") { symlinkat(target, folder.number, name) }
                }
            }
        } catch {
            return []
        }
        defer { try? unlink(prefix, in: folder.number, label: "folder.probe.remove") }
        guard try readLink(prefix, in: folder.number, label: "folder.probe.target") == target else { return [] }
        // It leads nowhere, so who follows it finds nothing.
        let time = Timestamp(seconds: 1_000_000_001, nanoseconds: 0)
        do throws(SystemError) {
            try setTimes(of: prefix, in: folder.number, access: time, modification: time, label: "folder.probe.link")
            return [.links, .linkMetadata]
        } catch {
            return .links
        }
    }
}
