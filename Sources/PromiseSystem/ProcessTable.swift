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

    /// The open files of a process; none where this user may not see them.
    static func files(of process: Int32) -> [Int32] { numbers(in: Array("/proc/\(process)/fd".utf8)) }

    private static func numbers(in folder: [UInt8]) -> [Int32] {
        guard let descriptor = try? Descriptor.open(folder, flags: O_RDONLY | O_DIRECTORY, label: "processes.list"),
            let entries = try? listFolder(descriptor, label: "processes.names")
        else { return [] }
        return entries.compactMap { Int32(String(decoding: $0.name, as: UTF8.self)) }
    }
}
