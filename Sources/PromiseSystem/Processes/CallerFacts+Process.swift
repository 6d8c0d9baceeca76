import CPromiseSystem
import Glibc
package import PromiseCore

extension CallerFacts {
    /// What /proc says of a process or thread; what cannot be read, and everything of process 0, stays unknown.
    ///
    /// Three small files and a system call: some 20 µs, so only for a caller that would have to wait for a provider anyway.
    package static func of(process: Int32) -> CallerFacts {
        var facts = CallerFacts()
        guard process > 0 else { return facts }
        let folder = Array("/proc/\(process)".utf8)
        if var program = try? readLink(folder + Array("/exe".utf8), label: "caller.program") {
            // The kernel's mark of a program that was replaced while it runs (proc_pid_exe(5)).
            let mark = Array(" (deleted)".utf8)
            if program.count > mark.count, program.suffix(mark.count) == mark[...] { program.removeLast(mark.count) }
            facts.program = program
        }
        if let groups = readSmallFile(folder + Array("/cgroup".utf8)) { facts.cgroup = unifiedGroup(in: groups) }
        if let environment = readSmallFile(folder + Array("/environ".utf8), countMax: 1 << 20) {
            facts.wish = wish(value("PROMISEFS_HYDRATE", in: environment))
            facts.recording = value("PROMISEFS_RECORDING", in: environment)
        }
        facts.isIdle = cps_is_idle(process) == 1
        return facts
    }

    /// `0::/PATH` is the one hierarchy of cgroup v2 (cgroups(7)).
    private static func unifiedGroup(in text: [UInt8]) -> [UInt8] {
        for line in text.split(separator: 0x0A) where line.starts(with: Array("0::".utf8)) { return Array(line.dropFirst(3)) }
        return []
    }

    private static func value(_ variable: String, in environment: [UInt8]) -> [UInt8]? {
        let name = Array("\(variable)=".utf8)
        return environment.split(separator: 0).first { $0.starts(with: name) }.map { Array($0.dropFirst(name.count)) }
    }

    private static func wish(_ value: [UInt8]?) -> Bool? {
        switch value.map({ String(decoding: $0, as: UTF8.self) }) {
        case "no", "0", "false": false
        case "yes", "1", "true": true
        default: nil
        }
    }
}
