package import PromiseCore
import PromiseProvider

/// What a file is called that is beside a folder of its name.
///
/// In a bucket `f` and `f/` are two keys, and no condition on one of them sees the other. So
/// whoever makes a file and whoever makes a folder of one name at the same moment both succeed,
/// also where each looks before. The folder has the name then, and the file this one, on every
/// machine: it says by itself which key it stands for.
package enum BesideName {
    private static let mark = Array(" (file beside folder)".utf8)

    /// Nil when it would be too long.
    package static func name(of file: FileName) -> FileName? { FileName(file.bytes + mark) }

    /// What the key says; nil for any other name.
    package static func plain(_ name: FileName) -> FileName? {
        let head = name.bytes.count - mark.count
        guard head > 0, name.bytes[head...] == mark[...] else { return nil }
        return FileName(Array(name.bytes[..<head]))
    }

    /// The folder that a file of this name is beside; nil for any other path.
    static func folder(of path: [FileName]) -> [FileName]? {
        path.last.flatMap { plain($0) }.map { path.dropLast() + [$0] }
    }
}

/// Whether a name that says so is that of a file beside a folder.
extension S3Bucket {
    /// Such a name is no other file's: it would come back as the plain one. Throws `.refused`.
    func checkBeside(_ path: [FileName], _ kind: NodeKind) async throws(ProviderError) {
        guard let folder = BesideName.folder(of: path) else { return }
        if kind != .folder, try await isFolder(folder) { return }
        throw ProviderError(
            .refused,
            "\(shown(path)) stays on this machine: "
                + "so files are called that are beside a folder of their name"
        )
    }

    /// Without the folder it has its plain name again. Throws `.notFound`.
    func checkIsBeside(_ path: [FileName]) async throws(ProviderError) {
        guard let folder = BesideName.folder(of: path), try await !isFolder(folder) else { return }
        throw ProviderError(.notFound, "\(shown(path)) is not on the server")
    }
}
