import Glibc

/// A picker that is shown to the person now: `promisefs pick` as a process of its own.
struct PickerProcess {
    let process: pid_t
    /// Where it says what was picked.
    let output: CInt
    private(set) var text: [UInt8] = []

    /// Nil when it cannot be started.
    init?(_ words: [[UInt8]]) {
        var ends: [CInt] = [0, 0]
        guard pipe(&ends) == 0 else { return nil }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        _ = fcntl(ends[0], F_SETFL, O_NONBLOCK)
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
        var pointers: [UnsafeMutablePointer<CChar>?] = words.map { word in
            withPath(word) { strdup($0) }
        }
        pointers.append(nil)
        defer { for pointer in pointers { free(pointer) } }
        var process = pid_t()
        guard let program = pointers.first ?? nil,
            posix_spawnp(&process, program, &actions, nil, pointers, environ) == 0
        else {
            close(ends[0])
            close(ends[1])
            return nil
        }
        close(ends[1])
        self.process = process
        output = ends[0]
    }

    /// Takes what it has said; false at the end.
    mutating func read() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = Glibc.read(output, &buffer, buffer.count)
            if count < 0 { return errno == EAGAIN || errno == EINTR }
            if count == 0 { return false }
            text += buffer[..<count]
        }
    }

    /// Separated by NUL; what is no absolute path was said by nobody.
    var paths: [[UInt8]] {
        text.split(separator: 0).filter { $0.first == 0x2F }.map { Array($0) }
    }

    /// What was chosen besides: `#CHOICE=OPTION`, both numbers.
    var chosen: [Int: Int] {
        var result: [Int: Int] = [:]
        for entry in text.split(separator: 0) where entry.first == UInt8(ascii: "#") {
            let parts = String(decoding: entry.dropFirst(), as: UTF8.self).split(separator: "=")
                .compactMap { Int($0) }
            if parts.count == 2 { result[parts[0]] = parts[1] }
        }
        return result
    }

    /// As shells have it; nil while it runs.
    static func status(of process: pid_t) -> CInt? {
        var status: CInt = 0
        let found = waitpid(process, &status, WNOHANG)
        if found == 0 { return nil }
        guard found > 0 else { return 127 }
        return status & 0x7F == 0 ? (status >> 8) & 0xFF : 128 + status & 0x7F
    }
}

/// Bytes as C has a path.
func withPath<Value>(_ path: [UInt8], _ body: (UnsafePointer<CChar>) -> Value) -> Value {
    let terminated: [CChar] = path.map { CChar(bitPattern: $0) } + [0]
    return terminated.withUnsafeBufferPointer { buffer in
        guard let start = buffer.baseAddress else {
            preconditionFailure("an array with an element has an address")
        }
        return body(start)
    }
}
