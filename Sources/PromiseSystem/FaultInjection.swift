import CPromiseSystem
import Glibc
import Synchronization

/// Makes labelled system calls fail once each, for tests, in release builds too. Off unless `arm` or `watch` was called;
/// then one load a call is all it costs.
///
/// A file named by `PROMISEFS_FAULT_FILE` is read whenever it has changed, so that faults can be armed while the daemon
/// runs; a line of it is `LABEL N FAULT`: the N-th call at LABEL from now on meets FAULT, which is `EIO`, `ENOSPC`, `EINTR`
/// (the call is repeated, as after a signal), another number of errno, `short` (a write of half the bytes), or `KILL`: the
/// process ends as by SIGKILL, and the call is not made. Beside it `FILE.log` says which labels were reached, and which faults
/// happened. Thread-safe.
package enum FaultInjection {
    private enum Kind: Equatable {
        case errno(CInt)
        case shortWrite
        case kill
    }

    private struct Fault {
        var label: String
        var kind: Kind
        /// Calls that pass before it.
        var skip: Int
    }

    /// What tells that the file has changed.
    private struct Stamp: Equatable {
        var inode: UInt
        var seconds: Int
        var nanoseconds: Int
        var size: Int
    }

    private struct State {
        var faults: [Fault] = []
        var file: String?
        var stamp: Stamp?
        var reached: Set<String> = []
        /// Where the last fault happened.
        var met: String?
    }

    /// Stands for every label but those of whoever looks, which begin with `simulation.`.
    private static let every = "every"

    private static let isActive = Atomic<Bool>(false)
    private static let state = Mutex(State())

    // MARK: Arming

    /// Arms one fault, `LABEL:FAULT[:SKIP]`, e.g. `content.write:28:3` lets three calls pass and fails the fourth with
    /// ENOSPC; FAULT is as in the file. The label `every` counts the calls at all labels. Takes the place of what was armed;
    /// nonsense arms nothing.
    package static func arm(from text: String?) {
        guard let text else { return }
        let parts = text.split(separator: ":")
        guard parts.count >= 2, let kind = kind(parts[1]) else { return }
        let skip = parts.count > 2 ? Int(parts[2]) ?? 0 : 0
        state.withLock {
            $0.faults = [Fault(label: String(parts[0]), kind: kind, skip: skip)]
            $0.met = nil
        }
        isActive.store(true, ordering: .releasing)
    }

    /// Looks at `file` before each call from now on. To be called by the executable before anything else.
    package static func watch(_ file: String?) {
        guard let file else { return }
        state.withLock { $0.file = file }
        isActive.store(true, ordering: .releasing)
    }

    /// A fault waits for its call.
    package static var isArmed: Bool { state.withLock { !$0.faults.isEmpty } }
    /// The label at which what was armed last has happened; nil when it has not.
    package static var met: String? { state.withLock { $0.met } }
    /// A file is looked at: faults may come at any time.
    package static var isWatching: Bool { state.withLock { $0.file != nil } }

    // MARK: Asking

    /// The errno that the call at `label` is to fail with, once.
    package static func take(_ label: StaticString) -> CInt? {
        guard isActive.load(ordering: .acquiring) else { return nil }
        return take(named: "\(label)")
    }

    /// As `take`, for labels that are no literals of Swift.
    package static func take(named label: String) -> CInt? {
        guard isActive.load(ordering: .acquiring), case .errno(let code)? = meet(label, isShort: false) else { return nil }
        return code
    }

    /// How many of `count` bytes a write at `label` takes: half of them, once, when a short write is armed.
    package static func accepted(_ count: Int, _ label: StaticString) -> Int {
        guard isActive.load(ordering: .acquiring), count > 1, meet("\(label)", isShort: true) != nil else { return count }
        return count / 2
    }

    /// As `accepted`, for labels that are no literals of Swift.
    package static func takeShort(named label: String) -> Bool {
        isActive.load(ordering: .acquiring) && meet(label, isShort: true) != nil
    }

    private static func meet(_ label: String, isShort: Bool) -> Kind? {
        state.withLock { state in
            refresh(&state)
            if state.file != nil, state.reached.insert(label).inserted { note("reached \(label)", state) }
            let place = state.faults.firstIndex { fault in
                let isMeant = fault.label == label || (fault.label == every && !label.hasPrefix("simulation."))
                return isMeant && (fault.kind == .shortWrite) == isShort
            }
            guard let place else { return nil }
            if state.faults[place].skip > 0 {
                state.faults[place].skip -= 1
                return nil
            }
            let fault = state.faults.remove(at: place)
            state.met = label
            if fault.kind == .kill { raise(SIGKILL) }
            if state.file != nil {
                note("failed \(label)", state)
            } else if state.faults.isEmpty {
                isActive.store(false, ordering: .releasing)
            }
            return fault.kind
        }
    }

    // MARK: The file

    private static func refresh(_ state: inout State) {
        guard let file = state.file else { return }
        var status = stat()
        guard stat(file, &status) == 0 else {
            state.stamp = nil
            state.faults = []
            return
        }
        let stamp = Stamp(
            inode: UInt(status.st_ino), seconds: status.st_mtim.tv_sec, nanoseconds: status.st_mtim.tv_nsec,
            size: Int(status.st_size))
        guard stamp != state.stamp else { return }
        state.stamp = stamp
        state.faults = text(of: file).split(separator: "\n").compactMap(fault)
    }

    private static func fault(_ line: Substring) -> Fault? {
        let words = line.split(separator: " ")
        guard words.count == 3, let number = Int(words[1]), number > 0, let kind = kind(words[2]) else { return nil }
        return Fault(label: String(words[0]), kind: kind, skip: number - 1)
    }

    private static func kind(_ word: Substring) -> Kind? {
        switch word {
        case "short": .shortWrite
        case "KILL": .kill
        case "EIO": .errno(EIO)
        case "ENOSPC": .errno(ENOSPC)
        case "EINTR": .errno(EINTR)
        default: CInt(word).map { .errno($0) }
        }
    }

    // By the plain calls: a labelled one would ask here.

    private static func text(of file: String) -> String {
        let descriptor = open(file, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return "" }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = read(descriptor, &bytes, bytes.count)
        return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
    }

    private static func note(_ line: String, _ state: State) {
        guard let file = state.file else { return }
        let descriptor = cps_open_at(AT_FDCWD, file + ".log", O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        let bytes = Array("\(line)\n".utf8)
        _ = write(descriptor, bytes, bytes.count)
    }
}
