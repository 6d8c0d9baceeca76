import Glibc
import PromiseCore
import PromiseSystem
import Synchronization

/// A copy that a picker has made for a program, and that goes with it, however that ends.
enum TemporaryImport {
    private static let look = Duration.milliseconds(300)

    /// The folders in which a picker makes copies. Each has a process of its own, which outlives this
    /// one and learns of its end: what was not confirmed by then goes at once.
    final class Folders: Sendable {
        private let owner: Int32?
        /// What the processes hear.
        private let lines = Mutex<[CInt]>([])

        /// `owner`: with whom what was confirmed goes; nil: whoever asked removes it.
        init(for owner: Int32?) { self.owner = owner }

        deinit { for line in lines.withLock({ $0 }) { close(line) } }

        func watch(_ folder: [UInt8]) {
            var ends: [CInt] = [0, 0]
            guard pipe(&ends) == 0 else { return }
            for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
            let nothing = open("/dev/null", O_RDWR | O_CLOEXEC)
            let tie = owner.map { ["--while", "\($0)"] } ?? []
            let words = ["promisefs", "pick", "--mode", "import"] + tie + ["--forget"]
            _ = Spawn.start(
                Array("/proc/self/exe".utf8), arguments: words.map { Array($0.utf8) } + [folder],
                descriptors: [(from: ends[0], to: 0), (from: nothing, to: 1), (from: nothing, to: 2)],
                newSession: true)
            close(nothing)
            close(ends[0])
            lines.withLock { [line = ends[1]] in $0.append(line) }
        }

        /// The person has said so, and whoever asked is told.
        func confirm() {
            var yes: UInt8 = 1
            for line in lines.withLock({ $0 }) { _ = write(line, &yes, 1) }
        }
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

    /// Of the process that `Folders` has begun. Only such a folder is removed as `FileWork` makes for
    /// imports, and only what lies in it itself.
    static func remove(_ folder: [UInt8], after owner: Int32?) async {
        let name = folder.split(separator: 0x2F).last.map { Array($0) } ?? []
        guard name.starts(with: Array("promisefs-import-".utf8)) else { return }
        let isConfirmed = await Blocking.run {
            var answer: UInt8 = 0
            var count: Int
            repeat { count = read(STDIN_FILENO, &answer, 1) } while count < 0 && errno == EINTR
            return count == 1
        }
        if isConfirmed {
            guard let owner else { return }
            _ = await end(of: owner)
        }
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
