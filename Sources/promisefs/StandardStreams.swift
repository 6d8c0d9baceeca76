import Glibc

/// What a caller has closed of stdin, stdout and stderr.
enum StandardStreams {
    /// The lowest free number is that of the next file that is opened, which would get what is said
    /// here. Something else takes the number, which nobody can write to, so that results are still
    /// said to be unwritten.
    static func fill() {
        for number in STDIN_FILENO...STDERR_FILENO {
            guard fcntl(number, F_GETFD) < 0, errno == EBADF else { continue }
            if open("/dev/null", O_RDONLY) < 0 { _ = open("/", O_RDONLY) }
        }
    }
}
