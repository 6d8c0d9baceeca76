import Glibc
import PromiseSystem

/// What an extension's program started and did not end. The kernel kills only the program itself with the daemon, so a note of
/// its session is kept beside the socket, and the next daemon ends what is left of it.
///
/// Numbers are given to other processes in time: only who also has the socket's variable in its environment is believed to belong
/// to it. Used by one thread.
struct LeftoverProcesses: Sendable {
    private static let environmentByteCountMax = 4 << 20

    private let record: [UInt8]
    private let variable: [UInt8]

    /// `record`: the path of the note. `variable`: the word of the environment.
    init(record: [UInt8], variable: [UInt8]) {
        self.record = record
        self.variable = variable
    }

    /// Without a note nothing is ended later, and that is all.
    func note(session: pid_t) {
        let flags = O_WRONLY | O_CREAT | O_TRUNC
        guard let file = try? Descriptor.open(record, flags: flags, label: "extension.session.note") else { return }
        try? writeFully(file.number, Array("\(session)\n".utf8), at: 0, label: "extension.session.write")
    }

    /// Kills what is left of the session that was noted, and forgets it.
    func end() {
        for process in left() { kill(process, SIGKILL) }
        try? unlink(record, label: "extension.session.forget")
    }

    /// Those that run still. Some 10 ms, for each of this machine's processes is looked at.
    func left() -> [pid_t] {
        guard let text = readSmallFile(record), let session = LeftoverProcesses.number(text.prefix { $0 != 0x0A }), session > 1,
            let folder = try? Descriptor.open(Array("/proc".utf8), flags: O_RDONLY, label: "extension.session.look"),
            let names = try? listFolder(folder, label: "extension.session.list")
        else { return [] }
        return names.compactMap { LeftoverProcesses.number($0.name[...]) }.filter { isOurs($0, session) }
    }

    private func isOurs(_ process: pid_t, _ session: pid_t) -> Bool {
        guard getsid(process) == session,
            let words = readSmallFile(
                Array("/proc/\(process)/environ".utf8), countMax: LeftoverProcesses.environmentByteCountMax)
        else { return false }
        return words.split(separator: 0).contains { $0.elementsEqual(variable) }
    }

    private static func number(_ text: ArraySlice<UInt8>) -> pid_t? { pid_t(String(decoding: text, as: UTF8.self)) }
}
