import Glibc
import PromiseSystem
import PromiseTestSupport

/// A file system as memory sticks have it, in a file, mounted on `point` until it is pulled out.
final class MemoryStick: Sendable {
    enum Format: String, CaseIterable, Sendable {
        case exfat, ntfs

        var programs: [String] { self == .exfat ? ["mkfs.exfat", "mount.exfat-fuse"] : ["mkntfs", "ntfs-3g"] }
    }

    private let folder: TemporaryFolder
    private let format: Format
    private let device: String
    /// Where it is mounted; a folder like any other while it is not.
    var point: String { folder.string + "/stick" }
    /// What a provider has of it.
    var cloud: String { point + "/cloud" }

    /// Mounting needs root, a loop device and the programs.
    static func canMount(_ format: Format) -> Bool {
        guard canAttach else { return false }
        return format.programs.allSatisfy { program in
            ["/usr/sbin/", "/usr/bin/", "/sbin/", "/bin/"].contains { access($0 + program, X_OK) == 0 }
        }
    }

    /// Containers have the devices and may not use them.
    private static let canAttach: Bool = {
        guard geteuid() == 0, access("/dev/fuse", R_OK | W_OK) == 0 else { return false }
        guard let folder = try? TemporaryFolder("loop") else { return false }
        let image = folder.string + "/image"
        guard (try? shell("truncate -s 1M \(image)")) != nil, let device = try? shell("losetup --find --show \(image)") else {
            return false
        }
        return (try? shell("losetup --detach \(device)")) != nil
    }()

    init(_ format: Format) throws {
        self.format = format
        folder = try TemporaryFolder("stick")
        try folder.makeFolder("stick")
        let image = folder.string + "/image"
        try shell("truncate -s 256M \(image)")
        device = try shell("losetup --find --show \(image)")
        try shell(format == .exfat ? "mkfs.exfat \(device)" : "mkntfs --quick --quiet \(device)")
        try mount()
        try makeFolders(Array(cloud.utf8), label: "test.folder")
    }

    func mount() throws { try shell("\(format.programs[1]) \(device) \(point)") }
    func pullOut() throws { try shell("umount \(point)") }
    func empty() throws { try shell("rm -rf \(cloud)/* \(cloud)/.promisefs") }

    /// Another stick comes to its place, as the same device.
    func exchange() throws {
        try pullOut()
        let image = folder.string + "/other"
        try shell("truncate -s 256M \(image); losetup --detach \(device); losetup \(device) \(image)")
        try shell(format == .exfat ? "mkfs.exfat \(device)" : "mkntfs --quick --quiet \(device)")
        try mount()
        try makeFolders(Array(cloud.utf8), label: "test.folder")
    }

    /// At the end of a test.
    func throwAway() {
        _ = try? shell("umount -l \(point)")
        _ = try? shell("losetup --detach \(device)")
    }
}

/// Its first line of output.
@discardableResult private func shell(_ command: String) throws -> String {
    guard let stream = popen("(\(command)) 2>/dev/null", "r") else { throw SystemError(errno: errno, label: "test.shell") }
    var buffer = [CChar](repeating: 0, count: 4096)
    let hasLine = fgets(&buffer, 4096, stream) != nil
    while fgetc(stream) != EOF {}
    guard pclose(stream) == 0 else { throw SystemError(errno: ECHILD, label: "test.shell") }
    return hasLine ? String(decoding: buffer.prefix { $0 != 0 && $0 != 10 }.map { UInt8(bitPattern: $0) }, as: UTF8.self) : ""
}
