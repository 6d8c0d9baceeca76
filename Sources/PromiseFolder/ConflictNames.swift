// Names of what is kept beside something else, as whose it is cannot be known.

import Glibc
import PromiseCore
import PromiseSystem

func hostName() -> String {
    var buffer = [UInt8](repeating: 0, count: 256)
    let result = buffer.withUnsafeMutableBytes {
        gethostname($0.baseAddress!.assumingMemoryBound(to: CChar.self), 255)
    }
    return result == 0 ? escapedForDisplay(buffer.prefix { $0 != 0 }) : "unknown"
}

/// Today as `YYYY-MM-DD`, in the local time zone.
func dateText() -> String {
    var now = time(nil)
    var parts = tm()
    localtime_r(&now, &parts)
    func padded(_ number: CInt, _ count: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, count - text.utf8.count)) + text
    }
    let (month, day) = (padded(parts.tm_mon + 1, 2), padded(parts.tm_mday, 2))
    return "\(padded(parts.tm_year + 1900, 4))-\(month)-\(day)"
}
