import Glibc

/// Where the small programs are that a mount uses.
enum HelperPlace {
    /// Gives the mounts of an ordinary user kernel passthrough (Mount/BackingHelper).
    static func backing() -> [UInt8]? { find("promisefs-backing") }
    /// Makes programs that watch a mount hear of remote changes (Mount/EchoHelper).
    static func echo() -> [UInt8]? { find("promisefs-echo") }
    /// Has locks in views hold on the mount (Mount/LockHelper).
    static func locks() -> [UInt8]? { find("promisefs-locks") }
    /// Keeps a mount while no daemon lives (Mount/Holder).
    static func holder() -> [UInt8]? { find("promisefs-holder") }

    /// Speaks to the desktop (Sources/PromisePortal).
    static func portal() -> [UInt8]? { find("promisefs-portal") }

    /// Mounts the view of an application in a namespace of its own (Mount/ViewHelper).
    static func view() -> [UInt8]? { find("promisefs-view") }

    private static let installed = ["/usr/local/libexec/promisefs", "/usr/libexec/promisefs"]

    /// The first that may be run, as bytes of a path: an installed one has its capability, one beside this executable
    /// may have been given it by hand. Nil when there is none.
    private static func find(_ name: String) -> [UInt8]? {
        var own: [[UInt8]] = []
        if let folder = ownFolder {
            let above = Array(folder[..<(folder.lastIndex(of: 0x2F) ?? 0)])
            own = [above + Array("/libexec/promisefs/\(name)".utf8), folder + Array("/\(name)".utf8)]
        }
        // First what was installed together with this executable, wherever that is.
        let candidates = own.prefix(1) + installed.map { Array("\($0)/\(name)".utf8) } + own.dropFirst()
        return candidates.first { path in
            (path + [0]).withUnsafeBytes { access($0.bindMemory(to: CChar.self).baseAddress!, X_OK) } == 0
        }
    }

    static var ownFolder: [UInt8]? {
        guard let path = ownPath, let slash = path.lastIndex(of: 0x2F) else { return nil }
        return Array(path[..<slash])
    }

    /// Of this executable, so that a successor is what lies there then.
    static var ownPath: [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = buffer.withUnsafeMutableBytes {
            readlink("/proc/self/exe", $0.bindMemory(to: CChar.self).baseAddress!, $0.count)
        }
        return count > 0 ? Array(buffer[..<count]) : nil
    }
}
