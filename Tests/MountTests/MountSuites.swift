import Foundation
import PromiseSystem
import Testing

/// Tests of a real mount: the daemon runs in its own process on temporary folders, ordinary programs work in the mount.
/// One test at a time, as they have deadlines. `PROMISEFS_SCALE=full` runs the long versions.
@Suite(
    .serialized,
    .enabled(if: Machine.canMount, "there is no /dev/fuse that this user may open, so nothing can be mounted"))
struct MountSuites {}

/// What this machine has.
enum Machine {
    static let isRoot = geteuid() == 0
    static let canMount = access("/dev/fuse", R_OK | W_OK) == 0

    /// The kernel can send again what a dead daemon has received (FUSE_HAS_RESEND), from 6.9 on.
    static let canOutliveDaemon: Bool = {
        var name = utsname()
        uname(&name)
        let release = withUnsafeBytes(of: &name.release) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        let numbers = release.split(whereSeparator: { !$0.isNumber }).prefix(2).compactMap { Int($0) }
        return numbers.count == 2 && (numbers[0], numbers[1]) >= (6, 9)
    }()

    /// The kernel can hand reads and writes to the content file itself, from 6.9 on.
    static let hasKernelPassthrough = isRoot && canOutliveDaemon

    private static let environment = ProcessInfo.processInfo.environment

    /// `PROMISEFS_TRANSPORT=io_uring` tests with FUSE over io_uring, where mounts use the device otherwise.
    static let transportArguments = environment["PROMISEFS_TRANSPORT"] == "io_uring" ? ["--io-uring"] : []

    private static let ringSetting = "/sys/module/fuse/parameters/enable_uring"

    /// The kernel has FUSE over io_uring, and it is switched on or this user may do so.
    static let canUseRings = access(ringSetting, isRoot ? F_OK : R_OK) == 0 && (isRoot || areRingsEnabled)

    static var areRingsEnabled: Bool {
        FileManager.default.contents(atPath: ringSetting)?.first == UInt8(ascii: "Y")
    }

    /// Switches FUSE over io_uring on for the mounts made from now on, where this user may; it is left on.
    static func enableRings() {
        guard isRoot, canUseRings, !areRingsEnabled else { return }
        try? Data("Y".utf8).write(to: URL(fileURLWithPath: ringSetting))
    }

    /// The system can make pictures of PNG files.
    static let hasThumbnailer = access("/usr/bin/gdk-pixbuf-thumbnailer", X_OK) == 0

    /// For the example of the fixture; the package itself needs none.
    static let hasPytest =
        FileManager.default.fileExists(atPath: "/usr/lib/python3/dist-packages/pytest")
        || (environment["PATH"] ?? "").split(separator: ":").contains { FileManager.default.fileExists(atPath: "\($0)/pytest") }

    static let hasThunar = [
        "/usr/bin/thunar", "/usr/bin/Xvfb", "/usr/bin/xdotool", "/usr/bin/xclip", "/usr/bin/gio", "/usr/libexec/gvfsd-metadata",
        "/usr/lib/x86_64-linux-gnu/thunarx-3/thunarx-python.so",
    ].allSatisfy { FileManager.default.fileExists(atPath: $0) }

    static let hasOverlay = (readSmallFile(Array("/proc/filesystems".utf8)) ?? []).contains(Array("overlay".utf8))

    /// A Secret Service of its own for a test, and what asks it.
    static let hasKeyring = ["dbus-run-session", "gnome-keyring-daemon", "secret-tool"].allSatisfy {
        FileManager.default.fileExists(atPath: "/usr/bin/\($0)")
    }

    static let isFullScale = environment["PROMISEFS_SCALE"] == "full"
    static let seed = environment["PROMISEFS_SEED"].flatMap(Int.init)
    static let kills = environment["PROMISEFS_KILLS"].flatMap(Int.init) ?? (isFullScale ? 200 : 15)

    /// Where the temporary folders are made; a disk, as memory file systems are small.
    static let folder = environment["PROMISEFS_TEST_DIR"] ?? "/var/tmp"

    static let repository = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path

    static let workloads = repository + "/scripts/workloads"

    /// Built with the tests, so it lies beside their bundle.
    static let executable: String = {
        if let path = environment["PROMISEFS_EXECUTABLE"] { return path }
        let bundle = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        return bundle.deletingLastPathComponent().appendingPathComponent("promisefs").path
    }()
}
