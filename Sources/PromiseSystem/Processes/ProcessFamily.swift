/// The process that a thread belongs to, and the process that started that one.
package struct ProcessFamily: Sendable, Equatable {
    package var process: Int32
    package var parent: Int32

    /// What proc_pid_status(5) says; nil when there is no such thread (any more). Some 10 µs.
    package static func of(thread: Int32) -> ProcessFamily? {
        guard let status = readSmallFile(Array("/proc/\(thread)/status".utf8)) else { return nil }
        func number(_ field: String) -> Int32? {
            for line in status.split(separator: 0x0A) where line.starts(with: field.utf8) {
                return Int32(String(decoding: line.dropFirst(field.utf8.count).drop { $0 <= 0x20 }, as: UTF8.self))
            }
            return nil
        }
        guard let process = number("Tgid:"), let parent = number("PPid:") else { return nil }
        return ProcessFamily(process: process, parent: parent)
    }
}
