import Glibc
import PromiseCore
import PromiseFilesystem
import PromiseSystem
import Synchronization

/// `promisefs-echo` (Mount/EchoHelper): started when it is needed, asked one call at a time.
final class EchoProcess: EchoCaller {
    /// A call takes microseconds, unless somebody holds the folder for a call that waits.
    private static let patienceMilliseconds: CInt = 2000

    private struct Device {
        var major: UInt32
        var minor: UInt32
        /// Of the mount, in /proc/self/mountinfo.
        var mount: UInt32
    }

    private struct State {
        var process: pid_t = 0
        var line: SharedDescriptor?
        var device: Device?
    }

    private let program: [UInt8]
    private let mountPoint: [UInt8]
    private let state = Mutex(State())

    init(program: [UInt8], mountPoint: [UInt8]) {
        self.program = program
        self.mountPoint = mountPoint
    }

    var process: Int32 { state.withLock { $0.process } }

    func start() -> Bool {
        let program = program
        return state.withLock { state in
            if state.process != 0 {
                // Killed, or ended by itself: until then its number is nobody else's.
                let ended = waitpid(state.process, nil, WNOHANG)
                if ended == 0 { return state.line != nil }
                state.process = 0
                state.line = nil
            }
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
        return state.withLock { state in
            guard let line = state.line?.number else { return EPIPE }
            let sent = message.withUnsafeBytes { send(line, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
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
        guard let device = device() else { return WatchedNodes() }
        return WatchedNodes.find(on: (device.major, device.minor), mount: device.mount)
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

    private func device() -> Device? {
        if let known = state.withLock({ $0.device }) { return known }
        guard let entry = try? MountTable.entries().last(where: { $0.mountPoint == mountPoint && $0.type == "fuse.promisefs" })
        else { return nil }
        let device = Device(major: entry.major, minor: entry.minor, mount: entry.identifier)
        state.withLock { $0.device = device }
        return device
    }

    // MARK: Messages, see Mount/EchoHelper/main.c

    /// Nil where there is no such path: it is longer than PATH_MAX, or the mount is gone.
    private func message(of call: EchoCall) -> [UInt8]? {
        guard let device = device() else { return nil }
        func folder(_ place: EchoPlace) -> [[UInt8]]? {
            let path = place.path.reduce(into: mountPoint) { path, name in path += [0x2F] + name.bytes }
            guard path.count < PATH_MAX else { return nil }
            return [text(device.major), text(device.minor), text(place.parent.rawValue), path, place.name.bytes]
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
        return Array(String(letter).utf8) + texts.flatMap { $0 + [0] }
    }

    private func text(_ number: some BinaryInteger) -> [UInt8] { Array(String(number).utf8) }
}
