import Glibc
import PromiseCore
import PromiseFilesystem
import PromiseSystem
import Synchronization

/// `promisefs-locks` (Mount/LockHelper): started with the first lock of a view.
///
/// **Threads.** One starts the process, which ends with it, and reads its answers.
final class LockProcess: LockKeeper {
    private typealias Answer = @Sendable (LockAnswer) -> Void

    private struct Call {
        let answer: Answer
        /// To be asked once more, should the mount be at another place.
        var again: (call: LockCall, owner: LockOwner)?
    }

    private struct State {
        /// Nil: there is no process, and none is being started.
        var line: SharedDescriptor?
        var process: Int32 = 0
        /// What is to be sent when the process is known, as it opens files, which are nobody else's,
        /// or when it has read what was sent before.
        var waiting: [[UInt8]] = []
        var calls: [UInt64: Call] = [:]
        var next: UInt64 = 1
        var place: MountPlace?
        var isOver = false
    }

    private let program: [UInt8]
    private let mountPoint: [UInt8]
    private let domain: String
    private let state = Mutex(State())

    init(program: [UInt8], mountPoint: [UInt8], domain: String) {
        self.program = program
        self.mountPoint = mountPoint
        self.domain = domain
    }

    var process: Int32 { state.withLock { $0.process } }

    func ask(
        _ call: LockCall, for owner: LockOwner, answer: @escaping @Sendable (LockAnswer) -> Void
    ) -> UInt64 {
        let (number, isEntered, isFirst) = state.withLock { state in
            defer { state.next += 1 }
            guard !state.isOver else { return (state.next, false, false) }
            state.calls[state.next] = Call(answer: answer, again: (call, owner))
            return (state.next, true, state.line == nil)
        }
        guard isEntered, let message = message(call, owner, number), !isFirst || start() else {
            let claimed = state.withLock { $0.calls.removeValue(forKey: number) }
            if claimed != nil || !isEntered { answer(LockAnswer(problem: ENOLCK)) }
            return number
        }
        if !send(message) { settle(number, LockAnswer(problem: ENOLCK)) }
        return number
    }

    func cancel(_ call: UInt64) { _ = send(header(letter: "C", number: call)) }

    func end(view: UInt16) {
        if process != 0 { _ = send(header(letter: "E", view: view)) }
    }

    func stop() {
        state.withLock { state in
            state.isOver = true
            state.line.map { _ = shutdown($0.number, Int32(SHUT_RDWR)) }
        }
    }

    private func settle(_ number: UInt64, _ answer: LockAnswer) {
        if [ENOENT, ENOTDIR, ESTALE].contains(answer.problem), asksAgain(number) { return }
        state.withLock { $0.calls.removeValue(forKey: number) }?.answer(answer)
    }

    /// What is not at its place any more may be at another one, with a folder above the mount.
    private func asksAgain(_ number: UInt64) -> Bool {
        guard let again = state.withLock({ $0.calls[number]?.again }),
            let now = state.withLock({ $0.place })?.moved(seenBy: nil)
        else { return false }
        state.withLock { state in
            state.place = now
            state.calls[number]?.again = nil
        }
        guard let message = message(again.call, again.owner, number) else { return false }
        return send(message)
    }

    /// False when the process is gone, or does not read.
    private func send(_ message: [UInt8]) -> Bool {
        state.withLock { state in
            guard let line = state.line else { return false }
            if state.process != 0, state.waiting.isEmpty {
                if LockProcess.send(message, line.number) { return true }
                // Lost, the end of a process would leave its locks.
                guard errno == EAGAIN || errno == ENOBUFS else { return false }
            }
            guard state.waiting.count < LockProcess.waitingMax else { return false }
            state.waiting.append(message)
            return true
        }
    }

    /// An answer tells that there is room for another message.
    private static func sendWaiting(_ state: inout State, _ line: CInt) {
        let sent = state.waiting.prefix { send($0, line) }
        state.waiting.removeFirst(sent.count)
    }

    private static func send(_ message: [UInt8], _ line: CInt) -> Bool {
        let flags = CInt(MSG_NOSIGNAL) | CInt(MSG_DONTWAIT)
        return message.withUnsafeBytes { Glibc.send(line, $0.baseAddress, $0.count, flags) } >= 0
    }

    // MARK: The process

    private func start() -> Bool {
        do throws(SystemError) {
            let (ours, theirs) = try EchoProcess.line()
            let isMine = state.withLock { state in
                guard state.line == nil, !state.isOver else { return false }
                state.line = ours
                return true
            }
            if isMine { OwnedThread(name: "locks") { [self] in run(ours, theirs) }.detach() }
            return true
        } catch {
            return false
        }
    }

    private func run(_ ours: SharedDescriptor, _ theirs: consuming SharedDescriptor) {
        var process: Int32 = 0
        do throws(SystemError) {
            let nowhere = try Descriptor.open(
                Array("/dev/null".utf8), flags: O_WRONLY, label: "locks.output")
            process = try BoundProcess.start(
                program, arguments: [Array("promisefs-locks".utf8)], environment: [],
                input: theirs.number, output: nowhere.number, label: "locks.start")
        } catch {
            return lose()
        }
        _ = consume theirs
        state.withLock { [process] state in
            state.process = process
            LockProcess.sendWaiting(&state, ours.number)
        }
        read(ours.number)
        kill(process, SIGKILL)
        while waitpid(process, nil, 0) < 0, errno == EINTR {}
        lose()
    }

    /// What it had is free, and who waited is told.
    private func lose() {
        let calls = state.withLock { state in
            state.line = nil
            state.process = 0
            state.waiting = []
            defer { state.calls = [:] }
            return Array(state.calls.values)
        }
        for call in calls { call.answer(LockAnswer(problem: ENOLCK)) }
    }

    private func read(_ line: CInt) {
        var bytes = [UInt8](repeating: 0, count: LockProcess.answerSize)
        while true {
            let count = bytes.withUnsafeMutableBytes { recv(line, $0.baseAddress, $0.count, 0) }
            if count < 0, errno == EINTR { continue }
            guard count == LockProcess.answerSize else { return }
            let (number, answer) = LockProcess.parse(bytes)
            state.withLock { LockProcess.sendWaiting(&$0, line) }
            settle(number, answer)
        }
    }

    // MARK: Messages, see Mount/LockHelper/main.c

    private static let answerSize = 40
    /// More than all the locks that the process keeps.
    private static let waitingMax = 4096

    private static func parse(_ bytes: [UInt8]) -> (UInt64, LockAnswer) {
        bytes.withUnsafeBytes { bytes in
            func number<Number: FixedWidthInteger>(_ offset: Int) -> Number {
                bytes.loadUnaligned(fromByteOffset: offset, as: Number.self)
            }
            let type: Int32 = number(28)
            let found = FileLock(
                kind: .ranges, mode: type == F_RDLCK ? .shared : .exclusive, start: number(8),
                end: number(16), process: number(32))
            let answer = LockAnswer(problem: number(24), found: type == F_UNLCK ? nil : found)
            return (number(0), answer)
        }
    }

    private func message(_ call: LockCall, _ owner: LockOwner, _ number: UInt64) -> [UInt8]? {
        switch call {
        case .drop: return header(letter: "D", number: number, owner)
        case .set(let lock, let waits, let place):
            return message("S", lock, waits, place, owner, number)
        case .test(let lock, let place):
            return message("G", lock, false, place, owner, number)
        }
    }

    /// Nil where there is no such path: it is longer than PATH_MAX, or the mount is gone.
    private func message(
        _ letter: Character, _ lock: FileLock, _ waits: Bool, _ place: LockPlace,
        _ owner: LockOwner, _ number: UInt64
    ) -> [UInt8]? {
        guard let mount = mountPlace() else { return nil }
        var path: [UInt8] = []
        if let names = place.path {
            path = names.reduce(into: mount.path) { path, name in path += [0x2F] + name.bytes }
        }
        guard path.count < PATH_MAX else { return nil }
        let header = header(
            letter: letter, number: number, owner, lock,
            device: (mount.number.major, mount.number.minor), waits: waits,
            isWritable: place.isWritable)
        return header + path + [0]
    }

    private func mountPlace() -> MountPlace? {
        if let known = state.withLock({ $0.place }) { return known }
        let found = MountPlace(of: mountPoint, domain: domain)
        state.withLock { $0.place = found }
        return found
    }

    private func header(
        letter: Character, number: UInt64 = 0, _ owner: LockOwner? = nil, _ lock: FileLock? = nil,
        device: (major: UInt32, minor: UInt32) = (0, 0), waits: Bool = false,
        isWritable: Bool = false, view: UInt16 = 0
    ) -> [UInt8] {
        var bytes: [UInt8] = []
        func add(_ number: some FixedWidthInteger) {
            withUnsafeBytes(of: number) { bytes += Array($0) }
        }
        add(number)
        add(owner?.node.rawValue ?? 0)
        add(owner?.number ?? 0)
        add(lock?.start ?? 0)
        add(lock?.end ?? 0)
        add(device.major)
        add(device.minor)
        add(lock?.process ?? 0)
        add(owner?.view ?? view)
        let type = lock?.mode == .shared ? F_RDLCK : lock?.mode == .exclusive ? F_WRLCK : F_UNLCK
        bytes += [
            letter.asciiValue ?? 0, owner?.kind == .whole ? UInt8(ascii: "F") : UInt8(ascii: "R"),
            UInt8(type), waits ? 1 : 0, isWritable ? 1 : 0, 0, 0, 0, 0, 0,
        ]
        return bytes
    }
}
