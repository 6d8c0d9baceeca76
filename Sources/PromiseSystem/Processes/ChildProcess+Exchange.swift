import Glibc

extension ChildProcess {
    /// What a program said, and its status as a shell has it.
    package struct Exchange: Sendable, Equatable {
        package var status: Int32
        package var output: [UInt8]
    }

    /// Gives a program a short text to read, and takes what it writes to its standard output, at most 64 KiB. Nil when it could
    /// not be started, or did not end within the limit: then it is killed with what it started. Blocks.
    package static func exchange(_ arguments: [[UInt8]], input: [UInt8] = [], limit: Duration)
        -> Exchange?
    {
        // A socket, so that writing to a program that has ended is an error and no signal.
        var ends: [CInt] = [-1, -1]
        guard socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0
        else { return nil }
        let own = Descriptor(adopting: ends[0])
        let others = Descriptor(adopting: ends[1])
        guard let program = arguments.first,
            let process = start(program, arguments, talkingTo: others.number)
        else { return nil }
        _ = consume others
        _ = input.withUnsafeBytes { send(own.number, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
        shutdown(own.number, CInt(SHUT_WR))
        let deadline = ContinuousClock.now + limit
        let output = read(own.number, until: deadline)
        return wait(for: process, until: deadline).map { Exchange(status: $0, output: output) }
    }

    /// Until nothing more comes.
    private static func read(_ socket: CInt, until deadline: ContinuousClock.Instant) -> [UInt8] {
        var output: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while output.count < 65_536 {
            let left = deadline - .now
            guard left > .zero else { return output }
            var question = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
            guard poll(&question, 1, CInt(clamping: left.components.seconds * 1000 + 100)) > 0
            else { continue }
            let count = recv(socket, &buffer, buffer.count, 0)
            guard count > 0 else { break }
            output += buffer[..<count]
        }
        return output
    }
}
