package import PromiseCore
package import PromiseProvider

/// Keys below a prefix as paths, and back. A folder is what ends with a slash; each name is written by `StoredName`.
package struct KeyNames: Sendable, Hashable {
    package static let slash = UInt8(ascii: "/")
    /// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html>
    static let byteCountMax = 1024
    /// What stands in a folder for its marker, where a server keeps no keys that end with a slash.
    package static let keeper = ".promisefs-folder"
    private static let keeperEnd = Array("/\(keeper)".utf8)

    /// How the key of a folder's marker is written then; other keys as they are.
    package static func kept(_ key: [UInt8]) -> [UInt8] { key.last == slash ? key + keeperEnd.dropFirst() : key }

    /// And read.
    package static func unkept(_ key: [UInt8]) -> [UInt8] {
        guard key.count >= keeperEnd.count, key.suffix(keeperEnd.count) == keeperEnd[...] else { return key }
        return Array(key.dropLast(keeper.utf8.count))
    }

    /// Nothing, or something that ends with a slash.
    package let prefix: [UInt8]
    /// What the server cannot keep.
    package var escapes: NameEscapes = []

    package init(prefix: [UInt8], escapes: NameEscapes = []) {
        self.prefix = prefix
        self.escapes = escapes
    }

    /// Of a file.
    package func key(_ path: some Collection<FileName>) -> [UInt8] {
        var names = Array(path)
        if let last = names.last, let plain = BesideName.plain(last) { names[names.count - 1] = plain }
        return written(names)
    }

    /// What the keys of everything in a folder begin with, and the key of its marker. The root's is the prefix.
    package func folderKey(_ path: some Collection<FileName>) -> [UInt8] {
        path.isEmpty ? prefix : written(path) + [KeyNames.slash]
    }

    private func written(_ path: some Collection<FileName>) -> [UInt8] {
        prefix + path.map { StoredName.encoded($0.bytes, escapes) }.joined(separator: [KeyNames.slash])
    }

    /// The key of the folder that a key is in: up to its last slash.
    package static func folder(above key: ArraySlice<UInt8>) -> [UInt8] {
        Array(key[..<(key.lastIndex(of: KeyNames.slash).map { $0 + 1 } ?? key.startIndex)])
    }

    /// The name in a folder that a key (or, with a slash at its end, a common prefix) stands for; nil when it is no file name.
    package func name(of key: [UInt8], in folder: [UInt8]) -> FileName? {
        guard key.starts(with: folder) else { return nil }
        var rest = key.dropFirst(folder.count)
        if rest.last == KeyNames.slash { rest = rest.dropLast() }
        return StoredName.decoded(Array(rest), escapes)
    }
}
