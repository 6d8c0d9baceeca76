import Glibc
package import Logging
import PromiseCore
package import PromiseProvider
package import PromiseSystem
import Synchronization

/// Keeps a program that serves a provider running: starts it, takes its outputs into the log, starts it again when it ends or
/// hangs, and ends it with itself. `ExtensionLife` decides when.
///
/// One thread does it all. The kernel kills the program when that thread ends, so also when the daemon is killed.
package final class ExtensionProcess: Sendable {
    private static let startPause = Duration.milliseconds(20)
    /// A call waits for a program that will be there within this time, and fails at once otherwise.
    private static let patience = Duration.seconds(2)
    private static let endPatience = Duration.seconds(2)
    /// Each 5 ms: a little more than the patience.
    private static let stopLooksMax = 600
    /// Of its outputs, at a time: a program that floods them does not keep the thread from everything else.
    private static let readsMax = 16

    private struct State: Sendable {
        var life: ExtensionLife
        var wantsKill = false
        /// The program and all that it started are gone, and nothing is started any more.
        var isOver = false
    }

    /// The program, and the end of the pipe that its outputs go to.
    private struct Running: ~Copyable {
        var process: pid_t
        var output: Descriptor
    }

    private let program: ServingProgram
    private let leftovers: LeftoverProcesses
    private let logger: Logger
    private let clock: any TimeSource
    private let startLimit: Duration
    private let state: Mutex<State>
    private let alarm: Descriptor

    /// Starts the thread, which holds this object until `stop`.
    package init(
        _ program: ServingProgram, limits: ExtensionLife.Limits, logger: Logger, clock: any TimeSource
    ) throws(ProviderError) {
        self.program = program
        leftovers = LeftoverProcesses(record: program.record, variable: program.mark)
        self.logger = logger
        self.clock = clock
        startLimit = limits.start
        state = Mutex(State(life: ExtensionLife(now: clock.uptime(), limits: limits)))
        do throws(SystemError) {
            alarm = try makeEventDescriptor(label: "extension.alarm")
        } catch {
            throw ProviderError(.permanent, error.description)
        }
        OwnedThread(name: "extension") { self.run() }.detach()
    }

    // MARK: For callers

    /// Returns when the program listens. Throws `.offline` at once when that will not be soon, and when it has taken too long.
    package func ready() async throws(ProviderError) {
        let end = clock.uptime() + startLimit + ExtensionProcess.patience * 2
        while true {
            let (life, now) = (state.withLock { $0.life }, clock.uptime())
            switch life.phase {
            case .serving: return
            case .stopped: throw ProviderError(.cancelled, "\(title) was stopped")
            case .resting(let until) where until - now > ExtensionProcess.patience:
                let seconds = (until - now).components.seconds + 1
                throw ProviderError(.offline, "\(title) is not running: \(life.trouble ?? ""); started again in \(seconds) s")
            case .resting where now >= end, .starting where now >= end:
                throw ProviderError(.offline, "\(title) does not begin to listen")
            case .resting, .starting: break
            }
            do {
                try await Task.sleep(for: ExtensionProcess.startPause)
            } catch {
                throw ProviderError(.cancelled, "the call was cancelled")
            }
        }
    }

    package func answered() { state.withLock { $0.life.answered() } }

    /// A call got no answer in time.
    package func fellSilent() {
        let wantsKill = state.withLock { state in
            if state.life.fellSilent() { state.wantsKill = true }
            return state.wantsKill
        }
        if wantsKill { ring() }
    }

    /// Ends the program and the thread. Waits for them, but not for long: what then still runs is killed meanwhile.
    package func stop() {
        state.withLock { $0.life.stop() }
        ring()
        for _ in 0..<ExtensionProcess.stopLooksMax where !state.withLock({ $0.isOver }) { usleep(5_000) }
    }

    private var title: String { program.title }

    private func ring() {
        var one: UInt64 = 1
        _ = write(alarm.number, &one, 8)
    }

    // MARK: The thread

    private func run() {
        defer { state.withLock { $0.isOver = true } }
        while true {
            let now = clock.uptime()
            let (phase, begins) = state.withLock { ($0.life.phase, $0.life.beginStart(now: now)) }
            if begins {
                serveOnce()
            } else if case .resting(let until) = phase {
                _ = wait(for: [alarm.number], until - now)
                drainAlarm()
            } else {
                return
            }
        }
    }

    /// From the start of the program to its end.
    private func serveOnce() {
        leftovers.end()
        let running: Running
        do throws(SystemError) {
            running = try start()
        } catch {
            return ended("it cannot be started: \(error.reason)")
        }
        let process = running.process
        leftovers.note(session: process)
        logger.info("\(program.kind) was started", metadata: ["extension": "\(program.shortName)", "process": "\(process)"])
        var why: String?
        do throws(SystemError) {
            let ending = try BoundProcess.descriptor(of: process, label: "extension.process")
            why = watch(running, ending)
        } catch {
            why = "it cannot be watched: \(error.reason)"
        }
        // Its own children, before its number can be another's. Who was told to end gets a moment for it.
        var looksLeft = state.withLock({ $0.life.phase }) == .stopped ? 25 : 0
        while looksLeft > 0 && !leftovers.left().isEmpty {
            usleep(20_000)
            looksLeft -= 1
        }
        kill(-process, SIGKILL)
        leftovers.end()
        var status: CInt = 0
        while waitpid(process, &status, 0) < 0 && errno == EINTR {}
        let signal = status & 0x7F
        let end = signal == 0 ? "it ended with status \((status >> 8) & 0xFF)" : "it was killed by signal \(signal)"
        ended(why ?? (signal == 0 ? program.trouble() : nil) ?? end)
    }

    private func ended(_ why: String) {
        let now = clock.uptime()
        let isStopped = state.withLock { state in
            state.wantsKill = false
            state.life.ended(why, now: now)
            return state.life.phase == .stopped
        }
        guard !isStopped else { return }
        logger.warning("\(program.kind) is gone", metadata: ["extension": "\(program.shortName)", "reason": "\(why)"])
    }

    private func start() throws(SystemError) -> Running {
        let null = try Descriptor.open(Array("/dev/null".utf8), flags: O_RDONLY, label: "extension.null")
        var ends: [CInt] = [-1, -1]
        _ = try call("extension.pipe") { pipe(&ends) }
        let output = Descriptor(adopting: ends[0])
        let writing = Descriptor(adopting: ends[1])
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        _ = fcntl(output.number, F_SETFL, O_NONBLOCK)
        let process = try BoundProcess.start(
            program.path, arguments: [program.path] + program.arguments, environment: program.environment(environmentWords),
            input: null.number, output: writing.number, label: "extension.start")
        return Running(process: process, output: output)
    }

    /// Until the program has ended; returns why, if it was for something we did.
    private func watch(_ running: borrowing Running, _ ending: borrowing Descriptor) -> String? {
        let (process, output) = (running.process, running.output.number)
        var lines = OutputLines()
        var why: String?
        var killAt: Duration?
        var hasOutput = true
        while true {
            var timeout: Duration? = killAt.map { max($0 - clock.uptime(), .zero) }
            if case .starting = state.withLock({ $0.life.phase }) { timeout = ExtensionProcess.startPause }
            let ready = wait(for: [ending.number, alarm.number] + (hasOutput ? [output] : []), timeout)
            if ready.contains(output) { hasOutput = log(output, &lines) }
            if ready.contains(ending.number) {
                _ = log(output, &lines)
                for line in lines.end() { say(line) }
                return why
            }
            drainAlarm()
            let now = clock.uptime()
            let (life, wantsKill) = state.withLock { ($0.life, $0.wantsKill) }
            if killAt.map({ now >= $0 }) == true { kill(-process, SIGKILL) }
            if life.phase == .stopped {
                if killAt == nil { kill(-process, SIGTERM) }
                killAt = killAt ?? now + ExtensionProcess.endPatience
            } else if wantsKill || life.isLate(now: now) {
                why = wantsKill ? "it did not answer and was killed" : "it did not begin to listen and was killed"
                kill(-process, SIGKILL)
                killAt = killAt ?? now + ExtensionProcess.endPatience
            } else if case .starting = life.phase, program.listens() {
                state.withLock { $0.life.listens(now: now) }
            }
        }
    }

    /// False when nothing more will come.
    private func log(_ output: CInt, _ lines: inout OutputLines) -> Bool {
        var buffer = [UInt8](repeating: 0, count: 16_384)
        for _ in 0..<ExtensionProcess.readsMax {
            let count = read(output, &buffer, buffer.count)
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { return count < 0 && errno == EAGAIN }
            for line in lines.take(buffer[..<count], now: clock.uptime()) { say(line) }
            // Other things may have happened meanwhile.
            if count < buffer.count { break }
        }
        return true
    }

    private func say(_ line: [UInt8]) {
        program.hear(line)
        logger.notice(
            "\(program.kind) says", metadata: ["extension": "\(program.shortName)", "line": "\(escapedForDisplay(line))"])
    }

    private func wait(for descriptors: [CInt], _ timeout: Duration?) -> [CInt] {
        var entries = descriptors.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        let milliseconds = timeout.map { CInt(clamping: max($0, .zero).nanoseconds / 1_000_000 + 1) } ?? -1
        guard poll(&entries, nfds_t(entries.count), milliseconds) > 0 else { return [] }
        return entries.filter { $0.revents != 0 }.map(\.fd)
    }

    private func drainAlarm() {
        var count: UInt64 = 0
        _ = read(alarm.number, &count, 8)
    }

    private var environmentWords: [[UInt8]] {
        var words: [[UInt8]] = []
        var pointer = environ
        while let word = pointer.pointee {
            words.append(Array(UnsafeRawBufferPointer(start: word, count: strlen(word))))
            pointer += 1
        }
        return words
    }
}
