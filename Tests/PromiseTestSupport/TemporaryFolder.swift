import Glibc
package import PromiseSystem

/// A folder for one test, under `$TMPDIR` or `/tmp`; removed with everything in it at the end of its life.
package final class TemporaryFolder: Sendable {
    /// Absolute, without a slash at the end.
    package let path: [UInt8]

    package init(_ name: String = "test") throws(SystemError) {
        let base = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array("\(base)/promisefs-\(name)-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw SystemError(errno: errno, label: "test.folder") }
        path = template.dropLast().map { UInt8(bitPattern: $0) }
    }

    deinit { removeTree(path) }

    /// For interfaces that take strings; the fixture's own name is ASCII.
    package var string: String { String(decoding: path, as: UTF8.self) }

    /// The path of something in the folder; `name` may have slashes.
    package func path(_ name: String) -> [UInt8] { path + [0x2F] + Array(name.utf8) }
    package func path(_ name: [UInt8]) -> [UInt8] { path + [0x2F] + name }

    /// Writes a file, replacing what is there in place.
    package func write(_ bytes: [UInt8], to name: String, mode: UInt32 = 0o644) throws(SystemError) {
        try writeFile(bytes, to: path(name), mode: mode)
    }

    package func write(_ text: String, to name: String) throws(SystemError) { try write(Array(text.utf8), to: name) }

    package func read(_ name: String) throws(SystemError) -> [UInt8] { try readFile(path(name)) }

    package func makeFolder(_ name: String) throws(SystemError) { try makeFolders(path(name), mode: 0o755, label: "test.folder") }

    package func makeLink(_ name: String, to target: String) throws(SystemError) {
        let link = path(name)
        _ = try withCPath(link) { link throws(SystemError) in try call("test.link") { symlink(target, link) } }
    }

    package func exists(_ name: String) -> Bool { (try? FileStatus.of(path(name), label: "test.exists")) != nil }

    /// Without `.` and `..`, sorted.
    package func names(in name: String = ".") throws(SystemError) -> [[UInt8]] {
        let folder = try Descriptor.open(path(name), flags: O_RDONLY | O_DIRECTORY, label: "test.list")
        return try listFolder(folder, label: "test.list").map(\.name).sorted { $0.lexicographicallyPrecedes($1) }
    }
}

package func writeFile(_ bytes: [UInt8], to path: [UInt8], mode: UInt32 = 0o644) throws(SystemError) {
    let file = try Descriptor.open(path, flags: O_WRONLY | O_CREAT | O_TRUNC, mode: mode, label: "test.write")
    let result: Result<Void, SystemError> = bytes.withUnsafeBytes { bytes in
        do throws(SystemError) { return .success(try writeFully(file.number, bytes, at: 0, label: "test.write")) } catch {
            return .failure(error)
        }
    }
    try result.get()
}

package func readFile(_ path: [UInt8]) throws(SystemError) -> [UInt8] {
    let file = try Descriptor.open(path, flags: O_RDONLY, label: "test.read")
    let size = Int(try FileStatus.of(descriptor: file.number, label: "test.read").size)
    var bytes = [UInt8](repeating: 0, count: size)
    let result: Result<Int, SystemError> = bytes.withUnsafeMutableBytes { buffer in
        do throws(SystemError) { return .success(try readFully(file.number, into: buffer, at: 0, label: "test.read")) } catch {
            return .failure(error)
        }
    }
    return Array(bytes[..<(try result.get())])
}

/// Removes a folder and what is in it, following no link. What cannot be removed stays: a test must not fail in its clean-up.
package func removeTree(_ path: [UInt8]) {
    if (try? unlink(path, label: "test.remove")) != nil { return }
    guard let folder = try? Descriptor.open(path, flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW, label: "test.remove"),
        let entries = try? listFolder(folder, label: "test.remove")
    else { return }
    for entry in entries { removeTree(path + [0x2F] + entry.name) }
    try? unlink(path, isFolder: true, label: "test.remove")
}
