import Glibc
import PromiseCore
import PromiseSystem

/// A copy that a picker has made for a program, and that goes with it, however that ends.
enum TemporaryImport {
    private static let look = Duration.milliseconds(300)

    /// By a process of its own, which outlives this one.
    static func keep(_ path: [UInt8], while owner: Int32) {
        let nothing = open("/dev/null", O_RDWR | O_CLOEXEC)
        guard nothing >= 0, let slash = path.lastIndex(of: 0x2F) else { return }
        let words = ["promisefs", "pick", "--mode", "import", "--while", "\(owner)", "--forget"]
        _ = Spawn.start(
            Array("/proc/self/exe".utf8),
            arguments: words.map { Array($0.utf8) } + [Array(path[..<slash])],
            descriptors: (0...2).map { (from: nothing, to: $0) }, newSession: true)
        close(nothing)
    }

    /// Waits for a process to end; false: for no longer.
    static func end(of owner: Int32) async -> Bool {
        // Of this process and no other that gets its number.
        let process = open("/proc/\(owner)", O_RDONLY | O_CLOEXEC | O_DIRECTORY)
        defer { if process >= 0 { close(process) } }
        while process >= 0, faccessat(process, "stat", F_OK, 0) == 0 {
            guard (try? await Task.sleep(for: look)) != nil else { return false }
        }
        return true
    }

    /// Waits for the process to end. Only such a folder is removed as `FileWork` makes for imports,
    /// and only what lies in it itself.
    static func remove(_ folder: [UInt8], after owner: Int32) async {
        let name = folder.split(separator: 0x2F).last.map { Array($0) } ?? []
        guard name.starts(with: Array("promisefs-import-".utf8)) else { return }
        _ = await end(of: owner)
        await Blocking.run {
            guard let open = try? Descriptor.open(
                folder, flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW, label: "import.open"),
                let names = try? listFolder(open, label: "import.list")
            else { return }
            for name in names { _ = withCPath(folder + [0x2F] + name.name) { unlink($0) } }
            _ = withCPath(folder) { rmdir($0) }
        }
    }
}
