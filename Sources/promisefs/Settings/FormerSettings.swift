import Glibc
import PromiseCore

/// Settings of root's that are in root's home, where they were before all of them were the machine's:
/// nobody reads them. Blocking.
enum FormerSettings {
    /// `given`: the value of XDG_CONFIG_HOME; `home`: root's, whoever's HOME names.
    static func paths(
        of user: uid_t = geteuid(), _ given: [UInt8]? = environmentPath("XDG_CONFIG_HOME"),
        home: [UInt8]? = rootsHome, isNamed: Bool = environment("PROMISEFS_CONFIG") != nil
    ) -> [[UInt8]] {
        guard user == 0, BaseFolders.settingsFolder(of: user, given) == Array("/etc".utf8), let home
        else { return [] }
        let names = (isNamed ? [] : ["config.toml"]) + ["credentials"]
        return names.map { home + Array("/.config/promisefs/\($0)".utf8) }
            .filter { SystemMounts.isAccessible($0, F_OK) }
    }

    static func sentence(_ paths: [[UInt8]] = paths()) -> String? {
        guard !paths.isEmpty else { return nil }
        let shown = paths.map { escapedForDisplay($0) }.joined(separator: " and ")
        let (verb, what) = paths.count == 1 ? ("is", "it") : ("are", "them")
        return "\(shown) \(verb) not read any more: move \(what) to /etc/promisefs"
    }

    /// What follows a sentence about settings that are missing.
    static var hint: String { sentence().map { "; " + $0 } ?? "" }

    static func findings(_ paths: [[UInt8]] = paths()) -> [Finding] {
        paths.map {
            let word = shellWord($0)
            return .warning(
                "former settings", "\(escapedForDisplay($0)) is not read any more",
                run: "mkdir -p /etc/promisefs; mv -n \(word) /etc/promisefs/")
        }
    }

    static var rootsHome: [UInt8]? {
        getpwuid(0)?.pointee.pw_dir.map { Array(String(cString: $0).utf8) }
    }
}
