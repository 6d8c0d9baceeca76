import Glibc
package import PromiseCore

/// Which nodes of one mount programs watch, by inotify(7) or fanotify(7).
///
/// The kernel tells no file system when somebody begins to watch, but shows what each process watches in /proc/PID/fdinfo
/// (proc_pid_fdinfo(5)). An ordinary user sees his own processes only.
package struct WatchedNodes: Sendable, Equatable {
    package var nodes: Set<NodeID> = []
    /// Somebody watches the whole mount or file system.
    package var isEverything = false

    package init() {}

    package var isEmpty: Bool { nodes.isEmpty && !isEverything }
    package func contains(_ node: NodeID) -> Bool { isEverything || nodes.contains(node) }

    /// A look at every open file of every process: some milliseconds. `device`: major and minor number; `mount`: its number in
    /// /proc/self/mountinfo. What cannot be read is passed over.
    package static func find(on device: (major: UInt32, minor: UInt32), mount: UInt32) -> WatchedNodes {
        var found = WatchedNodes()
        for process in ProcessTable.all() {
            for file in ProcessTable.files(of: process) {
                guard let kind = try? readLink(Array("/proc/\(process)/fd/\(file)".utf8), label: "watches.file"), isWatcher(kind),
                    // A large project that is watched is 100,000 lines.
                    let text = readSmallFile(Array("/proc/\(process)/fdinfo/\(file)".utf8), countMax: 32 << 20)
                else { continue }
                found.add(text, device, mount)
            }
        }
        return found
    }

    private static func isWatcher(_ target: [UInt8]) -> Bool {
        target == Array("anon_inode:inotify".utf8) || target == Array("anon_inode:[fanotify]".utf8)
    }

    /// The lines of one file of fdinfo, as `inotify wd:1 ino:9e7e sdev:800013 mask:…` and `fanotify mnt_id:12 …`; numbers are
    /// hexadecimal, and a device is its major number times 2²⁰ and its minor number.
    package mutating func add(_ text: [UInt8], _ device: (major: UInt32, minor: UInt32), _ mount: UInt32) {
        let wanted = UInt64(device.major) << 20 | UInt64(device.minor)
        for line in text.split(separator: 0x0A) where line.starts(with: inotify) || line.starts(with: fanotify) {
            let fields = line.split(separator: 0x20)
            if number(after: mountField, in: fields) == UInt64(mount) { isEverything = true }
            guard number(after: deviceField, in: fields) == wanted else { continue }
            if let inode = number(after: inodeField, in: fields) {
                nodes.insert(NodeID(rawValue: inode))
            } else {
                isEverything = true
            }
        }
    }

    private func number(after name: [UInt8], in fields: [ArraySlice<UInt8>]) -> UInt64? {
        for field in fields where field.starts(with: name) {
            return UInt64(String(decoding: field.dropFirst(name.count), as: UTF8.self), radix: 16)
        }
        return nil
    }
}

private let inotify = Array("inotify ".utf8)
private let fanotify = Array("fanotify ".utf8)
private let inodeField = Array("ino:".utf8)
private let deviceField = Array("sdev:".utf8)
private let mountField = Array("mnt_id:".utf8)
