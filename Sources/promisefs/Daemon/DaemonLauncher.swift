import Glibc
import PromiseCore
import PromiseSystem
import PromiseWire
import Synchronization

/// What the daemon says once to the process that started it, as one line of JSON.
struct ReadyMessage: Codable, Sendable, Equatable {
    var ready: Bool
    var processID: Int32?
    var error: String?
    var exitStatus: Int32?
}

/// The daemon's end of the pipe. Only the first message is sent: the number may name another file afterwards.
final class ReadyChannel: Sendable {
    private let descriptor: Mutex<CInt?>

    init(descriptor: CInt) {
        // What the daemon starts must not hold the pipe open.
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        self.descriptor = Mutex(descriptor)
    }

    /// Says it and closes. False when nobody listens any more. Blocking, for an instant.
    func send(_ message: ReadyMessage) -> Bool {
        let taken = descriptor.withLock { descriptor in
            defer { descriptor = nil }
            return descriptor
        }
        guard let taken else { return true }
        let line = Array((WireCoding.text(message) + "\n").utf8)
        let count = line.withUnsafeBytes { write(taken, $0.baseAddress!, $0.count) }
        close(taken)
        return count == line.count
    }
}

/// Starts the daemon in a session of its own and waits until it is ready. Blocking.
enum DaemonLauncher {
    private static let logByteCountMax: UInt64 = 10 << 20
    private static let readyNumber: CInt = 3
    /// A holder that abandons a mount has unmounted it by then.
    private static let endingMax: Duration = .seconds(5)
    /// Set by `MountHelper`, and read by the holder, too.
    private static var staysInGroup: Bool { environment("PROMISEFS_STAY_IN_GROUP") != nil }

    /// Returns the daemon's process identifier. `isSupervised`: it is started by the holder, which lives as long as the mount.
    /// `first`: what is to be undone when it says that it cannot.
    static func start(
        _ plan: MountPlan, forwarded: [String], isSupervised: Bool, _ first: FirstMount?
    ) throws(CommandFailure) -> Int32 {
        let log: Descriptor
        do throws(CommandFailure) {
            log = try openLog(plan)
        } catch {
            first?.undo()
            throw error
        }
        let null: Descriptor
        do throws(SystemError) {
            null = try Descriptor.open(Array("/dev/null".utf8), flags: O_RDONLY, label: "mount.null")
        } catch {
            throw CommandFailure("/dev/null cannot be opened: \(error.reason)")
        }
        var ends: [CInt] = [-1, -1]
        guard pipe(&ends) == 0 else { throw CommandFailure("no pipe can be made: \(String(cString: strerror(errno)))") }
        let reading = Descriptor(adopting: ends[0])
        // The child gets the writing end under a number that no descriptor it copies has.
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        var writing: Descriptor? = Descriptor(adopting: ends[1])

        let arguments = words(["--ready-descriptor", "\(readyNumber)"] + forwarded, plan)
        let descriptors = [
            (from: null.number, to: STDIN_FILENO), (from: log.number, to: STDOUT_FILENO), (from: log.number, to: STDERR_FILENO),
            (from: ends[1], to: readyNumber),
        ]
        // A daemon in the background is no service of whoever started this process.
        ServiceManager.forget()
        let (program, command) = isSupervised ? try held(arguments, plan) : (Array("/proc/self/exe".utf8), arguments)
        let process = Spawn.start(program, arguments: command, descriptors: descriptors, newSession: !staysInGroup)
        writing = nil
        _ = consume writing
        guard let process else { throw CommandFailure("the daemon cannot be started: \(String(cString: strerror(errno)))") }
        return try wait(for: process, at: reading, plan, first) ?? process
    }

    /// The command of a daemon: every path is resolved, as it runs in another working directory.
    private static func words(_ options: [String], _ plan: MountPlan) -> [[UInt8]] {
        let fixed = ["promisefs", "mount", "--foreground", "--domain", plan.name] + options + ["--state-dir"]
        return fixed.map { Array($0.utf8) } + [
            plan.stateFolder, Array("--".utf8), Array(plan.provider.text.utf8), plan.mountPoint,
        ]
    }

    /// The holder, and its arguments for starting a daemon with these.
    private static func held(_ arguments: [[UInt8]], _ plan: MountPlan) throws(CommandFailure) -> ([UInt8], [[UInt8]]) {
        guard let holder = HelperPlace.holder(), let own = HelperPlace.ownPath else {
            throw CommandFailure("promisefs-holder is not beside this program; mount with --no-supervision")
        }
        return (holder, [Array("promisefs-holder".utf8), plan.mountPoint, own] + arguments)
    }

    /// For `--foreground`: this process becomes the holder, which starts it once more as the daemon. Returns only what went
    /// wrong.
    static func becomeHolder(_ plan: MountPlan, forwarded: [String]) throws(CommandFailure) -> CommandFailure {
        let (holder, words) = try held(words(forwarded, plan), plan)
        var arguments: [UnsafeMutablePointer<CChar>?] = words.map { word in withCPath(word) { strdup($0) } }
        arguments.append(nil)
        _ = withCPath(holder) { execv($0, arguments) }
        return CommandFailure("promisefs-holder cannot be started: \(String(cString: strerror(errno)))")
    }

    /// Returns the daemon's process identifier as it says itself.
    private static func wait(
        for process: pid_t, at reading: borrowing Descriptor, _ plan: MountPlan, _ first: FirstMount?
    ) throws(CommandFailure) -> Int32? {
        var line: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while !line.contains(0x0A) {
            let count = read(reading.number, &buffer, buffer.count)
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { break }
            line += buffer[..<count]
        }
        if let message = WireCoding.decode(ReadyMessage.self, from: line.prefix { $0 != 0x0A }) {
            if message.ready { return message.processID }
            _ = Spawn.wait(process)
            first?.undo()
            throw CommandFailure(
                message.error ?? "the daemon could not start", exitStatus: message.exitStatus ?? ExitStatus.failed)
        }
        // It may have died between its last two words to us and to its holder, which has started its successor then.
        guard let status = Spawn.wait(process, within: endingMax) else { return nil }
        throw CommandFailure("the daemon ended without saying why (status \(status)); see \(escapedForDisplay(plan.logFile))")
    }

    /// Appends; a log that has grown is put aside first.
    private static func openLog(_ plan: MountPlan) throws(CommandFailure) -> Descriptor {
        do throws(SystemError) {
            if let status = try? FileStatus.of(plan.logFile, label: "mount.logStatus"), status.size > logByteCountMax {
                try rename(plan.logFile, to: plan.logFile + Array(".1".utf8), label: "mount.logRotate")
            }
            return try Descriptor.open(plan.logFile, flags: O_WRONLY | O_APPEND | O_CREAT, label: "mount.log")
        } catch {
            throw CommandFailure("the log \(escapedForDisplay(plan.logFile)) cannot be written: \(error.reason)")
        }
    }
}
