import Glibc
import Logging
import PromiseCore
import PromiseSystem

/// Where thumbnailers run, which read what strangers sent: in namespaces of their own without a network, where there is nothing
/// but the system's programs, read-only, and their workshop; and with limits.
///
/// By bwrap(1), setpriv(1) and prlimit(1). Where bwrap is missing, or may make no namespaces, they
/// have the limits alone; that is looked at again each time.
struct ThumbnailSandbox {
    /// What a program may take of memory that is its own. All of a picture at once: 24 megapixels are 72 MB.
    private static let dataByteCountMax = 192 << 20
    /// Threads are counted, too.
    private static let processCountMax = 16
    /// Of one file: what it makes.
    private static let fileByteCountMax = 16 << 20
    static let patience = Duration.seconds(10)
    private static let folder = "/work"

    private let wall: SandboxWall

    /// Blocks.
    init(_ logger: Logger) {
        wall = SandboxWall(
            isInstalled: {
                // As execvp(3) finds it.
                let folders = (environment("PATH") ?? "/usr/bin:/bin").split(separator: ":")
                return folders.contains { access("\($0)/bwrap", X_OK) == 0 }
            },
            canBeMade: {
                let outside = ThumbnailSandbox.asNobody + ThumbnailSandbox.wall(around: "/tmp")
                return ThumbnailSandbox.run(outside + ThumbnailSandbox.limits + ["true"])
            },
            warn: {
                logger.warning(
                    "bwrap can make no sandbox: programs that make pictures have limits alone")
            })
        ThumbnailWorkshop.sweep(now: SystemClock().now())
    }

    /// Runs a program, whose words `words` gives for the place where it finds its workshop. Blocks.
    func run(in workshop: ThumbnailWorkshop, _ words: (_ place: String) -> [String]) -> Bool {
        let isShutIn = wall.stands()
        var all = ThumbnailSandbox.asNobody
        if isShutIn { all += ThumbnailSandbox.wall(around: workshop.place) }
        all += ThumbnailSandbox.limits + words(isShutIn ? ThumbnailSandbox.folder : workshop.place)
        return ThumbnailSandbox.run(all)
    }

    /// Passwords may be in the environment, which is read in /proc/1/environ.
    private static func run(_ words: [String]) -> Bool {
        let variables = ["PATH", "LANG", "LC_ALL", "TZ"]
        return ChildProcess.run(
            words.map { Array($0.utf8) }, environment: variables, limit: ThumbnailSandbox.patience)
    }

    /// Root does not let programs read with all of its rights what strangers sent.
    private static var asNobody: [String] {
        guard geteuid() == 0 else { return [] }
        let nobody = ThumbnailWorkshop.nobody
        return ["setpriv", "--reuid=\(nobody)", "--regid=\(nobody)", "--clear-groups", "--no-new-privs", "--"]
    }

    private static var limits: [String] {
        [
            "prlimit", "--data=\(dataByteCountMax)", "--nproc=\(processCountMax)", "--fsize=\(fileByteCountMax)",
            "--cpu=\(patience.components.seconds)", "--core=0", "--",
        ]
    }

    private static func wall(around workshop: String) -> [String] {
        var words = ["bwrap", "--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
        words += ["--clearenv", "--setenv", "PATH", "/usr/bin:/bin", "--setenv", "HOME", folder, "--setenv", "TMPDIR", folder]
        words += ["--ro-bind", "/usr", "/usr"]
        for name in ["bin", "sbin", "lib", "lib32", "lib64"] { words += ["--ro-bind-try", "/\(name)", "/\(name)"] }
        for name in ["ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "fonts"] {
            words += ["--ro-bind-try", "/etc/\(name)", "/etc/\(name)"]
        }
        words += ["--proc", "/proc", "--dev", "/dev", "--bind", workshop, folder, "--chdir", folder]
        return words + ["--remount-ro", "/", "--"]
    }
}
