import Glibc
import PromiseCore
import PromiseSystem

/// The command line of bubblewrap around an application: it sees the system's programs read-only,
/// its view of a domain, and nothing else of the machine: no home, no other process, no socket.
///
/// User 0 of the machine is never inside: promisefs-view becomes `nobody`.
struct Sandbox {
    /// Where the view is mounted in the namespace of the launch; the first that is there is taken.
    private static let places = ["/mnt", "/media", "/srv", "/tmp"]
    /// Where the application finds it.
    static let view = "/documents"
    /// Where it asks for what it was given.
    static let socket = "/run/promisefs.sock"
    /// Where it finds views of further domains, and asks for what it was given of these.
    static func furtherView(_ domain: String) -> String { "/domains/\(domain)" }
    static func furtherSocket(_ domain: String) -> String { "/run/promisefs-\(domain).sock" }

    /// A domain of which the application has a view; `socket`: whether it can ask there.
    struct Domain {
        var name: String
        var hasSocket: Bool
    }

    var application: String
    var hasNetwork: Bool
    /// Words of bubblewrap, of a profile file.
    var additions: [[UInt8]] = []

    /// bwrap(1) is found as execvp(3) finds it.
    static var isInstalled: Bool {
        let path = getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin"
        return path.split(separator: ":").contains { access("\($0)/bwrap", X_OK) == 0 }
    }

    /// An existing folder.
    static var place: String? { places.first { isFolder($0) } }

    private static func isFolder(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    /// `place`: where promisefs-view has `view0` and `socket0`, and so on, of these domains. What is
    /// absent on this machine is left out. `filter`: a descriptor of `SystemCallFilter`.
    func words(place: String, domains: [Domain], filter: CInt?, command: [[UInt8]]) -> [[UInt8]] {
        var words = ["bwrap", "--ro-bind", "/usr", "/usr"]
        for name in ["bin", "sbin", "lib", "lib32", "lib64"] {
            if let target = Sandbox.link("/\(name)") {
                words += ["--symlink", target, "/\(name)"]
            } else {
                words += ["--ro-bind-try", "/\(name)", "/\(name)"]
            }
        }
        for file in [
            "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "passwd", "group", "fonts",
            "localtime", "nsswitch.conf", "mime.types", "terminfo",
        ] { words += ["--ro-bind-try", "/etc/\(file)", "/etc/\(file)"] }
        words += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--dir", "/home/app"]
        words += ["--bind", "\(place)/view0", Sandbox.view]
        words += ["--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent"]
        // No TIOCSTI into the caller's terminal.
        words += ["--new-session", "--cap-drop", "ALL", "--hostname", "app"]
        if hasNetwork {
            words += ["--share-net", "--ro-bind-try", "/etc/resolv.conf", "/etc/resolv.conf"]
            words += ["--ro-bind-try", "/etc/hosts", "/etc/hosts", "--ro-bind-try", "/etc/ssl", "/etc/ssl"]
        }
        words += ["--clearenv", "--setenv", "PATH", "/usr/bin:/bin:/usr/sbin:/sbin", "--setenv", "HOME", "/home/app"]
        for name in ["LANG", "LC_ALL", "TERM", "TZ"] {
            if let value = getenv(name) { words += ["--setenv", name, String(cString: value)] }
        }
        words += ["--setenv", "PROMISEFS_VIEW", Sandbox.view, "--setenv", "PROMISEFS_APP", application]
        if domains.first?.hasSocket == true {
            words += ["--bind", "\(place)/socket0", Sandbox.socket, "--setenv", "PROMISEFS_SOCKET", Sandbox.socket]
        }
        for (number, domain) in domains.enumerated().dropFirst() {
            words += ["--bind", "\(place)/view\(number)", Sandbox.furtherView(domain.name)]
            guard domain.hasSocket else { continue }
            words += ["--bind", "\(place)/socket\(number)", Sandbox.furtherSocket(domain.name)]
        }
        words += ["--chdir", Sandbox.view]
        if let filter { words += ["--seccomp", "\(filter)"] }
        // The shell says 127 of a command that is not there, as every shell does, and bubblewrap 1.
        let started = ["--", "/bin/sh", "-c", "exec \"$0\" \"$@\""]
        return words.map { Array($0.utf8) } + additions + started.map { Array($0.utf8) } + command
    }

    /// Where a link leads; nil for what is none.
    private static func link(_ path: String) -> String? {
        var buffer = [CChar](repeating: 0, count: 256)
        let count = readlink(path, &buffer, buffer.count - 1)
        return count > 0 ? String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self) : nil
    }

    /// One word a line; empty lines and those that begin with `#` say nothing.
    static func words(ofProfile path: [UInt8]) async throws(CommandFailure) -> [[UInt8]] {
        let text = await Blocking.run { readSmallFile(path, countMax: 1 << 20) }
        guard let text else {
            throw CommandFailure("'\(escapedForDisplay(path))' cannot be read, or has more than a MiB")
        }
        return text.split(separator: 0x0A).map { Array($0) }.filter { $0.first != 0x23 }
    }
}
