import Glibc
import PromiseCore
import PromiseSystem

/// Paths in a file, one a line: what `fetch --list` reads, and `run --profile` writes.
struct PathList {
    private static let byteCountMax = 64 << 20

    var paths: [[UInt8]]

    init(paths: [[UInt8]]) { self.paths = paths }

    /// `-` is the standard input. Empty lines are nothing.
    init(of file: [UInt8]) throws(CommandFailure) {
        let source = file == [UInt8(ascii: "-")] ? Array("/dev/stdin".utf8) : file
        guard let bytes = readSmallFile(source, countMax: PathList.byteCountMax) else {
            throw CommandFailure("the list '\(escapedForDisplay(file))' cannot be read: \(String(cString: strerror(errno)))")
        }
        guard bytes.count < PathList.byteCountMax else {
            throw CommandFailure("the list '\(escapedForDisplay(file))' is longer than 64 MiB; fetch a folder instead")
        }
        paths = bytes.split(separator: 0x0A).map { Array($0) }
    }

    /// The old list or the new one is there afterwards, never half of one. A path with a line feed cannot be in a list.
    func write(to file: [UInt8]) throws(CommandFailure) {
        let lines = Array(paths.filter { !$0.contains(0x0A) }.map { $0 + [0x0A] }.joined())
        guard case .file(let file) = NamedFile(file) else {
            throw CommandFailure("'\(escapedForDisplay(file))' is no file, so no list can be kept there")
        }
        // Another command may write it at the same moment.
        let aside = file + Array(".\(getpid()).new".utf8)
        do throws(SystemError) {
            let new = try Descriptor.open(aside, flags: O_WRONLY | O_CREAT | O_TRUNC, mode: 0o666, label: "list.create")
            try writeFully(new.number, lines, at: 0, label: "list.write")
            try rename(aside, to: file, label: "list.rename")
        } catch {
            throw CommandFailure("the list '\(escapedForDisplay(file))' cannot be written: \(error.reason)")
        }
    }
}
