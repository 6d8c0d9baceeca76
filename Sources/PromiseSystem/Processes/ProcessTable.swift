import Glibc

/// The processes that /proc shows (proc(5)).
package enum ProcessTable {
    package static func all() -> [Int32] { numbers(in: Array("/proc".utf8)) }

    /// Those that may still make a call. `name`: at most 15 bytes, as the kernel keeps it (proc_pid_comm(5)).
    package static func named(_ name: String) -> Set<Int32> {
        let wanted = Array("\(name)\n".utf8)
        return Set(
            all().filter { process in
                readSmallFile(Array("/proc/\(process)/comm".utf8)) == wanted
                    // One that has ended and that nobody has waited for has no arguments any more.
                    && readSmallFile(Array("/proc/\(process)/cmdline".utf8))?.isEmpty == false
            })
    }

    /// What a process has started and what that has started, itself first; none when it has ended. Those
    /// whose parent has ended are nobody's here.
    package static func family(of process: Int32) -> [Int32] {
        guard kill(process, 0) == 0 else { return [] }
        var found = [process]
        var position = 0
        while position < found.count, found.count < familyCountMax {
            found += children(of: found[position])
            position += 1
        }
        return found
    }

    private static let familyCountMax = 10_000

    /// `/proc/PID/task/TID/children` of each thread.
    private static func children(of process: Int32) -> [Int32] {
        let folder = "/proc/\(process)/task"
        return numbers(in: Array(folder.utf8)).flatMap { thread -> [Int32] in
            let text = readSmallFile(Array("\(folder)/\(thread)/children".utf8)) ?? []
            return text.split(separator: 0x20).compactMap { Int32(String(decoding: $0, as: UTF8.self)) }
        }
    }

    /// The open files of a process; none where this user may not see them.
    static func files(of process: Int32) -> [Int32] { numbers(in: Array("/proc/\(process)/fd".utf8)) }

    /// The process has been killed or has exited, and is still there because threads of it wait in
    /// calls that nothing ends (state D of proc_pid_stat(5)), as on a network disk that hangs: none
    /// of them returns to the program. False for one that is not there.
    package static func isStuckInItsEnd(_ process: Int32) -> Bool {
        guard state(of: "/proc/\(process)/stat") == UInt8(ascii: "Z") else { return false }
        return numbers(in: Array("/proc/\(process)/task".utf8)).allSatisfy { thread in
            // Nil: it has ended meanwhile.
            guard let state = state(of: "/proc/\(process)/task/\(thread)/stat") else { return true }
            return [UInt8(ascii: "D"), UInt8(ascii: "Z"), UInt8(ascii: "X")].contains(state)
        }
    }

    /// The connections of fuse(4) whose devices a process has open, also one of which only threads are left: by their numbers in
    /// `/sys/fs/fuse/connections`. None where this user may not see that, or the kernel does not say.
    package static func fuseConnections(of process: Int32) -> Set<UInt32> {
        var result: Set<UInt32> = []
        // Threads may have files of their own.
        for thread in numbers(in: Array("/proc/\(process)/task".utf8)) {
            let folder = "/proc/\(process)/task/\(thread)"
            for file in numbers(in: Array("\(folder)/fd".utf8)) {
                let text = readSmallFile(Array("\(folder)/fdinfo/\(file)".utf8)) ?? []
                for line in String(decoding: text, as: UTF8.self).split(separator: "\n") {
                    let words = line.split(whereSeparator: { $0 == ":" || $0 == "\t" || $0 == " " })
                    if words.count == 2, words[0] == "fuse_connection", let number = UInt32(words[1]) { result.insert(number) }
                }
            }
        }
        return result
    }

    /// Behind the name, which is in parentheses and may hold anything.
    private static func state(of path: String) -> UInt8? {
        guard let line = readSmallFile(Array(path.utf8)),
            let end = line.lastIndex(of: UInt8(ascii: ")"))
        else { return nil }
        return line[(end + 1)...].first { $0 != UInt8(ascii: " ") }
    }

    /// Who holds a flock(2) of a file of this inode number, on any file system (proc_locks(5)).
    package static func lockHolders(inode: UInt64) -> [Int32] {
        let text = readSmallFile(Array("/proc/locks".utf8), countMax: 4 << 20) ?? []
        return String(decoding: text, as: UTF8.self).split(separator: "\n").compactMap { line in
            // `1: FLOCK  ADVISORY  WRITE 4711 fe:00:1234 0 EOF`; one that waits has `->` before it.
            let words = line.split(separator: " ")
            guard words.count >= 6, words[1] == "FLOCK",
                words[5].split(separator: ":").last == "\(inode)"
            else { return nil }
            return Int32(words[4])
        }
    }

    private static func numbers(in folder: [UInt8]) -> [Int32] {
        guard let descriptor = try? Descriptor.open(folder, flags: O_RDONLY | O_DIRECTORY, label: "processes.list"),
            let entries = try? listFolder(descriptor, label: "processes.names")
        else { return [] }
        return entries.compactMap { Int32(String(decoding: $0.name, as: UTF8.self)) }
    }
}
