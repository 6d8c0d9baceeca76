import Glibc
import PromiseCore
import PromiseFilesystem
import PromiseSystem
import Synchronization

/// `promisefs-echo` (Mount/EchoHelper): started when it is needed, asked one call at a time.
final class EchoProcess: EchoCaller {
    /// A call takes microseconds, unless somebody holds the folder for a call that waits.
    private static let patienceMilliseconds: CInt = 2000

    private struct State {
        var process: pid_t = 0
        var line: SharedDescriptor?
        var place: MountPlace?
    }

    private let program: [UInt8]
    private let mountPoint: [UInt8]
    private let domain: String
    /// Of a view.
    private let elsewhere: ForeignMount?
    private let state = Mutex(State())

    init(program: [UInt8], mountPoint: [UInt8], domain: String, elsewhere: ForeignMount? = nil) {
        self.program = program
        self.mountPoint = mountPoint
        self.domain = domain
        self.elsewhere = elsewhere
    }

    var process: Int32 { state.withLock { $0.process } }

    func start() -> Bool {
        var isNew = false
        guard begin(isNew: &isNew) else { return false }
        guard isNew, let elsewhere else { return true }
        // That it is where it is to be is looked at: a number is another process's after a while.
        let place = EchoProcess.message("N", [text(elsewhere.process)])
        if send(place) == 0, let process = try? BoundProcess.descriptor(of: process, label: "echo.process"),
            PeerProcess.of(pidfd: process.release(), process: self.process) == elsewhere.peer
        {
            return true
        }
        stop()
        return false
    }

    private func begin(isNew: inout Bool) -> Bool {
        let program = program
        return state.withLock { state in
            if state.process != 0 {
                // Killed, or ended by itself: until then its number is nobody else's.
                let ended = waitpid(state.process, nil, WNOHANG)
                if ended == 0 { return state.line != nil }
                state.process = 0
                state.line = nil
            }
            isNew = true
            do throws(SystemError) {
                let (ours, theirs) = try EchoProcess.line()
                let nowhere = try Descriptor.open(Array("/dev/null".utf8), flags: O_WRONLY, label: "echo.output")
                state.process = try BoundProcess.start(
                    program, arguments: [Array("promisefs-echo".utf8)], environment: [], input: theirs.number,
                    output: nowhere.number, label: "echo.start")
                state.line = ours
                return true
            } catch {
                return false
            }
        }
    }

    func call(_ call: EchoCall) -> Int32 {
        guard let message = message(of: call) else { return ENOENT }
        let problem = send(message)
        // What is not at its place any more may be at another one, with a folder above the mount.
        guard [ENOENT, ENOTDIR, ESTALE].contains(problem), hasMoved, let again = self.message(of: call) else {
            return problem
        }
        return send(again)
    }

    private func send(_ message: [UInt8]) -> Int32 {
        state.withLock { state in
            guard let line = state.line?.number else { return EPIPE }
            let sent = message.withUnsafeBytes { Glibc.send(line, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
            if sent < 0 { return errno }
            var waiting = pollfd(fd: line, events: Int16(POLLIN), revents: 0)
            var ready: CInt
            repeat { ready = poll(&waiting, 1, EchoProcess.patienceMilliseconds) } while ready < 0 && errno == EINTR
            var problem: Int32 = 0
            if ready > 0, recv(line, &problem, MemoryLayout<Int32>.size, 0) == MemoryLayout<Int32>.size { return problem }
            kill(state.process, SIGKILL)
            state.line = nil
            return ETIMEDOUT
        }
    }

    func watchedNodes() -> WatchedNodes {
        guard let place = place() else { return WatchedNodes() }
        return WatchedNodes.find(on: (place.number.major, place.number.minor), mount: place.mount)
    }

    func stop() {
        state.withLock { state in
            state.line = nil
            guard state.process != 0 else { return }
            kill(state.process, SIGKILL)
            // At once, unless it waits for a folder that somebody holds.
            for _ in 0..<100 {
                if waitpid(state.process, nil, WNOHANG) != 0 {
                    state.process = 0
                    return
                }
                usleep(10_000)
            }
        }
    }

    /// The two ends of a socket that keeps messages apart.
    static func line() throws(SystemError) -> (SharedDescriptor, SharedDescriptor) {
        var ends: [CInt] = [-1, -1]
        let kind = Int32(SOCK_SEQPACKET.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        _ = try PromiseSystem.call("echo.line") { socketpair(AF_UNIX, kind, 0, &ends) }
        return (SharedDescriptor(Descriptor(adopting: ends[0])), SharedDescriptor(Descriptor(adopting: ends[1])))
    }

    // MARK: Where the mount is

    var deviceNumber: DeviceNumber? { elsewhere?.device ?? place()?.number }

    /// Whether the mount is somewhere else than it was; it is looked for there from now on.
    private var hasMoved: Bool {
        guard let now = state.withLock({ $0.place })?.moved(seenBy: elsewhere?.process) else { return false }
        state.withLock { $0.place = now }
        return true
    }

    private func place() -> MountPlace? {
        if let known = state.withLock({ $0.place }) { return known }
        let found = elsewhere.map { MountPlace(of: $0) } ?? MountPlace(of: mountPoint, domain: domain)
        state.withLock { $0.place = found }
        return found
    }

    // MARK: Messages, see Mount/EchoHelper/main.c

    /// Nil where there is no such path: it is longer than PATH_MAX, or the mount is gone.
    private func message(of call: EchoCall) -> [UInt8]? {
        guard let mount = place() else { return nil }
        func folder(_ place: EchoPlace) -> [[UInt8]]? {
            let path = place.path.reduce(into: mount.path) { path, name in path += [0x2F] + name.bytes }
            guard path.count < PATH_MAX else { return nil }
            let number = mount.number
            return [text(number.major), text(number.minor), text(place.parent.rawValue), path, place.name.bytes]
        }
        var texts: [[UInt8]]
        let letter: Character
        switch call {
        case .make(let place, let kind, let permissions, let target):
            guard let named = folder(place) else { return nil }
            let type = kind == .folder ? S_IFDIR : kind == .link ? S_IFLNK : S_IFREG
            (letter, texts) = ("M", named + [Array(String(type | permissions, radix: 8).utf8), target])
        case .remove(let place, let isFolder):
            guard let named = folder(place) else { return nil }
            (letter, texts) = (isFolder ? "D" : "R", named)
        case .move(let from, let to):
            guard let source = folder(from), let target = folder(to) else { return nil }
            (letter, texts) = ("V", source + target)
        case .setTimes(let place, let time, let both):
            guard let named = folder(place) else { return nil }
            (letter, texts) = (both ? "A" : "T", named + [text(time.seconds), text(time.nanosecondPart)])
        case .openAndClose(let place):
            guard let named = folder(place) else { return nil }
            (letter, texts) = ("W", named)
        }
        return EchoProcess.message(letter, texts)
    }

    private static func message(_ letter: Character, _ texts: [[UInt8]]) -> [UInt8] {
        Array(String(letter).utf8) + texts.flatMap { $0 + [0] }
    }

    private func text(_ number: some BinaryInteger) -> [UInt8] { Array(String(number).utf8) }
}
