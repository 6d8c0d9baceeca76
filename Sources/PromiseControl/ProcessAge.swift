import Glibc
import PromiseSystem

enum ProcessAge {
    /// How long this process has run; nil where the kernel does not say. proc_pid_stat(5): the 22nd
    /// field, in ticks since the boot.
    static func seconds() -> Int? {
        guard let bytes = readSmallFile(Array("/proc/self/stat".utf8)),
            let end = bytes.lastIndex(of: UInt8(ascii: ")"))
        else { return nil }
        let fields = bytes[(end + 1)...].split(separator: UInt8(ascii: " "))
        guard fields.count > 19, let ticks = Int(String(decoding: fields[19], as: UTF8.self)) else {
            return nil
        }
        // proc_uptime(5): seconds since the boot, and a fraction.
        let uptime = readSmallFile(Array("/proc/uptime".utf8))?.prefix { $0 != UInt8(ascii: ".") }
        guard let now = uptime.flatMap({ Int(String(decoding: $0, as: UTF8.self)) }) else { return nil }
        return max(0, now - ticks / max(1, sysconf(Int32(_SC_CLK_TCK))))
    }
}
