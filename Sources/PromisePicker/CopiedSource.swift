import Glibc
import PromiseKit

/// A source whose place is to be a link to its copy: what is written to it after it was read is in
/// no copy, and would go with it.
package struct CopiedSource: Sendable {
    private struct State: Equatable, Sendable {
        var (node, size): (UInt64, Int)
        var (seconds, nanoseconds): (Int, Int)

        init(_ status: stat) {
            (node, size) = (UInt64(status.st_ino), Int(status.st_size))
            (seconds, nanoseconds) = (status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
        }
    }

    private let path: [UInt8]
    private let state: State

    /// Before it is copied. `file` is open, and what the path leads to.
    package init(_ path: [UInt8], openAs file: CInt) throws {
        var status = stat()
        guard fstat(file, &status) == 0 else {
            throw FileWork.failure("\(FileWork.shown(path)) cannot be read")
        }
        self.path = path
        state = State(status)
    }

    /// Throws of status 6 when it is not what was copied any more.
    package func becomeLink(to target: [UInt8]) throws {
        var status = stat()
        guard FileWork.withPath(path, { stat($0, &status) }) == 0, State(status) == state else {
            let shown = FileWork.shown(path)
            throw PromiseError(.local, "\(shown) was changed meanwhile; both stay", exitStatus: 6)
        }
        try FileWork.replace(path, byLinkTo: target)
    }
}
