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
        var now = timespec()
        guard clock_gettime(CLOCK_BOOTTIME, &now) == 0 else { return nil }
        return max(0, now.tv_sec - ticks / max(1, sysconf(Int32(_SC_CLK_TCK))))
    }
}
