import Glibc
import PromiseCore
import PromiseKit
import PromiseSystem
import Synchronization

/// A file that an earlier version is written to: the name stands for it when all of it is there, as after an editor's save.
/// What is no file, such as a pipe, is written to as it comes.
final class EarlierVersionFile: Sendable {
    private let path: [UInt8]
    /// Nil where the name stands for no file.
    private let temporary: [UInt8]?
    private let file: SharedDescriptor

    /// Beside the name, under one that no mount uploads.
    init(_ named: [UInt8]) throws(PromiseError) {
        switch NamedFile(named) {
        case .stream(let path):
            self.path = path
            temporary = nil
            guard let stream = try? Descriptor.open(path, flags: O_WRONLY, label: "version.stream") else {
                throw EarlierVersionFile.problem(path, errno)
            }
            file = SharedDescriptor(stream)
        case .file(let path):
            self.path = path
            (file, temporary) = try EarlierVersionFile.makeBeside(path)
        }
    }

    private static func makeBeside(_ path: [UInt8]) throws(PromiseError) -> (SharedDescriptor, [UInt8]) {
        let folder = path.lastIndex(of: 0x2F).map { path[...$0] } ?? []
        var template = (Array(folder) + Array(".promisefs-version-XXXXXX~".utf8)).map { CChar(bitPattern: $0) } + [0]
        let number = mkstemps(&template, 1)
        guard number >= 0 else { throw EarlierVersionFile.problem(path, errno) }
        let file = SharedDescriptor(Descriptor(adopting: number))
        var status = stat()
        let mask = umask(0)
        umask(mask)
        let mode = withCPath(path, { stat($0, &status) }) == 0 ? status.st_mode & 0o7777 : 0o666 & ~mask
        fchmod(number, mode)
        return (file, template.dropLast().map { UInt8(bitPattern: $0) })
    }

    func append(_ bytes: [UInt8]) throws(PromiseError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(file.number, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw EarlierVersionFile.problem(path, errno) }
            rest = rest.dropFirst(count)
        }
    }

    /// Everything has come.
    func finish() throws(PromiseError) {
        guard let temporary else { return }
        guard fsync(file.number) == 0, withCPath(temporary, { from in withCPath(path) { rename(from, $0) } }) == 0 else {
            throw EarlierVersionFile.problem(path, errno)
        }
    }

    func discard() {
        if let temporary { _ = withCPath(temporary) { unlink($0) } }
    }

    private static func problem(_ path: [UInt8], _ code: CInt) -> PromiseError {
        PromiseError(.local, "\(escapedForDisplay(path)) cannot be written: \(String(cString: strerror(code)))", exitStatus: 1)
    }
}
