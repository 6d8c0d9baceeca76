import Glibc
package import PromiseAccess
package import PromiseCore
package import PromiseKeyValue
import PromiseSystem
import Synchronization

/// One line of the audit log: who did what by which call, and what came of it.
package struct AuditLine: Hashable, Sendable {
    package var time: Timestamp
    package var principal: Principal
    package var call: String
    /// Whom it is about.
    package var application: String?
    package var grant: GrantID?
    /// The item, in the mount, or what else says what it was about.
    package var detail: String?
    package var isRefused: Bool

    package var json: JSON {
        var fields: [Key: JSON] = [
            "time": .number(String(time.rawValue)), "call": .string(call),
            "outcome": .string(isRefused ? "refused" : "admitted"),
        ]
        switch principal {
        case .owner(let user, let process):
            fields["by"] = .string("owner")
            fields["user"] = .number(String(user))
            fields["process"] = .number(String(process))
        case .application(let name, let launch):
            fields["by"] = .string(name)
            fields["launch"] = .string(launch.text)
        }
        fields["application"] = application.map { .string(String($0.prefix(200))) }
        fields["grant"] = grant.map { .number(String($0.rawValue)) }
        fields["detail"] = detail.map { .string(String($0.prefix(300))) }
        return .map(fields)
    }
}

/// `audit.log` in the state folder, a line of JSON each: grants, uses, refusals, revocations. It is
/// no file of any mount, and no application's route leads to it.
///
/// An application has so many lines an hour, and what is beyond them is counted: it cannot write until
/// what others did is forgotten.
///
/// Whoever writes a line waits for nothing; what is to be in the file when a call returns calls
/// `flush`. A daemon that is killed loses lines of its last moment, and none that was flushed.
///
/// **Threads.** One thread of its own writes; `waiting` is a leaf.
package final class AuditLog: Sendable {
    private struct Waiting {
        var lines: [AuditLine] = []
        var lost = 0
        var isWriting = false
        var allowance = AuditAllowance()
    }

    private static let waitingCountMax = 10_000
    private static let byteCountMax: UInt64 = 8 << 20

    private let path: [UInt8]
    private let pool = BlockingPool(name: "audit", threads: 1)
    private let waiting = Mutex(Waiting())

    package init(path: [UInt8]) { self.path = path }

    func stop() { pool.stop() }

    func add(_ line: AuditLine) {
        let begins = waiting.withLock { state in
            guard state.lines.count < AuditLog.waitingCountMax else {
                state.lost += 1
                return false
            }
            let admitted = state.allowance.admit(line)
            if admitted.isEmpty { return false }
            state.lines += admitted
            defer { state.isWriting = true }
            return !state.isWriting
        }
        if begins { pool.submit { [self] in write() } }
    }

    package func flush() async { await pool.run { [self] in write() } }

    /// The newest lines, oldest first: all, or those by or about one application. Those that cannot
    /// be read are left out.
    package func lines(of application: String?, limit: Int) async -> [JSON] {
        await pool.run { [self] in
            write()
            var found: [JSON] = []
            for file in [path + Array(".1".utf8), path] {
                let bytes = readSmallFile(file, countMax: Int(AuditLog.byteCountMax) * 2) ?? []
                for line in bytes.split(separator: 0x0A) {
                    guard let json = JSONReader.read(Array(line)) else { continue }
                    let names = [json["application"]?.text, json["by"]?.text]
                    if application == nil || names.contains(application) { found.append(json) }
                }
            }
            return Array(found.suffix(limit))
        }
    }

    /// On the thread. What cannot be written is kept for the next time, up to a bound.
    private func write() {
        let (lines, lost) = waiting.withLock { state in
            defer { (state.lines, state.lost, state.isWriting) = ([], 0, false) }
            return (state.lines, state.lost)
        }
        if lines.isEmpty { return }
        var bytes: [UInt8] = []
        for line in lines { bytes += line.json.encoded + [0x0A] }
        if lost > 0 { bytes += Array("{\"call\":\"audit.lost\",\"count\":\(lost)}\n".utf8) }
        do throws(SystemError) {
            try append(bytes)
        } catch {
            waiting.withLock { state in
                let room = AuditLog.waitingCountMax - state.lines.count
                state.lost += lost + max(0, lines.count - room)
                state.lines = lines.suffix(room) + state.lines
            }
        }
    }

    private func append(_ bytes: [UInt8]) throws(SystemError) {
        let file = try Descriptor.open(
            path, flags: O_WRONLY | O_CREAT | O_APPEND, mode: 0o600, label: "audit.open")
        let size = try FileStatus.of(descriptor: file.number, label: "audit.status").size
        try writeFully(file.number, bytes, at: size, label: "audit.write")
        if size + UInt64(bytes.count) > AuditLog.byteCountMax {
            try rename(path, to: path + Array(".1".utf8), label: "audit.turn")
        }
    }
}
