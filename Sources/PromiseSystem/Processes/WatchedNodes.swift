import Glibc
package import PromiseCore

/// Of a mounted file system, as stat(2) has it.
package struct DeviceNumber: Hashable, Sendable {
    package var major: UInt32
    package var minor: UInt32

    package init(major: UInt32, minor: UInt32) {
        self.major = major
        self.minor = minor
    }
}

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
        forEachWatcher { found.add($0, device, mount) }
        return found
    }

    /// As `find`, on several devices by one look, in their order. Marks of whole mounts are not
    /// looked for.
    package static func find(on devices: [DeviceNumber]) -> [WatchedNodes] {
        var found = devices.map { _ in WatchedNodes() }
        if devices.isEmpty { return found }
        forEachWatcher { text in
            for (position, device) in devices.enumerated() {
                found[position].add(text, (device.major, device.minor), .max)
            }
        }
        return found
    }

    private static func forEachWatcher(_ body: ([UInt8]) -> Void) {
        for process in ProcessTable.all() {
            for file in ProcessTable.files(of: process) {
                guard let kind = try? readLink(Array("/proc/\(process)/fd/\(file)".utf8), label: "watches.file"), isWatcher(kind),
                    // A large project that is watched is 100,000 lines.
                    let text = readSmallFile(Array("/proc/\(process)/fdinfo/\(file)".utf8), countMax: 32 << 20)
                else { continue }
                body(text)
            }
        }
    }

    private static func isWatcher(_ target: [UInt8]) -> Bool {
        target == Array("anon_inode:inotify".utf8) || target == Array("anon_inode:[fanotify]".utf8)
    }

    /// The lines of one file of fdinfo, as `inotify wd:1 ino:9e7e sdev:800013 mask:…` and `fanotify mnt_id:12 …`; numbers are
    /// hexadecimal, and a device is its major number times 2²⁰ and its minor number. There may be 100,000, so nothing is copied.
    package mutating func add(_ text: [UInt8], _ device: (major: UInt32, minor: UInt32), _ mount: UInt32) {
        let wanted = UInt64(device.major) << 20 | UInt64(device.minor)
        text.withUnsafeBufferPointer { bytes in
            var start = 0
            while start < bytes.count {
                let end = bytes[start...].firstIndex(of: 0x0A) ?? bytes.count
                add(UnsafeBufferPointer(rebasing: bytes[start..<end]), wanted, UInt64(mount))
                start = end + 1
            }
        }
    }

    private mutating func add(_ line: UnsafeBufferPointer<UInt8>, _ device: UInt64, _ mount: UInt64) {
        guard has(inotify, at: 0, in: line) || has(fanotify, at: 0, in: line) else { return }
        if number(after: mountField, in: line) == mount { isEverything = true }
        guard number(after: deviceField, in: line) == device else { return }
        if let inode = number(after: inodeField, in: line) { nodes.insert(NodeID(rawValue: inode)) } else { isEverything = true }
    }

    private func has(_ word: StaticString, at position: Int, in line: UnsafeBufferPointer<UInt8>) -> Bool {
        let count = word.utf8CodeUnitCount
        return position + count <= line.count && memcmp(line.baseAddress! + position, word.utf8Start, count) == 0
    }

    private func number(after field: StaticString, in line: UnsafeBufferPointer<UInt8>) -> UInt64? {
        guard var position = line.indices.first(where: { line[$0] == 0x20 && has(field, at: $0, in: line) }) else { return nil }
        position += field.utf8CodeUnitCount
        var (value, count) = (UInt64(0), 0)
        while position + count < line.count, let digit = digit(line[position + count]) {
            guard count < 16 else { return nil }
            value = value << 4 | digit
            count += 1
        }
        let isWhole = position + count == line.count || line[position + count] == 0x20
        return count > 0 && isWhole ? value : nil
    }

    private func digit(_ byte: UInt8) -> UInt64? {
        switch byte {
        case 0x30...0x39: UInt64(byte - 0x30)
        case 0x61...0x66: UInt64(byte - 0x57)
        default: nil
        }
    }
}

private let inotify: StaticString = "inotify "
private let fanotify: StaticString = "fanotify "
private let inodeField: StaticString = " ino:"
private let deviceField: StaticString = " sdev:"
private let mountField: StaticString = " mnt_id:"
