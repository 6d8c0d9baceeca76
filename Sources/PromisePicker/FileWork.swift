import Glibc
import PromiseCore
import PromiseKit
import PromiseSystem

/// Files that are copied, moved and made so that a kill at any moment leaves what there was, and at
/// most a hidden file of ours beside it.
enum FileWork {
    /// What is under way has this before its name, as GLib's saves do: it stays on this machine,
    /// and becomes a document by getting its name.
    private static let prefix = Array(".goutputstream-".utf8)
    private static let bufferCount = 1 << 20

    private static let pool = BlockingPool(name: "picker", threads: 2)

    /// Off the threads that tasks share.
    static func run<Value: Sendable>(
        _ body: @escaping @Sendable () throws -> Value
    ) async throws -> Value {
        try await pool.run { () throws(any Error) in try body() }
    }

    static func failure(_ what: String, _ code: CInt = errno) -> PromiseError {
        PromiseError(
            .local, "\(what): \(String(cString: strerror(code)))",
            exitStatus: code == ENETDOWN ? 4 : 1)
    }

    static func remove(_ path: [UInt8]) { _ = withPath(path) { unlink($0) } }

    static func exists(_ path: [UInt8]) -> Bool {
        var status = stat()
        return withPath(path) { lstat($0, &status) } == 0
    }

    /// Follows links where there is no `place`: of a path that a person has said.
    static func openDocument(_ path: [UInt8], at place: MountPlace? = nil) throws -> Descriptor {
        if let place { return try place.openDocument() }
        var status = stat()
        // Opening a pipe would wait for who writes to it.
        guard withPath(path, { stat($0, &status) }) == 0 else {
            throw failure("\(shown(path)) cannot be read")
        }
        try requireFile(status, path)
        let input = withPath(path) { open($0, O_RDONLY | O_CLOEXEC | O_NOCTTY) }
        guard input >= 0 else { throw failure("\(shown(path)) cannot be read") }
        return Descriptor(adopting: input)
    }

    static func requireFile(_ status: stat, _ path: [UInt8]) throws {
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw PromiseError(.local, "\(shown(path)) is no document", exitStatus: 1)
        }
    }

    static func transfer(
        _ input: CInt, _ output: CInt, _ source: [UInt8], _ folder: [UInt8]
    ) throws {
        var buffer = [UInt8](repeating: 0, count: bufferCount)
        while true {
            let count = read(input, &buffer, buffer.count)
            if count < 0 && errno == EINTR { continue }
            guard count >= 0 else { throw failure("\(shown(source)) cannot be read") }
            if count == 0 { return }
            var rest = buffer[..<count]
            while !rest.isEmpty {
                let written = rest.withUnsafeBytes { write(output, $0.baseAddress, $0.count) }
                if written < 0 && errno == EINTR { continue }
                guard written > 0 else {
                    throw failure("a copy in \(shown(folder)) cannot be written")
                }
                rest = rest.dropFirst(written)
            }
        }
    }

    /// In place of what is there, in one step.
    static func replace(_ path: [UInt8], byLinkTo target: [UInt8]) throws {
        let folder = Array(path[..<(path.lastIndex(of: 0x2F) ?? 0)])
        let hidden = folder + [0x2F] + hiddenName()
        guard withPath(target, { target in withPath(hidden) { symlink(target, $0) } }) == 0 else {
            throw failure("no link can be made in \(shown(folder))")
        }
        guard withPath(hidden, { hidden in withPath(path) { Glibc.rename(hidden, $0) } }) == 0
        else {
            let problem = failure("\(shown(path)) cannot be replaced")
            remove(hidden)
            throw problem
        }
        syncFolder(folder)
    }

    /// `plan 2.md`.
    static func numbered(_ name: [UInt8], _ number: Int) -> [UInt8] {
        let dot = name.lastIndex(of: UInt8(ascii: ".")).flatMap { $0 > 0 ? $0 : nil } ?? name.count
        return name[..<dot] + Array(" \(number)".utf8) + name[dot...]
    }

    static func syncFolder(_ folder: [UInt8]) {
        let file = withPath(folder.isEmpty ? [0x2F] : folder) {
            open($0, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        }
        guard file >= 0 else { return }
        fsync(file)
        close(file)
    }

    /// A folder of this user alone, below the runtime folder or the temporary one.
    static func makeTemporaryFolder() throws -> [UInt8] {
        // Whoever is told of it may be in another folder.
        let named = [getenv("TMPDIR"), getenv("XDG_RUNTIME_DIR")].compactMap { $0.map { String(cString: $0) } }
        let root = named.first { $0.hasPrefix("/") } ?? "/tmp"
        var template = Array((root + "/promisefs-import-XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else { throw failure("no folder can be made in \(root)") }
        return template.dropLast().map { UInt8(bitPattern: $0) }
    }

    static func hiddenName() -> [UInt8] {
        prefix + Array(String(UInt64.random(in: 0 ... .max), radix: 36).utf8)
    }

    static func shown(_ path: [UInt8]) -> String { escapedForDisplay(path) }

    static func withPath<Value>(_ path: [UInt8], _ body: (UnsafePointer<CChar>) -> Value) -> Value {
        // Names have no NUL: they came from the kernel, or were checked.
        let terminated = path.map { CChar(bitPattern: $0) } + [0]
        return terminated.withUnsafeBufferPointer { buffer in
            guard let start = buffer.baseAddress else {
                preconditionFailure("an array with an element has an address")
            }
            return body(start)
        }
    }
}
