import PromiseCore

/// Mounts as others see them: a process in a mount namespace of its own has copies of all mounts
/// that were there when it was made, and keeps those that are unmounted elsewhere.
package enum MountNamespaces {
    package struct Holder: Sendable, Equatable {
        package var process: Int32
        /// At most 15 bytes of it (proc_pid_comm(5)).
        package var name: [UInt8]

        package var display: String { "process \(process) (\(escapedForDisplay(name)))" }
    }

    /// Somebody who sees a mount in another namespace than this process; nil also where this user
    /// may not look.
    /// `device` is as `0:46`.
    package static func holder(ofDevice device: [UInt8]) -> Holder? {
        var seen: Set<[UInt8]> = []
        if let own = namespace(of: "self") { seen.insert(own) }
        for process in ProcessTable.all() {
            guard let namespace = namespace(of: "\(process)"), seen.insert(namespace).inserted,
                let table = readSmallFile(
                    Array("/proc/\(process)/mountinfo".utf8), countMax: 4 << 20),
                table.split(separator: 0x0A).contains(where: { holds($0, device) })
            else { continue }
            let name = readSmallFile(Array("/proc/\(process)/comm".utf8)) ?? []
            return Holder(process: process, name: name.filter { $0 != 0x0A })
        }
        return nil
    }

    /// The third field (proc_pid_mountinfo(5)).
    private static func holds(_ line: ArraySlice<UInt8>, _ device: [UInt8]) -> Bool {
        let fields = line.split(separator: 0x20, maxSplits: 3)
        return fields.count > 2 && fields[2] == device[...]
    }

    /// `mnt:[4026531841]`
    private static func namespace(of process: String) -> [UInt8]? {
        try? readLink(Array("/proc/\(process)/ns/mnt".utf8), label: "namespace")
    }
}
